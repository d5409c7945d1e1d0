"""The states of a revision over HTTP and in the database: who may do what when, and what is written with it."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.access import audit
from app.access.principal import LOOPBACK_TENANT
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM
from tests.quotes.conftest import Caller, Desk


def statements(client: TestClient, sql: str) -> Any:
    return client.app.state.database.transact_now(lambda c: c.execute(text(sql)), SYSTEM)


def events(client: TestClient) -> list[str]:
    query = text("SELECT type FROM events ORDER BY id")
    return client.app.state.database.read_now(lambda c: [row.type for row in c.execute(query)], SYSTEM)


def test_from_draft_to_accepted_with_a_trail_and_events(desk: Desk, client: TestClient) -> None:
    quote_id, revision = desk.issued()
    desk.accept(revision, signatory={"name": "Li Wei", "title": "CFO"})
    trail = client.get(f"/v1/quotes/{quote_id}/audit").json()["items"]
    steps = ["quote.create", "quote.submit", "quote.approve", "quote.issue", "quote.accept"]
    assert [entry["action"] for entry in trail] == steps
    assert all(entry["trace_id"] for entry in trail)
    assert trail[2]["details"]["approval"]["self_approval"] is True
    assert trail[3]["after_sha256"] == revision["content_sha256"]
    names = ["created", "submitted", "approved", "issued", "accepted"]
    assert events(client) == [f"quote.{name}" for name in names]
    walked = client.app.state.database.read_now(lambda c: audit.verify(c, LOOPBACK_TENANT), LOOPBACK_TENANT)
    assert walked.match


def test_a_refused_step_writes_nothing(desk: Desk, client: TestClient) -> None:
    quote_id = desk.create()["id"]
    refused = desk.act(quote_id, 1, "issue", 409)
    assert (refused["slug"], refused["current_status"]) == ("invalid-transition", "draft")
    assert refused["allowed_actions"] == ["edit", "submit", "cancel"]
    assert len(client.get(f"/v1/quotes/{quote_id}/audit").json()["items"]) == 1
    assert events(client) == ["quote.created"]


def test_duties_are_separate_away_from_the_loopback(desk: Desk, as_person: Caller) -> None:
    author = as_person("author", "quotes:read", "quotes:write", "quotes:approve", "costs:read")
    quote_id = author.create()["id"]
    assert author.act(quote_id, 1, "submit")["status"] == "in_review"
    refused = author.act(quote_id, 1, "approve", 403)
    assert (refused["slug"], refused["authors"]) == ("self-approval", ["author"])
    chief = as_person("chief", "quotes:read", "quotes:approve", "quotes:issue", "costs:read")
    assert chief.act(quote_id, 1, "approve")["approval"]["self_approval"] is False
    stale = chief.act(quote_id, 1, "issue", 409)
    assert stale["slug"] == "stale-price"
    assert stale["stale_lines"][0]["age_days"] > stale["stale_lines"][0]["max_age_days"]


UNDATED = {
    "items": [
        {
            "job": {"kind": "training", "model": {"ref": "llama3-8b"}, "tokens": 100_000_000_000},
            "supply": {"accelerators": ["h200-sxm-141"], "providers": ["verda"], "regions": ["FIN-02"]},
        }
    ]
}


def undated(desk: Desk) -> dict[str, Any]:
    """A draft whose first price was observed nobody knows when."""
    answer = desk.client.post("/v1/quotes", json=UNDATED)
    assert answer.status_code == 201, answer.text
    quote: dict[str, Any] = answer.json()
    revision = quote["current_revision"]
    evidence = revision["items"][0]["options"][0]["cost"]["lines"][0]["price_evidence"]
    assert (evidence["observed_on"], evidence["stale"]) == (None, True)
    stale = revision["completeness"]["stale_lines"]
    assert (stale[0]["age_days"], stale[0]["max_age_days"]) == (None, evidence["max_age_days"])
    return quote


def test_a_price_of_an_unknown_day_needs_the_approval_of_a_stale_one(desk: Desk, as_person: Caller) -> None:
    author = as_person("author", "quotes:read", "quotes:write", "costs:read")
    quote_id = undated(author)["id"]
    submitted = author.act(quote_id, 1, "submit")
    assert submitted["status"] == "in_review"
    assert [reason["code"] for reason in submitted["review"]["reasons"]] == ["stale_lines_above_threshold"]
    chief = as_person("chief", "quotes:read", "quotes:approve", "quotes:issue", "costs:read")
    chief.act(quote_id, 1, "approve")
    refused = chief.act(quote_id, 1, "issue", 409)
    assert (refused["slug"], refused["stale_lines"][0]["age_days"]) == ("stale-price", None)


def test_on_the_loopback_the_waiver_of_an_unknown_day_is_recorded(desk: Desk, client: TestClient) -> None:
    quote_id = undated(desk)["id"]
    assert desk.act(quote_id, 1, "submit")["status"] == "in_review"
    desk.act(quote_id, 1, "approve")
    assert desk.act(quote_id, 1, "issue")["status"] == "issued"
    waiver = client.get(f"/v1/quotes/{quote_id}/audit").json()["items"][-1]["details"]["waiver"]
    assert waiver["code"] == "accept_stale"
    assert waiver["lines"][0]["age_days"] is None


def test_a_rejected_draft_goes_back_with_the_reason(desk: Desk, client: TestClient) -> None:
    quote_id = desk.create()["id"]
    desk.act(quote_id, 1, "submit")
    assert desk.act(quote_id, 1, "reject", 422)["errors"][0]["pointer"] == "/reason"
    assert desk.act(quote_id, 1, "reject", reason="too dear")["status"] == "draft"
    last = client.get(f"/v1/quotes/{quote_id}/audit").json()["items"][-1]
    assert (last["action"], last["reason"]) == ("quote.reject", "too dear")


def test_nothing_is_sent_back_while_another_draft_is_open(desk: Desk, client: TestClient) -> None:
    quote_id = desk.create()["id"]
    desk.act(quote_id, 1, "submit")
    assert client.post(f"/v1/quotes/{quote_id}/revisions", json={}).status_code == 201
    refused = desk.act(quote_id, 1, "reject", 409, reason="too dear")
    assert (refused["slug"], refused["draft"]) == ("draft-exists", f"/v1/quotes/{quote_id}/revisions/2")
    desk.act(quote_id, 2, "cancel")
    assert desk.act(quote_id, 1, "reject", reason="too dear")["status"] == "draft"


@pytest.mark.parametrize("reason", ["", "   ", "\u202e", "\n\t"])
def test_a_reason_can_be_read(desk: Desk, reason: str) -> None:
    quote_id = desk.create()["id"]
    desk.act(quote_id, 1, "submit")
    assert desk.act(quote_id, 1, "reject", 422, reason=reason)["errors"][0]["pointer"] == "/reason"


@pytest.mark.parametrize("zone", ["Mars/Base", "asia/tokyo", "GMT+8", "../../etc/passwd", "localtime", "Factory"])
def test_the_first_issue_refuses_an_unknown_zone(desk: Desk, zone: str) -> None:
    """Before the number is drawn, whose year is that zone's."""
    quote_id = desk.create()["id"]
    desk.act(quote_id, 1, "submit")
    desk.act(quote_id, 1, "approve", waivers=["accept_stale"])
    refused = desk.act(quote_id, 1, "issue", 422, timezone=zone)
    assert (refused["errors"][0]["code"], refused["errors"][0]["pointer"]) == ("unknown_time_zone", "/timezone")
    assert desk.act(quote_id, 1, "issue", timezone="Asia/Tokyo")["status"] == "issued"


