"""Creating, reading and editing drafts over HTTP, on both databases."""

import hashlib
from typing import Any

import pytest
import rfc8785
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import event, func, select, text

from app.engine.version import ENGINE_VERSION
from app.foundation.database import SYSTEM
from app.quotes.content import HASHED_MEMBERS
from app.quotes.tables import quote_revisions, quotes
from tests.quotes.conftest import Desk, job


def rows(client: TestClient) -> tuple[int, int]:
    def count(connection: Any) -> tuple[int, int]:
        return tuple(
            connection.execute(select(func.count()).select_from(t)).scalar_one() for t in (quotes, quote_revisions)
        )

    return client.app.state.database.read_now(count, SYSTEM)


def test_a_created_quote_is_there_with_its_draft_and_its_hash(client: TestClient) -> None:
    answer = client.post("/v1/quotes", json=job(customer={"external_ref": "acme", "name": "ACME"}, title="Risk"))
    assert answer.status_code == 201
    quote = answer.json()
    assert answer.headers["location"] == f"/v1/quotes/{quote['id']}"
    assert answer.headers["etag"] == '"q1"'
    read = client.get(answer.headers["location"])
    assert read.json() == quote
    assert (quote["status"], quote["number"], quote["customer"]["external_ref"]) == ("draft", None, "acme")
    revision = client.get(f"/v1/quotes/{quote['id']}/revisions/1").json()
    content = {name: revision[name] for name in HASHED_MEMBERS}
    assert hashlib.sha256(rfc8785.dumps(content)).hexdigest() == revision["content_sha256"]
    pins = revision["pins"]
    named = ("catalog_revision", "fx_snapshot", "engine_version", "engine_build", "rounding_policy", "schema_version")
    assert all(pins[name] for name in named)
    assert {"price_book_version", "tax_rules_version"} <= pins.keys()


def test_a_quote_says_what_the_estimate_says(client: TestClient) -> None:
    estimate = client.post("/v1/estimates", json=job()).json()
    revision = client.post("/v1/quotes", json=job()).json()["current_revision"]
    # advice with an effect is computed by re-running the engine; a quote replays without it and has it on `explain`
    asked, kept = (answer["items"][0]["options"][0].pop("advice") for answer in (estimate, revision))
    assert kept
    assert [advice["code"] for advice in kept if advice not in asked] == []
    assert revision["items"] == estimate["items"]
    assert revision["totals"] == estimate["totals"]


@pytest.mark.parametrize(
    ("body", "slug"),
    [
        (job(items=[]), "validation-failed"),
        (job(color="red"), "validation-failed"),
        (job(terms={"valid_through": "2020-01-01"}), "validation-failed"),
        (job(terms={"timezone": "Mars/Olympus"}), "validation-failed"),
        (job(selections={"item-1": "opt_nothing"}), "validation-failed"),
        (job(catalog_revision="cat_nothing"), "unknown-catalog-revision"),
        (job(terms={"currency": "XXQ"}), "currency-unknown"),
    ],
)
def test_what_is_refused_leaves_no_row(client: TestClient, body: dict[str, Any], slug: str) -> None:
    answer = client.post("/v1/quotes", json=body, headers={"Idempotency-Key": '"k"'})
    assert (answer.status_code, answer.json()["slug"]) == (422, slug)
    assert rows(client) == (0, 0)


def test_an_infeasible_job_leaves_no_row_and_a_retry_gets_the_same_refusal(client: TestClient) -> None:
    body = job()
    body["items"][0]["job"] = {
        "kind": "training", "model": {"parameters": 1e11}, "tokens": 1e9, "method": "full_finetune",
    }  # fmt: skip
    body["items"][0]["supply"] = {"accelerators": ["b200-sxm-180"], "accelerator_count": 1}
    key = {"Idempotency-Key": '"too big"'}
    first = client.post("/v1/quotes", json=body, headers=key)
    assert (first.status_code, first.json()["slug"]) == (422, "infeasible-spec")
    again = client.post("/v1/quotes", json=body, headers=key)
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    assert rows(client) == (0, 0)


def test_a_failed_commit_is_never_a_201(client: TestClient, app: FastAPI) -> None:
    def refuse(_connection: object) -> None:
        raise OSError("disk full")

    engine = app.state.database.writer_engine
    event.listen(engine, "commit", refuse)
    answer = client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": '"k"'})
    event.remove(engine, "commit", refuse)
    assert answer.status_code == 500
    assert answer.json()["slug"] == "internal"
    assert rows(client) == (0, 0)
    assert client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": '"k"'}).status_code == 201
    assert rows(client) == (1, 1)


