"""Share links against real quotes: what a link opens, and what it never does however it is bent."""

import base64
from datetime import timedelta

import orjson
import pytest

from app.foundation.clock import ManualClock
from tests.security.world import Headers, Party, World, expect, new_party, send


def _link(world: World, party: Party, path: str, **body: object) -> tuple[str, Headers]:
    made = expect(201, send(world.client, "POST", f"{path}/share-links", party.admin, body))
    return made["id"], {"Authorization": f"Bearer {made['token']}"}


@pytest.fixture(scope="module")
def sold(world: World) -> tuple[World, Party, str]:
    """An offer of a tenant of its own, and its path."""
    party = new_party(world.client, "violet")
    return world, party, f"/v1/quotes/{party.ids['quote_id']}/revisions/1"


def test_a_link_reads_its_revision_and_no_other(sold: tuple[World, Party, str]) -> None:
    world, party, path = sold
    _, who = _link(world, party, path)
    assert send(world.client, "GET", path, who).status_code == 200
    others = [
        path.replace("/revisions/1", suffix) for suffix in ("", "/revisions", "/revisions/2", "/revisions/10", "/audit")
    ]
    others += [f"/v1/quotes/{party.ids['draft_id']}/revisions/1", f"{path}/../../../../me", "/v1/quotes", "/v1/events"]
    for other in others:
        assert send(world.client, "GET", other, who).status_code == 404, other


def test_a_link_for_reading_does_not_accept(sold: tuple[World, Party, str]) -> None:
    world, party, path = sold
    _, who = _link(world, party, path, may_accept=False)
    body = {"content_sha256": party.ids["sha256"]}
    refused = send(world.client, "POST", f"{path}/accept", who, body)
    assert (refused.status_code, refused.json()["slug"]) == (403, "insufficient-scope")
    for step in ("submit", "issue", "withdraw", "share-links"):
        assert send(world.client, "POST", f"{path}/{step}", who, {"reason": "x"}).status_code == 403, step


def test_a_bent_link_is_nobody(sold: tuple[World, Party, str]) -> None:
    world, party, path = sold
    link_id, who = _link(world, party, path)
    head, mac = who["Authorization"].removeprefix("Bearer gqs_").split(".")

    def encoded(*ids: str) -> str:
        return base64.urlsafe_b64encode(orjson.dumps(list(ids))).decode().rstrip("=")

    bent = [
        f"{encoded('red', link_id)}.{mac}",
        f"{encoded('violet', 'shl_' + '0' * 32)}.{mac}",
        f"{head}.{mac[:-4]}AAAA",
        head,
    ]
    for token in bent:
        answer = send(world.client, "GET", path, {"Authorization": f"Bearer gqs_{token}"})
        assert (answer.status_code, answer.json()["slug"]) == (401, "unauthenticated"), token


def test_a_withdrawn_link_stays_withdrawn(sold: tuple[World, Party, str]) -> None:
    world, party, path = sold
    link_id, who = _link(world, party, path)
    assert send(world.client, "GET", path, who).status_code == 200
    assert send(world.client, "DELETE", f"/v1/share-links/{link_id}", party.admin).status_code == 204
    for method, where, body in (
        ("GET", path, None),
        ("POST", f"{path}/accept", {"content_sha256": party.ids["sha256"]}),
    ):
        gone = send(world.client, method, where, who, body)
        assert (gone.status_code, gone.json()["slug"]) == (410, "gone")


def test_a_link_accepts_what_it_shows_once_and_ends_with_the_offer(world: World) -> None:
    party = new_party(world.client, "indigo")
    path = f"/v1/quotes/{party.ids['quote_id']}/revisions/1"
    _, who = _link(world, party, path)
    _, late = _link(world, party, path)
    wrong = send(world.client, "POST", f"{path}/accept", who, {"content_sha256": "0" * 64})
    assert (wrong.status_code, wrong.json()["slug"]) == (409, "content-mismatch")
    accepted = send(world.client, "POST", f"{path}/accept", who, {"content_sha256": party.ids["sha256"]})
    assert accepted.status_code == 200
    assert accepted.json()["acceptance"]["accepted_by"].startswith("share:shl_")
    again = send(world.client, "POST", f"{path}/accept", who, {"content_sha256": party.ids["sha256"]})
    assert (again.status_code, again.json()["slug"]) == (409, "invalid-transition")
    clock = world.app.state.clock
    assert isinstance(clock, ManualClock)
    began = clock.now()
    try:
        clock.advance(timedelta(days=40))
        assert send(world.client, "GET", path, late).json()["slug"] == "gone"
    finally:
        clock.set(began)