@pytest.mark.parametrize(
    ("tag", "said"), [("r1.1", "quotes included"), ("", "quotes included"), ('"r1.9"', "changed since")]
)
def test_a_precondition_that_fails_says_which_way(desk: Desk, client: TestClient, tag: str, said: str) -> None:
    path = f"/v1/quotes/{desk.create()['id']}/revisions/1"
    refused = client.patch(path, json={"title": "x"}, headers={"If-Match": tag})
    assert (refused.status_code, refused.json()["current_etag"]) == (412, client.get(path).headers["etag"])
    assert said in refused.json()["detail"]


def test_inside_the_policy_nobody_is_asked(desk: Desk, client: TestClient) -> None:
    rules = {"rules": [{"measure": "discount", "above": "0.10"}]}
    assert client.put("/v1/approval-policy", json=rules).status_code == 200
    (entry,) = client.get("/v1/audit").json()["items"]
    assert (entry["action"], entry["details"]) == ("approval-policy.replace", {"version": 1})
    assert entry["before_sha256"] != entry["after_sha256"]
    assert desk.act(desk.create(terms={"discount": "0.10"})["id"], 1, "submit")["status"] == "approved"
    over = desk.act(desk.create(terms={"discount": "0.11"})["id"], 1, "submit")
    assert over["status"] == "in_review"
    assert over["review"]["reasons"][0]["code"] == "discount_above_threshold"
    bad = client.put("/v1/approval-policy", json={"rules": [{"measure": "total", "above": "5"}]})
    assert (bad.status_code, bad.json()["slug"]) == (422, "validation-failed")


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [("decline", {"reason": "no budget"}, "declined"), ("withdraw", {"reason": "error in the spec"}, "withdrawn")],
)
def test_an_offer_ends_by_decision(desk: Desk, action: str, body: dict[str, str], status: str) -> None:
    quote_id, _ = desk.issued()
    ended = desk.act(quote_id, 1, action, **body)
    assert (ended["status"], ended["closed_reason"]) == (status, body["reason"])
    assert desk.act(quote_id, 1, action, 409, **body)["allowed_actions"] == []


