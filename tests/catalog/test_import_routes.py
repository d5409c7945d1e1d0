"""Imports, quarantine and price books over HTTP."""

import pytest

from tests.catalog.test_imports import FILES, HEAD, P5

BOOK = {
    "name": "acme-2027",
    "currency": "USD",
    "valid_from": "2026-01-01",
    "priority": 5,
    "rules": [{"action": "percent_off", "amount": "0.15", "provider": "aws", "purchase_model": "on_demand"}],
}


def send(api, text: str | bytes, **form):
    content = text.encode() if isinstance(text, str) else text
    return api.post(
        "/v1/catalog/imports",
        files={"file": ("prices.csv", content, "text/csv")},
        data={"format": "csv", **{name: str(value) for name, value in form.items()}},
    )


def head(api) -> int:
    return api.get("/v1/catalog/revisions").json()["catalog_revision_number"]


def test_an_import_is_a_dry_run_unless_told_otherwise(api):
    text = (FILES / "own_prices.csv").read_text()
    report = send(api, text).json()
    assert {row["status"] for row in report["providers"]} == {"dry_run"}
    assert head(api) == 1
    report = send(api, text, dry_run=False).json()
    assert {row["provider"]: row["status"] for row in report["providers"]} == {
        "aws": "committed",
        "coreweave": "committed",
    }
    assert report["quality"] == []
    assert head(api) == 3
    assert len(api.get("/v1/catalog/imports").json()["items"]) == 2


def test_the_report_shows_before_and_after(api):
    send(api, f"{HEAD}\n{P5.format('55.04', '2026-11-01')}\n", dry_run=False)
    report = send(api, f"{HEAD}\n{P5.format('50.00', '2026-11-20')}\n", dry_run=False).json()
    (change,) = report["providers"][0]["changes"]
    assert (change["status"], change["before"], change["after"], change["currency"]) == (
        "changed",
        "55.04",
        "50.00",
        "USD",
    )
    diff = api.get("/v1/catalog/revisions/2/diff/3").json()
    assert [row["after"] for row in diff["prices"]] == ["55.04", "50"]


@pytest.mark.parametrize(
    ("content", "form", "code"),
    [
        (b"\xff\xfe\x00", {}, "wrong_encoding"),
        (f"{HEAD}\naws,p5.48".encode(), {}, "truncated_row"),
        (b"provider,price\n", {}, "missing_unit"),
        (b"{}", {"format": "azure"}, "malformed_json"),
        (b"PK\x03\x04 cut off", {"format": "gpuhunt"}, "truncated_file"),
        (b"Date,USD\n2026-11-27,-1\n", {"format": "ecb"}, "non_positive_rate"),
    ],
)
def test_an_unreadable_file_is_refused_with_its_reason_and_leaves_nothing(api, content, form, code):
    answer = send(api, content, dry_run=False, **form)
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, code)
    assert head(api) == 1


def test_an_unknown_format_names_the_known_ones(api):
    answer = send(api, HEAD, format="excel")
    assert answer.status_code == 422
    assert "skypilot" in answer.json()["detail"]


def test_a_held_row_is_accepted_once_with_a_reason(api):
    send(api, f"{HEAD}\n{P5.format('30.00', '2026-11-20')}\n", dry_run=False)
    items = api.get("/v1/catalog/quarantine", params={"provider": "aws"}).json()["items"]
    (held,) = [item for item in items if item["reason"] == "price_jump"]
    path = f"/v1/catalog/quarantine/{held['id']}/accept"
    assert api.post(path, json={}).status_code == 422
    accepted = api.post(path, json={"reason": "confirmed by the vendor"})
    assert accepted.json()["reason"] == "accepted"
    again = api.post(path, json={"reason": "confirmed by the vendor"})
    assert (again.status_code, again.json()["slug"]) == (409, "conflict")
    assert api.post("/v1/catalog/quarantine/qrn_0/reject", json={"reason": "why not"}).status_code == 404


