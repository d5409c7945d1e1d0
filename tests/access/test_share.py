"""Share links: signed, one revision, until they expire or are withdrawn."""

import base64
from datetime import timedelta

import orjson
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.access import share
from app.access.dependencies import CurrentPrincipal
from app.access.principal import LOOPBACK_PRINCIPAL
from app.foundation.clock import ManualClock
from tests.access.conftest import bearer

OWN = "/v1/quotes/quo_1/revisions/2"


@pytest.fixture
def shared(guarded_app: FastAPI) -> TestClient:
    async def whoami(principal: CurrentPrincipal) -> dict[str, object]:
        return {"actor": principal.actor, "scopes": sorted(principal.scopes)}

    # Before the real routes, so that the test needs no quote.
    for path in ("/v1/quotes/{quote_id}/revisions/{revision}", "/v1/quotes/{quote_id}/revisions/{revision}/accept"):
        guarded_app.add_api_route(path, whoami, methods=["GET", "POST"], tags=["test"])
        guarded_app.router.routes.insert(0, guarded_app.router.routes.pop())
    with TestClient(guarded_app, raise_server_exceptions=False) as client:
        yield client


def make(client: TestClient, clock: ManualClock, *, may_accept: bool = True) -> tuple[share.ShareLink, str]:
    state = client.app.state
    return state.database.transact_now(
        lambda c: share.create_link(
            c,
            principal=LOOPBACK_PRINCIPAL,
            quote_id="quo_1",
            revision=2,
            may_accept=may_accept,
            expires_at=clock.now() + timedelta(days=1),
            now=clock.now(),
            signing_key=state.settings.signing_key,
        ),
        LOOPBACK_PRINCIPAL.tenant_id,
    )


def test_a_link_opens_its_revision_and_nothing_else(shared: TestClient, clock: ManualClock) -> None:
    link, token = make(shared, clock)
    opened = shared.get(OWN, headers=bearer(token))
    assert opened.json() == {"actor": f"share:{link.id}", "scopes": ["quotes:accept", "quotes:read"]}
    assert shared.post(f"{OWN}/accept", headers=bearer(token)).status_code == 200
    for path in ("/v1/quotes/quo_1/revisions/20", "/v1/quotes/quo_2/revisions/2", "/v1/me", "/v1/quotes/quo_1/audit"):
        assert shared.get(path, headers=bearer(token)).status_code == 404
    _, read_only = make(shared, clock, may_accept=False)
    assert shared.get(OWN, headers=bearer(read_only)).json()["scopes"] == ["quotes:read"]


def test_a_tampered_link_opens_nothing(shared: TestClient, clock: ManualClock) -> None:
    link, token = make(shared, clock)
    head, tail = token.removeprefix("gqs_").split(".")
    payload = base64.urlsafe_b64encode(orjson.dumps(["other", link.id])).decode().rstrip("=")
    for changed in (
        f"gqs_{payload}.{tail}",
        f"gqs_{head}.{tail[:-2]}AA",
        f"gqs_{head}.",
        f"gqs_{head}",
        "gqs_",
        f"gqs_{tail}.{head}",
    ):
        assert shared.get(OWN, headers=bearer(changed)).status_code == 401, changed


def test_an_expired_or_withdrawn_link_is_gone(shared: TestClient, clock: ManualClock) -> None:
    link, token = make(shared, clock)
    _, other = make(shared, clock)
    shared.app.state.database.transact_now(
        lambda c: share.revoke_link(c, principal=LOOPBACK_PRINCIPAL, link_id=link.id, now=clock.now()),
        LOOPBACK_PRINCIPAL.tenant_id,
    )
    withdrawn = shared.get(OWN, headers=bearer(token))
    assert (withdrawn.status_code, withdrawn.json()["slug"]) == (410, "gone")
    clock.advance(timedelta(days=1) - timedelta(seconds=1))
    assert shared.get(OWN, headers=bearer(other)).status_code == 200
    clock.advance(timedelta(seconds=1))
    assert shared.get(OWN, headers=bearer(other)).status_code == 410
