"""What went wrong in other quote tools, row by row of the table in the design notes, cannot go wrong here."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.cli.printing import options_table, total_line
from app.foundation.clock import ManualClock
from tests.quotes.conftest import Caller, Desk, job

# Every row of the table with the test that holds its lesson; 29 and 30 belong to documents.
HERE = "quotes/test_public_issues.py"
ROWS = {
    **dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 22, 23, 24, 26, 27, 31), HERE),
    9: "pricing/test_line_items.py::test_two_hundred_lines_both_tax_scopes",
    20: "quotes/test_affected.py::test_row_20_open_quotes_show_what_they_would_be_today",
    21: "quotes/test_races.py::test_fifty_issues_give_fifty_numbers_without_a_gap",
    25: "quotes/test_races.py::test_a_server_killed_at_any_point_leaves_one_quote_to_the_retry",
    28: "events/test_egress.py::test_a_name_that_turns_private_after_it_was_accepted_is_not_sent_to",
}
LAST_DAY = {"valid_through": "2026-12-31", "timezone": "Asia/Shanghai"}
LAST_SECOND = datetime(2026, 12, 31, 15, 59, 59, tzinfo=UTC)


def test_row_1_the_last_local_day_counts_in_full(desk: Desk, clock: ManualClock) -> None:
    """invoiceninja/ui#2997: a quote expired at the start of its last day."""
    in_time = desk.issue(desk.create()["id"], **LAST_DAY)
    late = desk.issue(desk.create()["id"], **LAST_DAY)
    assert in_time["expires_at"] == "2026-12-31T16:00:00.000Z"
    clock.set(LAST_SECOND)
    assert desk.accept(in_time)["status"] == "accepted"
    clock.advance(timedelta(seconds=1))
    assert desk.accept(late, 409)["slug"] == "quote-expired"


def test_row_2_an_expired_quote_is_not_accepted_and_shows_expired_at_once(
    desk: Desk, clock: ManualClock, client: TestClient
) -> None:
    """invoiceninja#11371: no state expired; customers accepted expired quotes."""
    quote_id, revision = desk.issued()
    clock.advance(timedelta(days=40))
    refused = desk.accept(revision, 409)
    assert refused["expires_at"] == "2026-12-31T00:00:00Z"
    assert refused["requote"] == f"/v1/quotes/{quote_id}/reprice"
    assert client.get(f"/v1/quotes/{quote_id}").json()["status"] == "expired"
    assert [row["id"] for row in client.get("/v1/quotes?status=expired").json()["items"]] == [quote_id]
    assert client.get("/v1/quotes?status=issued").json()["items"] == []


def test_row_3_late_acceptance_is_a_held_revision_that_somebody_approves(
    desk: Desk, clock: ManualClock, as_person: Caller, client: TestClient
) -> None:
    """erpnext#32641 and #33952: sellers want late acceptance; it is never silent."""
    quote_id = desk.issued()[0]
    clock.advance(timedelta(days=40))
    author = as_person("author", "quotes:read", "quotes:write", "quotes:issue")
    held = client.post(f"/v1/quotes/{quote_id}/revisions", json={"pricing": "hold"}).json()
    assert held["totals"] == desk.show(quote_id, 1)["totals"]
    submitted = author.act(quote_id, 2, "submit")
    assert submitted["status"] == "in_review"
    assert author.act(quote_id, 2, "approve", 403)["slug"] == "insufficient-scope"
    chief = as_person("chief", "quotes:read", "quotes:approve", "costs:read")
    approved = chief.act(quote_id, 2, "approve", waivers=["accept_stale"], reason="a good customer")
    codes = {reason["code"] for reason in approved["review"]["reasons"]}
    assert "held_prices" in codes
    assert approved["approved_by"] == "chief"


def test_row_3_no_policy_makes_held_prices_silent(desk: Desk, client: TestClient) -> None:
    quote_id, _ = desk.issued()
    assert client.put("/v1/approval-policy", json={"rules": []}).json()["version"] == 1
    client.post(f"/v1/quotes/{quote_id}/revisions", json={"pricing": "hold"})
    assert desk.act(quote_id, 2, "submit")["status"] == "in_review"


def test_row_4_what_succeeds_has_an_effect(desk: Desk, clock: ManualClock) -> None:
    """invoiceninja#7157: converting an expired quote reported success and did nothing."""
    quote_id, revision = desk.issued()
    assert desk.accept(revision)["acceptance"]["content_sha256"] == revision["content_sha256"]
    again = desk.accept(revision, 409)
    assert (again["slug"], again["current_status"]) == ("invalid-transition", "accepted")
    assert desk.show(quote_id)["status"] == "accepted"