def test_a_cancelled_draft_makes_room_for_another(desk: Desk, client: TestClient) -> None:
    quote_id = desk.create()["id"]
    second = client.post(f"/v1/quotes/{quote_id}/revisions", json={})
    assert (second.status_code, second.json()["slug"]) == (409, "draft-exists")
    assert second.json()["draft"] == f"/v1/quotes/{quote_id}/revisions/1"
    desk.act(quote_id, 1, "cancel")
    assert client.post(f"/v1/quotes/{quote_id}/revisions", json={}).status_code == 201


def test_an_amendment_never_touches_what_was_accepted(desk: Desk, client: TestClient) -> None:
    quote_id, revision = desk.issued()
    desk.accept(revision)
    before = desk.show(quote_id)
    amendment = client.post(f"/v1/quotes/{quote_id}/reprice", json={"changes": {"terms": {"discount": "0.05"}}}).json()
    assert (amendment["amends"], amendment["based_on"]) == (1, 1)
    assert amendment["changed"]["drift"]["effects"]["contract"]["percent"] == "-5.00"
    desk.issue(quote_id, 2)
    assert desk.show(quote_id) == before
    assert client.get(f"/v1/quotes/{quote_id}").json()["revision"] == 1


def test_accepting_needs_the_content_that_was_read(desk: Desk) -> None:
    _, revision = desk.issued()
    refused = desk.accept({**revision, "content_sha256": "0" * 64}, 409)
    assert (refused["slug"], refused["expected_sha256"]) == ("content-mismatch", revision["content_sha256"])
    unknown = desk.accept(revision, 422, selections={"item-1": "opt_x"})
    assert unknown["errors"][0]["pointer"] == "/selections/item-1"
    other = next(o for o in revision["items"][0]["options"] if not o["recommended"] and o["cost"]["totals"])
    accepted = desk.accept(revision, selections={"item-1": other["id"]})["acceptance"]
    assert accepted["totals"]["net"] == other["cost"]["totals"]["net"]