def test_a_retry_with_the_same_key_gives_one_quote(client: TestClient) -> None:
    key = {"Idempotency-Key": '"once"'}
    first = client.post("/v1/quotes", json=job(), headers=key)
    again = client.post("/v1/quotes", json=job(), headers=key)
    assert (again.status_code, again.content) == (201, first.content)
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotent-replayed"] == "true"
    assert rows(client) == (1, 1)


def test_an_external_reference_belongs_to_one_quote(client: TestClient) -> None:
    first = client.post("/v1/quotes", json=job(external_ref="rfq-7")).json()
    second = client.post("/v1/quotes", json=job(external_ref="rfq-7"))
    assert (second.status_code, second.json()["slug"]) == (409, "external-ref-conflict")
    assert second.json()["existing"] == f"/v1/quotes/{first['id']}"


def test_the_header_is_changed_by_whoever_saw_it_last(client: TestClient, desk: Desk) -> None:
    quote = desk.create()
    path = f"/v1/quotes/{quote['id']}"
    assert client.patch(path, json={"title": "x"}).status_code == 428
    done = client.patch(path, json={"title": "Risk", "tags": ["a"]}, headers={"If-Match": '"q1"'})
    assert (done.status_code, done.json()["title"], done.json()["tags"]) == (200, "Risk", ["a"])
    stale = client.patch(path, json={"title": "y"}, headers={"If-Match": '"q1"'})
    assert (stale.status_code, stale.json()["current_etag"]) == (412, done.headers["etag"])
    assert client.patch(path, json={"number": "Q-1"}, headers={"If-Match": "*"}).status_code == 422


def test_a_draft_is_edited_by_merge_patch_and_recalculated_at_its_own_day(client: TestClient, desk: Desk) -> None:
    quote = desk.create()
    path = f"/v1/quotes/{quote['id']}/revisions/1"
    before = client.get(path)
    patch = {"terms": {"discount": "0.10"}}
    headers = {"If-Match": before.headers["etag"], "Content-Type": "application/merge-patch+json"}
    after = client.patch(path, json=patch, headers=headers)
    assert after.status_code == 200, after.text
    assert after.headers["etag"] == '"r1.2"'
    assert after.json()["pins"]["catalog_revision"] == before.json()["pins"]["catalog_revision"]
    assert float(after.json()["totals"]["net"]["amount"]) < float(before.json()["totals"]["net"]["amount"])
    missing = client.patch(path, json=patch)
    assert (missing.status_code, missing.json()["slug"]) == (428, "precondition-required")
    stale = client.patch(path, json={"terms": {"discount": "0.2"}}, headers={"If-Match": before.headers["etag"]})
    assert stale.status_code == 412
    assert stale.json()["current_etag"] == '"r1.2"'
    assert stale.json()["changed_fields"] == ["/terms/discount"]
    unknown = client.patch(path, json={"tremS": {}}, headers={"If-Match": '"r1.2"'})
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (422, "/tremS")


def test_a_selected_option_makes_the_total(client: TestClient, desk: Desk) -> None:
    quote = desk.create()
    revision = desk.show(quote["id"])
    other = next(o for o in revision["items"][0]["options"] if not o["recommended"] and o["cost"]["totals"])
    path = f"/v1/quotes/{quote['id']}/revisions/1"
    headers = {"If-Match": revision["etag"]}
    chosen = client.patch(path, json={"selections": {"item-1": other["id"]}}, headers=headers).json()
    assert chosen["items"][0]["selected_option_id"] == other["id"]
    assert chosen["totals"]["net"] == other["cost"]["totals"]["net"]
    assert client.post(f"{path}/verify").json()["match"] is True
    kept = client.patch(path, json={"title": "kept"}, headers={"If-Match": chosen["etag"]}).json()
    assert kept["items"][0]["selected_option_id"] == other["id"]


def test_lists_filter_and_page_without_skips(client: TestClient, desk: Desk) -> None:
    ids = [desk.create(customer={"external_ref": "acme" if n % 2 else "other"})["id"] for n in range(5)]
    first = client.get("/v1/quotes?limit=2").json()
    desk.create()
    seen = [row["id"] for row in first["items"]]
    cursor = first["next_cursor"]
    while cursor:
        page = client.get("/v1/quotes", params={"limit": 2, "cursor": cursor})
        seen += [row["id"] for row in page.json()["items"]]
        cursor = page.json()["next_cursor"]
    assert seen == ids[::-1]
    mine = client.get("/v1/quotes?customer=acme").json()["items"]
    assert [row["id"] for row in mine] == [ids[3], ids[1]]
    assert len(client.get("/v1/quotes?status=draft").json()["items"]) == 6
    assert client.get("/v1/quotes?status=issued").json()["items"] == []
    assert client.get("/v1/quotes?stauts=draft").json()["slug"] == "unknown-parameter"
    changed = client.get("/v1/quotes", params={"customer": "acme", "cursor": first["next_cursor"]})
    assert changed.json()["slug"] == "cursor-filter-mismatch"