def test_row_5_an_issued_revision_is_not_edited(desk: Desk, client: TestClient) -> None:
    """invoiceninja#1503, itflow#153: an approved quote stayed editable and approved."""
    quote_id, revision = desk.issued()
    path = f"/v1/quotes/{quote_id}/revisions/1"
    answer = client.patch(path, json={"title": "x"}, headers={"If-Match": revision["etag"]})
    assert (answer.status_code, answer.json()["slug"]) == (409, "revision-immutable")
    assert answer.json()["create_revision"] == f"/v1/quotes/{quote_id}/revisions"
    assert desk.show(quote_id)["content_sha256"] == revision["content_sha256"]


def test_row_6_revisions_live_under_one_number(desk: Desk, client: TestClient) -> None:
    """erpnext#52963: amending made a new number."""
    quote_id, first = desk.issued()
    client.post(f"/v1/quotes/{quote_id}/reprice")
    second = desk.issue(quote_id, 2)
    assert first["display_number"] == "Q-2026-000001-1"
    assert second["display_number"] == "Q-2026-000001-2"
    listed = client.get(f"/v1/quotes/{quote_id}/revisions").json()["items"]
    assert [(row["revision"], row["status"]) for row in listed] == [(1, "superseded"), (2, "issued")]
    refused = desk.accept(first, 409)
    assert (refused["slug"], refused["current_revision"]) == ("superseded", 2)


def test_row_7_the_identities_hold_on_rounded_values(desk: Desk) -> None:
    """gobl#463, ksa_compliance#331: totals that do not add up."""
    taxed = desk.create(terms={"tax_region": "CN", "currency": "CNY", "markup": "0.137"})["current_revision"]
    totals = taxed["totals"]
    option = taxed["items"][0]["options"][0]
    assert sum(Decimal(line["net"]["amount"]) for line in option["cost"]["lines"]) == Decimal(totals["net"]["amount"])
    tax = sum(Decimal(row["amount"]["amount"]) for row in totals["tax"])
    assert Decimal(totals["net"]["amount"]) + tax == Decimal(totals["gross"]["amount"])


def _money_as_numbers(value: Any, at: str = "") -> list[str]:
    if isinstance(value, dict):
        bad = [f"{at}/amount"] if "currency" in value and not isinstance(value.get("amount", ""), str | None) else []
        return bad + [p for k, v in value.items() for p in _money_as_numbers(v, f"{at}/{k}")]
    if isinstance(value, list):
        return [p for i, v in enumerate(value) for p in _money_as_numbers(v, f"{at}/{i}")]
    return []


def test_row_12_money_is_never_a_number(desk: Desk) -> None:
    """amzn/selling-partner-api-models#2212: the API began to send money as floats."""
    assert _money_as_numbers(desk.create()) == []


def test_row_13_a_move_of_the_exchange_rate_is_not_a_price_change(desk: Desk, client: TestClient) -> None:
    """infracost#3124: exchange rates moved and showed as a change of cost."""
    quote = desk.create(terms={"currency": "CNY"}, as_of="2026-08-03")
    later = client.post(
        f"/v1/quotes/{quote['id']}/revisions/1/submit",
    )
    assert later.status_code == 200
    changes = {"as_of": "2026-10-30"}
    answer = client.post(f"/v1/quotes/{quote['id']}/revisions", json={"pricing": "reprice", "changes": changes})
    assert answer.status_code == 201, answer.text
    drift = answer.json()["changed"]["drift"]
    effects = {name: Decimal(part["amount"]["amount"]) for name, part in drift["effects"].items()}
    assert drift["change"]["currency"] == "CNY"
    assert effects["fx"] != 0
    assert {name for name, value in effects.items() if value} == {"fx"}
    assert sum(effects.values()) == Decimal(drift["change"]["amount"])


def test_row_15_a_missing_price_blocks_the_total_and_the_issue(desk: Desk, client: TestClient) -> None:
    """infracost#3270: a missing price was shown as zero and as a saving."""
    body = job()
    body["items"][0]["supply"] = {"accelerators": ["a10"], "accelerator_count": 8, "purchase_models": ["owned"]}
    body["items"][0]["job"] = {"kind": "training", "model": {"parameters": 1e9}, "tokens": 1e9}
    quote = client.post("/v1/quotes", json=body)
    assert quote.status_code == 201, quote.text
    revision = quote.json()["current_revision"]
    assert (revision["complete"], revision["totals"], revision["net_total"]) == (False, None, None)
    refused = desk.act(quote.json()["id"], 1, "submit", 422)
    assert refused["slug"] == "incomplete-pricing"
    assert refused["unpriced_lines"][0]["outcome"] == "unknown_price"
    assert client.post(f"/v1/quotes/{quote.json()['id']}/revisions/1/verify").json()["match"] is True


