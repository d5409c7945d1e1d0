"""Every state with every action, on both databases: what is allowed, by whom, on what condition, and all the rest."""

from datetime import timedelta
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from app.access.principal import SCOPES
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM
from tests.quotes.conftest import Caller, Desk

# API contract 2.2, written again by hand: state, action, state after, scopes of which one is needed.
ALLOWED: dict[tuple[str, str], tuple[str, set[str]]] = {
    ("draft", "edit"): ("draft", {"quotes:write"}),
    ("draft", "submit"): ("in_review", {"quotes:write"}),
    ("draft", "cancel"): ("cancelled", {"quotes:write", "quotes:approve"}),
    ("in_review", "approve"): ("approved", {"quotes:approve"}),
    ("in_review", "reject"): ("draft", {"quotes:approve"}),
    ("in_review", "cancel"): ("cancelled", {"quotes:write", "quotes:approve"}),
    ("approved", "issue"): ("issued", {"quotes:issue"}),
    ("approved", "cancel"): ("cancelled", {"quotes:write", "quotes:approve"}),
    ("issued", "accept"): ("accepted", {"quotes:accept", "quotes:issue"}),
    ("issued", "decline"): ("declined", {"quotes:accept"}),
    ("issued", "withdraw"): ("withdrawn", {"quotes:issue"}),
}
ENDED = ("accepted", "declined", "withdrawn", "expired", "superseded", "cancelled")
STATES = ("draft", "in_review", "approved", "issued", *ENDED)
ACTIONS = ("edit", "submit", "approve", "reject", "issue", "accept", "decline", "withdraw", "cancel")
# Refusals that say more than invalid-transition.
SAYS_MORE = {
    ("expired", "accept"): "quote-expired",
    ("expired", "decline"): "quote-expired",
    ("expired", "withdraw"): "quote-expired",
    ("superseded", "accept"): "superseded",
}
ENDINGS: dict[str, dict[str, Any]] = {"decline": {}, "withdraw": {"reason": "a mistake"}}


def in_state(desk: Desk, clock: ManualClock, state: str) -> str:
    """A quote whose revision 1 is in this state."""
    quote_id: str = desk.create()["id"]
    if state in ("draft", "cancelled"):
        if state == "cancelled":
            desk.act(quote_id, 1, "cancel")
        return quote_id
    desk.act(quote_id, 1, "submit")
    if state == "in_review":
        return quote_id
    desk.act(quote_id, 1, "approve", waivers=["accept_stale"])
    if state == "approved":
        return quote_id
    revision = desk.act(quote_id, 1, "issue")
    if state == "accepted":
        desk.accept(revision)
    elif state in ("declined", "withdrawn"):
        action = state.removesuffix("d").removesuffix("n")
        desk.act(quote_id, 1, action, **ENDINGS[action])
    elif state == "expired":
        clock.advance(timedelta(days=40))
    elif state == "superseded":
        assert desk.client.post(f"/v1/quotes/{quote_id}/reprice").status_code == 201
        desk.issue(quote_id, 2)
    return quote_id


def do(client: TestClient, quote_id: str, action: str, shown: dict[str, Any]) -> httpx.Response:
    """The action with everything it needs."""
    path = f"/v1/quotes/{quote_id}/revisions/1"
    if action == "edit":
        return client.patch(path, json={"title": "x"}, headers={"If-Match": shown["etag"]})
    body: dict[str, Any] = {}
    if action in ("reject", "withdraw"):
        body = {"reason": "a mistake"}
    elif action == "accept":
        evidence = {"file_name": "signed.pdf", "sha256": "a" * 64}
        body = {"content_sha256": shown["content_sha256"], "evidence": evidence}
    return client.post(f"{path}/{action}", json=body)


def trail(client: TestClient, quote_id: str) -> int:
    return len(client.get(f"/v1/quotes/{quote_id}/audit").json()["items"])


