"""Two tenants with real ids of every kind, made over HTTP."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.access.principal import TENANT_SCOPES
from app.events.egress import Egress
from tests.access.conftest import bearer, make_key
from tests.quotes.conftest import NOON, job

Headers = dict[str, str]


async def _public(host: str, port: int) -> list[str]:
    return ["93.184.216.34"]


@dataclass(slots=True)
class Party:
    """A tenant with its keys and the ids of what it owns."""

    tenant: str
    admin: Headers
    approver: Headers
    ids: dict[str, str] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)

    def every_id(self) -> set[str]:
        return {value for name, value in self.ids.items() if name not in ("sha256", "share_token")}


@dataclass(slots=True)
class World:
    """The service and its two tenants: ``red`` owns, ``blue`` pries."""

    client: TestClient
    red: Party
    blue: Party

    @property
    def app(self) -> FastAPI:
        application = self.client.app
        assert isinstance(application, FastAPI)
        return application

    def key(self, tenant: str, scopes: frozenset[str]) -> Headers:
        return bearer(make_key(self.app.state.database, tenant, NOON, scopes))


def send(
    client: TestClient, method: str, path: str, who: Headers, body: Any = None, form: Any = None, **headers: str
) -> httpx.Response:
    """One request under a key of its own, so that nothing is a replay."""
    sent: dict[str, Any] = {"headers": {**who, "Idempotency-Key": f'"{uuid4()}"', **headers}}
    if form is not None:
        sent |= {"data": form, "files": {"file": ("prices.csv", b"a,b\n1,2\n", "text/csv")}}
    elif body is not None:
        sent["json"] = body
    return client.request(method, path, **sent)


def expect(status: int, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json() if answer.content else {}
    return found


BOOK = {
    "name": "contract",
    "currency": "USD",
    "valid_from": "2026-01-01",
    "rules": [{"action": "percent_off", "amount": "0.05", "provider": "aws"}],
}


def build_world(client: TestClient) -> World:
    """Make both tenants and everything they own."""
    client.app.state.event_worker.egress = Egress(  # type: ignore[attr-defined]
        resolve=_public, transport=httpx.MockTransport(lambda _r: httpx.Response(204, stream=httpx.ByteStream(b"")))
    )
    return World(client=client, red=new_party(client, "red"), blue=new_party(client, "blue"))


def issue(client: TestClient, party: Party, quote_id: str) -> dict[str, Any]:
    """Bring the first revision of a quote to the customer, by two people."""
    path = f"/v1/quotes/{quote_id}/revisions/1"
    if expect(200, send(client, "POST", f"{path}/submit", party.admin, {}))["status"] == "in_review":
        expect(200, send(client, "POST", f"{path}/approve", party.approver, {"waivers": ["accept_stale"]}))
    return expect(200, send(client, "POST", f"{path}/issue", party.admin, {}))


def new_party(client: TestClient, tenant: str) -> Party:
    """Make a tenant and everything it owns."""
    database = client.app.state.database  # type: ignore[attr-defined]
    party = Party(
        tenant=tenant,
        admin=bearer(make_key(database, tenant, NOON, TENANT_SCOPES)),
        approver=bearer(make_key(database, tenant, NOON, TENANT_SCOPES)),
    )
    _furnish(client, party)
    return party


def _furnish(client: TestClient, party: Party) -> None:
    ids, who = party.ids, party.admin
    ids["key_id"] = client.get("/v1/me", headers=who).json()["key_id"]
    ids["webhook_id"] = expect(201, send(client, "POST", "/v1/webhooks", who, {"url": "https://hooks.example/x"}))["id"]
    ids["book_id"] = expect(201, send(client, "POST", "/v1/price-books", who, BOOK))["id"]
    issued = expect(201, send(client, "POST", "/v1/quotes", who, job(external_ref="ref-1", title=f"of {party.tenant}")))
    ids["quote_id"], ids["revision_id"] = issued["id"], issued["current_revision"]["id"]
    path = f"/v1/quotes/{ids['quote_id']}/revisions/1"
    offer = issue(client, party, ids["quote_id"])
    ids["sha256"] = offer["content_sha256"]
    link = expect(201, send(client, "POST", f"{path}/share-links", who, {}))
    ids["link_id"], ids["share_token"] = link["id"], link["token"]
    proposal = expect(201, send(client, "POST", f"{path}/proposals", who, {"format": "json"}))
    ids["proposal_id"] = proposal["id"]
    sold = expect(201, send(client, "POST", "/v1/quotes", who, job()))["id"]
    sha256 = issue(client, party, sold)["content_sha256"]
    expect(200, send(client, "POST", f"/v1/quotes/{sold}/revisions/1/accept", who, {"content_sha256": sha256}))
    expect(200, send(client, "PUT", "/v1/approval-policy", who, {"rules": []}))
    draft = expect(201, send(client, "POST", "/v1/quotes", who, job()))
    later = send(client, "POST", "/v1/quotes", who, job(), Prefer="respond-async")
    ids["job_id"] = expect(202, later)["id"]
    ids["draft_id"], ids["draft_revision_id"] = draft["id"], draft["current_revision"]["id"]
    assert client.portal is not None
    client.portal.call(_deliver, client)
    deliveries = client.get(f"/v1/webhooks/{ids['webhook_id']}/deliveries", headers=who).json()["items"]
    ids["delivery_id"] = deliveries[0]["id"]
    for name, shown in (
        ("quote", f"/v1/quotes/{ids['quote_id']}"),
        ("revision", path),
        ("proposal", f"/v1/proposals/{ids['proposal_id']}"),
    ):
        party.etags[name] = client.get(shown, headers=who).headers["etag"]


async def _deliver(client: TestClient) -> None:
    worker = client.app.state.event_worker  # type: ignore[attr-defined]
    await worker.publish()
    await worker.deliver()
    await worker.tidy()
    await asyncio.sleep(0)