def test_a_price_book_is_versioned(api):
    made = api.post("/v1/price-books", json=BOOK)
    assert made.status_code == 201
    path = made.headers["Location"]
    assert api.post("/v1/price-books", json=BOOK).status_code == 409
    changed = api.put(path, json={**BOOK, "priority": 9}).json()
    assert (changed["version"], changed["priority"]) == (2, 9)
    assert api.get(path).json()["rules"][0]["amount"] == "0.15"
    assert api.delete(path).json()["withdrawn"] is True
    assert [book["version"] for book in api.get("/v1/price-books").json()["items"]] == [3]


@pytest.mark.parametrize(
    "change",
    [
        {"currency": "usd"},
        {"valid_to": "2025-01-01"},
        {"rules": [{"action": "percent_off", "amount": "15"}]},
        {"rules": [{"action": "fixed", "amount": "0"}]},
        {"rules": [{"action": "fixed", "amount": "1e3"}]},
        {"rules": [{"action": "fixed", "amount": 3.5}]},
        {"rules": [{"action": "fixed", "amount": "3", "colour": "red"}]},
        {"colour": "red"},
    ],
)
def test_a_wrong_price_book_is_refused(api, change):
    answer = api.post("/v1/price-books", json={**BOOK, **change})
    assert answer.status_code == 422
    assert api.get("/v1/price-books").json()["items"] == []


def test_focus_rates_become_a_price_book_never_list_prices(api):
    content = (FILES / "focus_made_up.csv").read_bytes()
    answer = api.post(
        "/v1/price-books/imports", files={"file": ("focus.csv", content, "text/csv")}, data={"name": "acme-focus"}
    )
    assert answer.status_code == 201, answer.text
    book = answer.json()
    assert (book["currency"], book["valid_from"]) == ("USD", "2026-11-01")
    (rule,) = book["rules"]
    assert (rule["instance_type"], rule["amount"], rule["contract"]) == ("p5.48xlarge", "38.528", "EDP-2026-7")
    assert head(api) == 1


def test_supply_is_recorded_apart_from_the_price(api):
    wanted = {"provider": "coreweave", "instance_type": "gb200-4x"}
    (offer,) = api.get("/v1/catalog/offers", params=wanted).json()["items"]
    assert offer["availability"] is None
    seen = {"observed_on": "2026-11-20", "status": "waitlist", "lead_time_days": 45, "source": "account manager"}
    assert api.post(f"/v1/catalog/offers/{offer['id']}/availability", json=seen).status_code == 200
    (after,) = api.get("/v1/catalog/offers", params=wanted).json()["items"]
    assert after["availability"] == {**seen}
    assert after["price"]["winner"] == offer["price"]["winner"]
    (before,) = api.get("/v1/catalog/offers", params={**wanted, "catalog_revision": "1"}).json()["items"]
    assert before["availability"] is None
    assert api.post("/v1/catalog/offers/ofr_0/availability", json=seen).status_code == 404
    for days in (False, "45", 4.5):
        refused = api.post(f"/v1/catalog/offers/{offer['id']}/availability", json={**seen, "lead_time_days": days})
        assert (refused.status_code, refused.json()["pointer"]) == (422, "/lead_time_days")


@pytest.mark.parametrize("day", ["20261120", "2026-W47-5", "0", "2026-11-31", ""])
def test_a_day_is_written_with_hyphens(api, day):
    refused = api.get("/v1/catalog/offers", params={"as_of": day})
    assert (refused.status_code, refused.json()["errors"][0]["parameter"]) == (422, "as_of"), refused.text


def test_a_true_focus_file_is_read_and_holds_no_contracted_rate_of_an_accelerator_machine(api):
    """Its committed rows name no term, and its machines hold no accelerator: nothing is made a rule of."""
    content = (FILES / "focus.csv").read_bytes()
    answer = api.post("/v1/price-books/imports", files={"file": ("f.csv", content)}, data={"name": "true"})
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "empty_file")
