"""A tenant's limit of items in a request holds for revisions as for quotes."""

from dataclasses import replace

from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.access.principal import LOOPBACK_PRINCIPAL
from tests.quotes.conftest import Desk, job


def test_items_of_a_revision_are_limited_as_those_of_a_quote(app: FastAPI, client: TestClient, desk: Desk) -> None:
    made = desk.create()
    limited = replace(LOOPBACK_PRINCIPAL, items_per_request=1)

    class Fixed:
        async def authenticate(self, _request: object) -> object:
            return limited

    app.state.authenticator = Fixed()
    quote = f"/v1/quotes/{made['id']}"
    changes = {"items": [{**job()["items"][0], "id": name} for name in ("a", "b")]}
    tag = client.get(f"{quote}/revisions/1").headers["ETag"]
    merge = {"If-Match": tag, "Content-Type": "application/merge-patch+json"}
    refusals = [
        client.patch(f"{quote}/revisions/1", json=changes, headers=merge),
        client.post(f"{quote}/revisions", json={"from": 1, "pricing": "hold", "changes": changes}),
        client.post(f"{quote}/reprice", json={"changes": changes}),
    ]
    assert [(r.status_code, r.json()["violated-policies"]) for r in refusals] == [(429, ["items_per_request"])] * 3
    assert len(client.get(f"{quote}/revisions").json()["items"]) == 1