def test_row_16_unknown_keys_are_named(client: TestClient) -> None:
    """infracost#3430: unknown keys were ignored."""
    answer = client.post("/v1/quotes", json=job(colour="red", shape="round"))
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/colour", "/shape"]


def test_row_19_only_repricing_fetches_new_prices(desk: Desk, client: TestClient, clock: ManualClock) -> None:
    """erpnext#32954: changing a date fetched exchange rates anew and overwrote prices."""
    quote = desk.create(terms={"currency": "CNY"})
    before = quote["current_revision"]
    clock.advance(timedelta(days=5))
    path = f"/v1/quotes/{quote['id']}/revisions/1"
    edited = client.patch(
        path, json={"terms": {"valid_through": "2026-12-20"}}, headers={"If-Match": before["etag"]}
    ).json()
    assert edited["pins"] == before["pins"]
    assert edited["totals"] == before["totals"]
    assert edited["validity"]["through"] == "2026-12-20"


def test_row_22_a_number_is_given_when_the_last_day_is_today(desk: Desk) -> None:
    """invoiceninja#13288: no number when valid-until was today."""
    issued = desk.issue(desk.create()["id"], valid_through="2026-11-30")
    assert issued["number"] == "Q-2026-000001"


def test_row_24_a_replay_after_expiry_is_the_first_answer(desk: Desk, clock: ManualClock, client: TestClient) -> None:
    """Nexuq#393: replays of a decided operation were refused after expiry."""
    quote_id, revision = desk.issued(terms={"valid_through": "2026-12-01"})
    path, key = f"/v1/quotes/{quote_id}/revisions/1/accept", {"Idempotency-Key": '"yes"'}
    body = {"content_sha256": revision["content_sha256"]}
    first = client.post(path, json=body, headers=key)
    clock.advance(timedelta(days=2))
    again = client.post(path, json=body, headers=key)
    assert first.status_code == again.status_code == 200
    assert again.content == first.content


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_belongs_to_the_year_it_was_given_in(desk: Desk, clock: ManualClock, number: int) -> None:
    clock.set(datetime(2027, 1, 1, 3, 0, tzinfo=UTC))
    for expected in range(1, number + 1):
        assert desk.issued()[1]["number"] == f"Q-2027-{expected:06d}"
    assert date(2027, 1, 1) == clock.now().date()


def test_every_row_but_those_of_documents_has_its_test() -> None:
    assert set(ROWS) == set(range(1, 32)) - {29, 30}
    for row, where in ROWS.items():
        path, _, name = where.partition("::")
        text = (Path(__file__).parents[1] / path).read_text("utf-8")
        assert f"def {name or f'test_row_{row}_'}" in text, row


def test_row_8_the_rounding_policy_is_chosen_and_stands_on_the_quote(desk: Desk) -> None:
    """invoiceninja#4370, woocommerce#19706: tax by line and tax by document differ by a cent."""
    for policy in ("line_half_up/tax_by_rate", "line_half_up/tax_per_line"):
        revision = desk.create(terms={"rounding_policy": policy, "tax_region": "CN"})["current_revision"]
        assert revision["pins"]["rounding_policy"] == revision["totals"]["rounding_policy"] == policy


def _line(revision: dict[str, Any]) -> dict[str, Any]:
    line: dict[str, Any] = revision["items"][0]["options"][0]["cost"]["lines"][0]
    return line


def test_row_10_yen_have_no_decimals_and_are_not_multiplied(desk: Desk) -> None:
    """InvoicePlane#1677, lago-api#643: yen were multiplied by a hundred."""
    yen = desk.create(terms={"currency": "JPY"})["current_revision"]
    dollars = desk.create()["current_revision"]
    total = yen["totals"]["net"]["amount"]
    assert "." not in total
    (rate,) = [Decimal(row["rate"]) for row in yen["fx"] if row["pair"] == "USD/JPY"]
    assert Decimal(total) / Decimal(dollars["totals"]["net"]["amount"]) == pytest.approx(rate, rel=Decimal("1e-6"))