def test_a_seller_who_accepts_for_a_customer_files_evidence(desk: Desk, as_person: Caller) -> None:
    _, revision = desk.issued()
    seller = as_person("seller", "quotes:read", "quotes:issue")
    assert seller.accept(revision, 422)["errors"][0]["pointer"] == "/evidence"
    evidence = {"file_name": "signed.pdf", "sha256": "a" * 64}
    assert seller.accept(revision, evidence=evidence)["acceptance"]["evidence"]["file_name"] == "signed.pdf"


def test_without_costs_read_there_is_no_cost(desk: Desk, as_person: Caller) -> None:
    quote_id = desk.create(terms={"markup": "0.15"})["id"]
    whole = desk.show(quote_id)
    assert "markup" in whole["spec"]["terms"]
    bare = as_person("buyer", "quotes:read").show(quote_id)
    assert "markup" not in bare["spec"]["terms"]
    line = bare["items"][0]["options"][0]["cost"]["lines"][0]
    assert not {"list_unit_price", "waterfall", "price_evidence"} & line.keys()
    assert bare["totals"] == whole["totals"]
    assert bare["content_sha256"] == whole["content_sha256"]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE quote_revisions SET content = replace(content, 'p5', 'p6')",
        "UPDATE quote_revisions SET content_sha256 = 'x'",
        "UPDATE quote_revisions SET engine_outputs = '{}'",
        "UPDATE quote_revisions SET valid_through_on = '2030-01-01'",
        "UPDATE quote_revisions SET status = 'draft'",
        "DELETE FROM quote_revisions",
        "INSERT OR REPLACE INTO quote_revisions SELECT * FROM quote_revisions",
        "INSERT OR REPLACE INTO quotes SELECT * FROM quotes",
        "INSERT OR REPLACE INTO audit_entries SELECT * FROM audit_entries",
        "DELETE FROM quotes",
        "UPDATE quotes SET number = 'Q-2026-999999'",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_issued(desk: Desk, client: TestClient, change: str) -> None:
    quote_id, revision = desk.issued()
    with pytest.raises(DBAPIError):
        statements(client, change)
    assert desk.show(quote_id)["content_sha256"] == revision["content_sha256"]


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM quote_acceptances",
        "UPDATE quote_acceptances SET accepted_by = 'x'",
        "INSERT OR REPLACE INTO quote_acceptances SELECT * FROM quote_acceptances",
    ],
)
def test_the_database_itself_keeps_acceptances(desk: Desk, client: TestClient, change: str) -> None:
    desk.accept(desk.issued()[1])
    with pytest.raises(DBAPIError):
        statements(client, change)


@pytest.mark.parametrize("status", ["draft", "issued"])
def test_the_database_itself_allows_one_draft_and_one_offer(desk: Desk, client: TestClient, status: str) -> None:
    quote_id, _ = desk.issued()
    client.post(f"/v1/quotes/{quote_id}/reprice")
    columns = client.app.state.database.read_now(
        lambda c: list(c.execute(text("SELECT * FROM quote_revisions LIMIT 1")).keys()), SYSTEM
    )
    listed = ", ".join(columns)
    copied = ", ".join({"id": "'rev_x'", "n": "9", "status": "'draft'"}.get(name, name) for name in columns)
    copy = f"INSERT INTO quote_revisions ({listed}) SELECT {copied} FROM quote_revisions WHERE n = 2"
    move = "UPDATE quote_revisions SET status = 'approved' WHERE n = 2"
    with pytest.raises(DBAPIError, match=r"(?i)unique"):
        statements(client, copy)
    if status == "issued":
        statements(client, move)
        with pytest.raises(DBAPIError, match=r"(?i)unique"):
            statements(client, "UPDATE quote_revisions SET status = 'issued' WHERE n = 2")


