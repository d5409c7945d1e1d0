"""Proposals over HTTP on both databases: made once, kept as they were made, told about, and nobody else's."""

import base64
import hashlib
import json
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.foundation.database import SYSTEM
from tests.quotes.conftest import Caller, Desk

SELLER = ("quotes:read", "quotes:write", "quotes:issue", "quotes:approve")


def order(desk: Desk, quote_id: str, expect: int = 201, n: int = 1, **body: Any) -> dict[str, Any]:
    answer = desk.client.post(f"/v1/quotes/{quote_id}/revisions/{n}/proposals", json=body)
    assert answer.status_code == expect, answer.text
    found: dict[str, Any] = answer.json()
    return found


def download(desk: Desk, proposal: dict[str, Any]) -> bytes:
    answer = desk.client.get(proposal["links"]["content"])
    assert answer.status_code == 200, answer.text
    return answer.content


def test_a_file_is_kept_with_its_digest_and_never_changes(desk: Desk) -> None:
    quote_id, revision = desk.issued(title="Risk & control", customer={"external_ref": "acme", "name": "ACME"})
    made = desk.client.post(f"/v1/quotes/{quote_id}/revisions/1/proposals", json={"format": "ubl"})
    proposal = made.json()
    assert (made.status_code, made.headers["location"]) == (201, f"/v1/proposals/{proposal['id']}")
    assert proposal["revision_content_sha256"] == revision["content_sha256"]
    assert proposal["standing"] == "offer"
    shown = desk.client.get(made.headers["location"])
    assert shown.json() == proposal
    content = desk.client.get(proposal["links"]["content"])
    digest = hashlib.sha256(content.content)
    assert proposal["sha256"] == digest.hexdigest()
    assert content.headers["content-digest"] == f"sha-256=:{base64.b64encode(digest.digest()).decode()}:"
    assert content.headers["digest"] == f"sha-256={base64.b64encode(digest.digest()).decode()}"
    assert content.headers["etag"] == shown.headers["etag"] == f'"{digest.hexdigest()}"'
    assert content.headers["content-type"] == "application/xml"
    name = f"{revision['display_number']}.ubl.xml"
    assert content.headers["content-disposition"] == f'attachment; filename="{name}"'
    again = desk.client.get(proposal["links"]["content"], headers={"If-None-Match": content.headers["etag"]})
    assert again.status_code == 304


def test_the_same_revision_gives_the_same_bytes_after_later_prices_and_acceptance(desk: Desk) -> None:
    quote_id, revision = desk.issued()
    first = order(desk, quote_id, format="ubl")
    desk.accept(revision)
    desk.client.post(f"/v1/quotes/{quote_id}/reprice", json={})
    second = order(desk, quote_id, format="ubl")
    assert (first["id"] != second["id"], first["sha256"]) == (True, second["sha256"])
    assert download(desk, first) == download(desk, second)


def test_what_was_accepted_is_what_is_exported(desk: Desk) -> None:
    quote_id, revision = desk.issued()
    item = revision["items"][0]
    other = next(o for o in item["options"] if o["id"] != item["selected_option_id"] and o["cost"]["totals"])
    desk.accept(revision, selections={item["id"]: other["id"]})
    stated = json.loads(download(desk, order(desk, quote_id, format="json")))
    assert stated["items"][0]["option_id"] == other["id"]
    assert stated["totals"]["net"] == other["cost"]["totals"]["net"]


def test_it_is_announced_and_audited(desk: Desk) -> None:
    quote_id = desk.create()["id"]
    proposal = order(desk, quote_id, format="json")
    entry = desk.client.get(f"/v1/quotes/{quote_id}/audit").json()["items"][-1]
    assert (entry["action"], entry["details"]["proposal"]) == ("proposal.create", proposal["id"])
    assert entry["after_sha256"] == proposal["sha256"]
    told = desk.client.app.state.database.read_now(
        lambda c: c.execute(text("SELECT subject FROM events WHERE type = 'proposal.ready'")).scalars().all(), SYSTEM
    )
    assert told == [proposal["id"]]


def test_a_retry_makes_no_second_file(desk: Desk) -> None:
    quote_id = desk.create()["id"]
    path, headers = f"/v1/quotes/{quote_id}/revisions/1/proposals", {"Idempotency-Key": '"once"'}
    answers = [desk.client.post(path, json={"format": "json"}, headers=headers) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["idempotent-replayed"] == "true"
    other = desk.client.post(path, json={"format": "ubl"}, headers=headers)
    assert (other.status_code, other.json()["slug"]) == (422, "idempotency-key-reused")


@pytest.mark.parametrize("asked", ["pdf", "xlsx", "docx"])
def test_other_formats_are_refused_with_those_there_are(desk: Desk, asked: str) -> None:
    problem = order(desk, desk.create()["id"], 422, format=asked)
    assert problem["errors"][0]["pointer"] == "/format"
    assert problem["available"][:1] == ["ubl"]
    assert all(name in problem["detail"] for name in problem["available"])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/format"),
        ({"format": 1}, "/format"),
        ({"format": "ubl", "template": "x"}, "/template"),
        ({"format": "ubl", "mode": "strict"}, "/mode"),
        ({"format": "json", "locale": "en"}, "/locale"),
        ({"format": "ubl", "locale": "fr"}, "/locale"),
    ],
)
def test_options_of_no_meaning_are_refused(desk: Desk, body: dict[str, Any], pointer: str) -> None:
    problem = order(desk, desk.create()["id"], 422, **body)
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_nobody_elses_files_are_seen(desk: Desk, as_person: Caller) -> None:
    quote_id = desk.create()["id"]
    proposal = order(desk, quote_id, format="json")
    stranger = as_person("eve", *SELLER, tenant="ten_other")
    for path in (proposal["links"]["self"], proposal["links"]["content"]):
        assert stranger.client.get(path).json()["slug"] == "not-found"
    order(stranger, quote_id, 404, format="json")
    reader = as_person("ann", "catalog:read")
    assert reader.client.get(proposal["links"]["self"]).json()["required_scopes"] == ["quotes:read"]
    assert order(reader, quote_id, 403, format="json")["required_scopes"] == ["quotes:read"]


def test_a_share_link_keeps_no_files(desk: Desk) -> None:
    quote_id, _ = desk.issued()
    token = desk.client.post(f"/v1/quotes/{quote_id}/revisions/1/share-links").json()["token"]
    answer = desk.client.post(
        f"/v1/quotes/{quote_id}/revisions/1/proposals",
        json={"format": "json"},
        headers={"Authorization": f"Bearer {token}", "Idempotency-Key": '"k"'},
    )
    assert (answer.status_code, answer.json()["slug"]) == (403, "insufficient-scope")


def test_the_database_refuses_to_change_a_file(desk: Desk) -> None:
    proposal = order(desk, desk.create()["id"], format="json")
    database = desk.client.app.state.database
    for statement in ("UPDATE proposals SET format = 'ubl' WHERE id = :id", "DELETE FROM proposals WHERE id = :id"):
        with pytest.raises(DBAPIError):
            database.transact_now(lambda c, s=statement: c.execute(text(s), {"id": proposal["id"]}), SYSTEM)