def test_verify_finds_a_changed_byte(client: TestClient, desk: Desk) -> None:
    quote = desk.create()
    path = f"/v1/quotes/{quote['id']}/revisions/1/verify"
    found = client.post(path).json()
    assert found["match"] is True
    assert found["parts"] == {"content": "match", "money": "match", "engine": "match"}
    assert found["recomputed_sha256"] == quote["current_revision"]["content_sha256"]
    change = text('UPDATE quote_revisions SET content = replace(content, \'"discount":"0"\', \'"discount":"0.5"\')')
    client.app.state.database.transact_now(lambda c: c.execute(change), SYSTEM)
    broken = client.post(path).json()
    assert broken["match"] is False
    assert broken["parts"]["content"] == "mismatch"
    assert broken["parts"]["money"] == "mismatch"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ("SET net_total = '1.00'", "/net_total"),
        ('SET content = replace(content, \'"status":"priced"\', \'"status":"free"\')', "/items/0/options"),
        ("SET content = 'not JSON'", ""),
        ("SET engine_outputs = '{}'", ""),
    ],
)
def test_verify_says_what_was_changed(client: TestClient, desk: Desk, change: str, where: str) -> None:
    path = f"/v1/quotes/{desk.create()['id']}/revisions/1/verify"
    client.app.state.database.transact_now(lambda c: c.execute(text(f"UPDATE quote_revisions {change}")), SYSTEM)
    broken = client.post(path).json()
    assert (broken["match"], broken["parts"]["content"]) == (False, "mismatch")
    assert any(place.startswith(where) for place in broken["differences"]), broken


def test_verify_without_the_pinned_engine_says_so_and_replays_the_money(
    client: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    quote = desk.create()
    monkeypatch.setattr("app.quotes.calculation.ENGINE_VERSION", "9.9.9")
    path = f"/v1/quotes/{quote['id']}/revisions/1/verify"
    found = client.post(path).json()
    assert found["parts"] == {"content": "match", "money": "match", "engine": "engine-unavailable"}
    assert found["match"] is True
    strict = client.post(path, json={"engine": "required"})
    assert (strict.status_code, strict.json()["slug"]) == (409, "engine-unavailable")
    assert strict.json()["engine_version"] == ENGINE_VERSION


def test_another_build_of_the_pinned_engine_version_replays_and_is_named(
    client: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    quote = desk.create()
    path = f"/v1/quotes/{quote['id']}/revisions/1"
    assert client.post(f"{path}/verify").json()["engine"]["same_build"] is True
    monkeypatch.setattr("app.quotes.calculation._builds", {})
    monkeypatch.setattr("app.quotes.calculation._engine_source", lambda: {"engine.py": "tidied up"})
    found = client.post(f"{path}/verify", json={"engine": "required"})
    assert (found.status_code, found.json()["match"]) == (200, True)
    assert found.json()["parts"] == {"content": "match", "money": "match", "engine": "match"}
    engine = found.json()["engine"]
    assert (engine["same_build"], engine["pinned"] != engine["running"]) == (False, True)
    assert client.get(f"{path}/explain").json()["items"][0]["improvements"]["status"] == "computed"


def test_an_accepted_quote_whose_engine_is_gone_still_stands(
    client: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    quote_id, revision = desk.issued()
    desk.accept(revision)
    before = desk.show(quote_id)
    monkeypatch.setattr("app.quotes.calculation.ENGINE_VERSION", "9.9.9")
    assert desk.show(quote_id) == before
    verdict = client.post(f"/v1/quotes/{quote_id}/revisions/1/verify").json()
    assert verdict["recomputed_sha256"] == revision["content_sha256"]
    assert (verdict["parts"]["engine"], verdict["match"]) == ("engine-unavailable", True)
    explained = client.get(f"/v1/quotes/{quote_id}/revisions/1/explain").json()["items"][0]
    assert explained["improvements"] == {"status": "engine-unavailable", "items": []}
    assert explained["waterfall"]
    amended = client.post(f"/v1/quotes/{quote_id}/reprice").json()
    assert amended["pins"]["engine_version"] == "9.9.9"


def test_another_tenants_quote_is_not_there(desk: Desk, as_person, client: TestClient) -> None:
    quote = desk.create()
    as_person("eve", "quotes:read", "quotes:write", tenant="ten_other")
    for path in (f"/v1/quotes/{quote['id']}", f"/v1/quotes/{quote['id']}/revisions/1"):
        assert client.get(path).status_code == 404
    assert client.get("/v1/quotes").json()["items"] == []