def test_the_sweeper_writes_down_what_has_ended(desk: Desk, client: TestClient, clock: ManualClock) -> None:
    quote_id, _ = desk.issued()
    open_id, _ = desk.issued(terms={"valid_through": "2027-03-01"})
    clock.advance(timedelta(days=40))
    sweep = client.app.state.quote_sweeper.sweep
    assert client.portal is not None
    assert client.portal.call(sweep) == 1
    assert client.portal.call(sweep) == 0
    trail = client.get(f"/v1/quotes/{quote_id}/audit").json()["items"]
    assert (trail[-1]["action"], trail[-1]["actor"]) == ("quote.expire", "system")
    assert events(client)[-1] == "quote.expired"
    assert desk.show(open_id)["status"] == "issued"


def test_issued_content_is_cached_by_its_hash(desk: Desk, client: TestClient) -> None:
    quote_id, revision = desk.issued()
    answer = client.get(f"/v1/quotes/{quote_id}/revisions/1")
    assert answer.headers["etag"] == f'"{revision["content_sha256"]}"'
    assert "immutable" in answer.headers["cache-control"]
    same = client.get(f"/v1/quotes/{quote_id}/revisions/1", headers={"If-None-Match": answer.headers["etag"]})
    assert same.status_code == 304


def test_compare_across_quotes_and_explain(desk: Desk, client: TestClient) -> None:
    plain = desk.create()["current_revision"]
    cheaper = desk.create(terms={"discount": "0.10"})
    sides = [plain["id"], {"quote_id": cheaper["id"], "revision": 1}]
    compared = client.post("/v1/compare", json={"revisions": sides}).json()
    change = compared["changes"][0]
    assert change["spec_changes"] == ["/terms/discount"]
    assert change["drift"]["effects"]["contract"]["percent"] == "-10.00"
    assert [column["id"] for column in compared["revisions"]] == [plain["id"], cheaper["current_revision"]["id"]]
    explained = client.get(f"/v1/quotes/{cheaper['id']}/revisions/1/explain").json()["items"][0]
    assert explained["waterfall"][0]["waterfall"][0]["step"] == "negotiated"
    assert explained["assumptions"]
    assert 1 <= len(explained["top_drivers"]) <= 5
    assert explained["improvements"]["status"] == "computed"
    saved = [Decimal(found["effect"]["money"]["amount"]) for found in explained["improvements"]["items"]]
    assert saved == sorted(saved)


def test_a_share_link_opens_and_accepts_one_offer(desk: Desk, client: TestClient) -> None:
    quote_id, revision = desk.issued()
    path = f"/v1/quotes/{quote_id}/revisions/1"
    link = client.post(f"{path}/share-links", json={}, headers={"Idempotency-Key": '"l"'})
    assert (link.status_code, link.json()["expires_at"]) == (201, revision["expires_at"])
    again = client.post(f"{path}/share-links", json={}, headers={"Idempotency-Key": '"l"'})
    assert (again.json()["id"], again.json()["token"]) == (link.json()["id"], None)
    buyer = {"Authorization": f"Bearer {link.json()['token']}"}
    read = client.get(path, headers=buyer).json()
    assert (read["content_sha256"], read["review"]) == (revision["content_sha256"], None)
    assert client.get(f"/v1/quotes/{quote_id}", headers=buyer).status_code == 404
    assert client.post(f"{path}/withdraw", json={"reason": "x"}, headers=buyer).status_code == 403
    body = {"content_sha256": revision["content_sha256"]}
    accepted = client.post(f"{path}/accept", json=body, headers=buyer)
    assert accepted.json()["acceptance"]["accepted_by"] == f"share:{link.json()['id']}"
    assert client.delete(f"/v1/share-links/{link.json()['id']}").status_code == 204
    assert client.get(path, headers=buyer).status_code == 410
    draft = desk.create()["id"]
    assert client.post(f"/v1/quotes/{draft}/revisions/1/share-links", json={}).status_code == 409