@pytest.mark.parametrize("state", STATES)
def test_what_the_table_does_not_allow_is_refused_and_changes_nothing(
    desk: Desk, clock: ManualClock, client: TestClient, state: str
) -> None:
    quote_id = in_state(desk, clock, state)
    shown, entries = desk.show(quote_id), trail(client, quote_id)
    assert shown["status"] == state
    assert set(shown["allowed_actions"]) == {action for source, action in ALLOWED if source == state}
    for action in ACTIONS:
        if (state, action) in ALLOWED:
            continue
        refused = do(client, quote_id, action, shown)
        usual = "revision-immutable" if action == "edit" else "invalid-transition"
        expected = SAYS_MORE.get((state, action), usual)
        assert (refused.status_code, refused.json()["slug"]) == (409, expected), (action, refused.text)
    assert desk.show(quote_id) == shown
    assert trail(client, quote_id) == entries


@pytest.mark.parametrize(("state", "action"), sorted(ALLOWED))
def test_what_the_table_allows_needs_its_scope_and_happens_once(
    desk: Desk, clock: ManualClock, client: TestClient, as_person: Caller, state: str, action: str
) -> None:
    target, scopes = ALLOWED[state, action]
    quotes = {scope: in_state(desk, clock, state) for scope in sorted(scopes)}
    quote_id = min(quotes.values())
    shown, entries = desk.show(quote_id), trail(client, quote_id)
    as_person("passer-by", *(SCOPES - scopes))
    refused = do(client, quote_id, action, shown)
    assert (refused.status_code, refused.json()["slug"]) == (403, "insufficient-scope")
    assert set(refused.json()["required_scopes"]) == scopes
    assert trail(client, quote_id) == entries
    for scope, other in quotes.items():
        as_person("colleague", "quotes:read", "audit:read", scope)
        done = do(client, other, action, desk.show(other))
        assert (done.status_code, done.json()["status"]) == (200, target), done.text
        assert trail(client, other) == entries + 1


PRECONDITIONS: dict[str, tuple[str, str, dict[str, Any], int, str]] = {
    "an edit without If-Match": ("draft", "edit", {}, 428, "precondition-required"),
    "a rejection without a reason": ("in_review", "reject", {}, 422, "validation-failed"),
    "a withdrawal without a reason": ("issued", "withdraw", {}, 422, "validation-failed"),
    "an acceptance of other content": ("issued", "accept", {"content_sha256": "0" * 64}, 409, "content-mismatch"),
    "an acceptance without a hash": ("issued", "accept", {}, 422, "validation-failed"),
    "an issue that ends in the past": ("approved", "issue", {"valid_through": "2026-11-29"}, 422, "validation-failed"),
}


@pytest.mark.parametrize("case", sorted(PRECONDITIONS))
def test_a_missing_precondition_is_named_and_nothing_moves(
    desk: Desk, clock: ManualClock, client: TestClient, case: str
) -> None:
    state, action, body, status, slug = PRECONDITIONS[case]
    quote_id = in_state(desk, clock, state)
    path = f"/v1/quotes/{quote_id}/revisions/1"
    refused = client.patch(path, json=body) if action == "edit" else client.post(f"{path}/{action}", json=body)
    assert (refused.status_code, refused.json()["slug"]) == (status, slug), refused.text
    assert desk.show(quote_id)["status"] == state


def test_an_approved_revision_whose_last_day_is_over_needs_another_day(
    desk: Desk, clock: ManualClock, client: TestClient
) -> None:
    quote_id = in_state(desk, clock, "approved")
    clock.advance(timedelta(days=40))
    assert desk.act(quote_id, 1, "issue", 409)["slug"] == "quote-expired"
    assert desk.act(quote_id, 1, "issue", valid_through="2027-02-01")["status"] == "issued"


def test_content_that_changed_since_it_was_submitted_is_not_approved(
    desk: Desk, clock: ManualClock, client: TestClient
) -> None:
    quote_id = in_state(desk, clock, "in_review")
    database = client.app.state.database  # type: ignore[attr-defined]
    change = text("UPDATE quote_revisions SET content_sha256 = 'x'")
    database.transact_now(lambda c: c.execute(change), SYSTEM)
    assert desk.act(quote_id, 1, "approve", 409)["slug"] == "content-mismatch"