def test_row_11_a_price_per_unit_in_yen_keeps_its_decimals(desk: Desk) -> None:
    """invoice-generator-api#120: a rate of 4.5 yen was rounded."""
    unit = _line(desk.create(terms={"currency": "JPY"})["current_revision"])["net_unit_price"]
    assert unit["currency"] == "JPY"
    assert Decimal(unit["amount"]) % 1 != 0


def test_row_14_an_amount_is_printed_in_its_own_currency(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """infracost#919: converted to EUR, and the summary printed a dollar sign."""
    revision = desk.create(terms={"currency": "EUR"})["current_revision"]
    options_table(revision["items"])
    total_line(revision["totals"], revision["pins"])
    printed = capsys.readouterr().out
    assert "EUR " in printed
    assert not {"$", "USD"} & set(re.findall(r"[$]|[A-Z]{3}(?= [0-9])", printed))


def test_row_17_the_price_that_won_and_those_that_lost_are_recorded(desk: Desk) -> None:
    """infracost#3263: of several prices a random one was taken, and estimates flipped."""
    first, second = (desk.create()["current_revision"] for _ in range(2))
    assert first["items"] == second["items"]
    evidence = _line(first)["price_evidence"]
    assert evidence["rule"]
    assert evidence["lost"]
    assert all(row["reason"] for row in evidence["lost"])


def test_row_18_no_other_provider_or_default_price_stands_in(client: TestClient) -> None:
    """opencost#2215, #3160, #3219: a price of zero, or of a default provider, for what is not in the list."""
    body = job()
    body["items"][0]["supply"]["providers"] = ["coreweave"]
    options = client.post("/v1/quotes", json=body).json()["current_revision"]["items"][0]["options"]
    assert {option["offer"]["provider"] for option in options} == {"coreweave"}
    machines = [line for option in options for line in option["cost"]["lines"] if line["kind"] == "compute"]
    assert len(machines) >= len(options)
    assert all(Decimal(line["net"]["amount"]) > 0 for line in machines)
    body["items"][0]["supply"]["providers"] = ["nobody"]
    refused = client.post("/v1/quotes", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/items/0/supply/providers/0")


def test_row_23_rows_come_once_though_others_are_added_between_pages(desk: Desk, client: TestClient) -> None:
    """invoiceninja#11936: rows repeated and skipped between pages."""
    ids = [desk.create()["id"] for _ in range(4)]
    page = client.get("/v1/quotes?limit=3").json()
    desk.create()
    rest = client.get("/v1/quotes", params={"limit": 3, "cursor": page["next_cursor"]}).json()
    assert [row["id"] for row in page["items"] + rest["items"]] == ids[::-1]


def test_row_26_the_end_of_a_key_is_told(client: TestClient, clock: ManualClock) -> None:
    """connect-api-examples#135: a key was applied again after it had ended, which nobody had been told."""
    answer = client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": '"k"'})
    ends = parsedate_to_datetime(answer.headers["idempotency-expires"])
    assert ends - clock.now() == timedelta(hours=72)


def test_row_27_a_key_belongs_to_one_method_path_and_body(client: TestClient, desk: Desk) -> None:
    """eventyay#602: a key matched across methods and payloads."""
    quote_id, revision = desk.issued()
    key = {"Idempotency-Key": '"k"'}
    assert client.post("/v1/quotes", json=job(title="one"), headers=key).status_code == 201
    other = client.post("/v1/quotes", json=job(title="two"), headers=key)
    assert (other.status_code, other.json()["slug"]) == (422, "idempotency-key-reused")
    accepted = client.post(
        f"/v1/quotes/{quote_id}/revisions/1/accept", json={"content_sha256": revision["content_sha256"]}, headers=key
    )
    assert (accepted.status_code, accepted.json()["status"]) == (200, "accepted")


def test_row_31_hours_and_months_say_what_they_count(client: TestClient, desk: Desk) -> None:
    """ubicloud#501, cloudstack#7210: months of 730, 672 and 720 hours."""
    serving = {
        "job": {
            "kind": "inference",
            "model": {"ref": "llama3-8b"},
            "traffic": {"requests_per_second": 5, "input_tokens": 500, "output_tokens": 200},
        },
        "supply": {"accelerators": ["h100-sxm5-80"], "providers": ["aws"]},
    }
    monthly = client.post("/v1/quotes", json={"items": [serving]}).json()["current_revision"]
    for revision in (desk.create()["current_revision"], monthly):
        lines = [line for option in revision["items"][0]["options"] for line in option["cost"]["lines"]]
        timed = [line for line in lines if line["charge"] == "recurring" or "hour" in line["unit"]]
        assert timed
        assert all(line["hours_basis"] for line in timed)