@pytest.mark.parametrize(
    ("rule", "terms", "code"),
    [
        ({"measure": "discount", "above": "0.10"}, {"discount": "0.11"}, "discount_above_threshold"),
        ({"measure": "margin", "below": "0.20"}, {"markup": "0.24"}, "margin_below_threshold"),
        ({"measure": "total", "above": "100", "currency": "USD"}, {}, "total_above_threshold"),
        ({"measure": "total", "above": "9000000", "currency": "USD"}, {"currency": "CNY"}, "total_without_threshold"),
        ({"measure": "stale_lines", "above": "0"}, {}, "stale_lines_above_threshold"),
        ({"measure": "price_age_days", "above": "1"}, {}, "price_age_days_above_threshold"),
    ],
)
def test_each_threshold_asks_for_a_person_and_records_why(
    desk: Desk, client: TestClient, rule: dict[str, str], terms: dict[str, str], code: str
) -> None:
    assert client.put("/v1/approval-policy", json={"rules": [rule]}).status_code == 200
    quote_id = desk.create(terms=terms)["id"]
    submitted = desk.act(quote_id, 1, "submit", reason="as agreed")
    assert submitted["status"] == "in_review"
    (reason,) = submitted["review"]["reasons"]
    assert (reason["code"], submitted["review"]["policy_version"]) == (code, 1)
    assert reason["value"]
    assert reason["threshold"]
    entry = client.get(f"/v1/quotes/{quote_id}/audit").json()["items"][-1]
    assert (entry["reason"], entry["details"]["review"]["reasons"]) == ("as agreed", [code])
    assert client.put("/v1/approval-policy", json={"rules": []}).json()["version"] == 2
    assert desk.show(quote_id)["review"]["policy_version"] == 1


def test_what_was_accepted_is_what_the_quote_stands_for(desk: Desk, client: TestClient) -> None:
    """Another option than the one offered first: in header, lists, explanations, and what is drafted next."""
    quote_id, offer = desk.issued()
    (item,) = offer["items"]
    other = next(o for o in item["options"] if o["cost"]["totals"] and o["id"] != item["selected_option_id"])
    net = other["cost"]["totals"]["net"]
    assert net != offer["net_total"]
    accepted = desk.accept(offer, selections={item["id"]: other["id"]})
    assert accepted["acceptance"]["totals"]["net"] == net
    assert desk.show(quote_id)["net_total"] == net
    assert desk.show(quote_id)["totals"]["net"] == offer["net_total"], "what was hashed stays"
    assert client.get(f"/v1/quotes/{quote_id}").json()["net_total"] == net
    assert client.get("/v1/quotes?status=accepted").json()["items"][0]["net_total"] == net
    explained = client.get(f"/v1/quotes/{quote_id}/revisions/1/explain").json()
    assert (explained["totals"]["net"], explained["items"][0]["option_id"]) == (net, other["id"])
    held = client.post(f"/v1/quotes/{quote_id}/revisions", json={"pricing": "hold"}).json()
    assert (held["net_total"], held["items"][0]["selected_option_id"]) == (net, other["id"])
    assert client.get(f"/v1/quotes/{quote_id}").json()["net_total"] == net, "a draft does not change the contract"
    verified = client.post(f"/v1/quotes/{quote_id}/revisions/2/verify").json()
    assert verified["differences"] == [], verified
    desk.act(quote_id, 2, "cancel")
    again = client.post(f"/v1/quotes/{quote_id}/reprice", json={}).json()
    assert (again["net_total"], again["items"][0]["selected_option_id"]) == (net, other["id"])
    assert (again["supply"][0]["status"], again["supply"][0]["before"]["option_id"]) == ("kept", other["id"])
    assert {again["changed"]["drift"][side]["amount"] for side in ("before", "after")} == {net["amount"]}
