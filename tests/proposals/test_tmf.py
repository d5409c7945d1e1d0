"""TMF648: an adapter to read that never rounds a quantity and pages as TMF630 says."""

import json
from decimal import Decimal
from typing import Any

import orjson
import pytest

from app.proposals.document import as_sold
from app.proposals.reading import read_document
from app.proposals.tmf import chosen, integer_quantity, tmf_quote
from tests.proposals.building import VARIANTS
from tests.quotes.conftest import Caller, Desk

PATH = "/tmf-api/quoteManagement/v4/quote"


def exact(found: dict[str, Any]) -> dict[str, Any]:
    """Read JSON without the reader's floats."""
    parsed: dict[str, Any] = json.loads(orjson.dumps(chosen(found, None)), parse_float=Decimal)
    return parsed


@pytest.mark.parametrize("name", VARIANTS)
def test_amounts_and_quantities(name: str) -> None:
    document = read_document(VARIANTS[name])
    quote = exact(tmf_quote(VARIANTS[name]))
    for item, line in zip(quote["quoteItem"], document.lines, strict=True):
        assert isinstance(item["quantity"], int)
        price = item["quoteItemPrice"][0]
        size, _, unit = price["unitOfMeasure"].rpartition(" ")
        assert (unit, item["quantity"] * Decimal(size or 1)) == (line.unit, line.quantity)
        stated = price["price"].get("dutyFreeAmount") or price["price"]["taxIncludedAmount"]
        assert stated["unit"] == document.currency
        expected = line.net if line.months is not None or line.tax.inclusive else line.amount
        if "dutyFreeAmount" in price["price"] and line.months is None:
            expected = line.amount
        assert Decimal(stated["value"]) == expected.amount
        assert (price.get("recurringChargePeriod") == "month") == (price["priceType"] == "recurring")
        assert ("taxRate" in price["price"]) == (line.tax.amount is not None)
        if line.list_unit_price is None:
            assert "priceAlteration" not in price
    total = quote["quoteTotalPrice"][-1]["price"]
    assert Decimal(total["dutyFreeAmount"]["value"]) == document.net.amount
    assert ("taxIncludedAmount" in total) == (document.gross is not None)
    assert as_sold(document.lines[0]).quantity > 0


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [
        ("8", (8, "node_hour")),
        ("31.43008", (3143008, "0.00001 node_hour")),
        ("0.000000001", (1, "0.000000001 node_hour")),
        ("9007199254740993", (1, "9007199254740993 node_hour")),
        ("9007199254.740993", (1, "9007199254.740993 node_hour")),
    ],
)
def test_an_integer_quantity_states_its_unit(quantity: str, expected: tuple[int, str]) -> None:
    assert integer_quantity(Decimal(quantity), "node_hour") == expected


def test_periods_are_instants_of_the_quotes_zone() -> None:
    assert tmf_quote(VARIANTS["one item"])["validFor"] == {
        "startDateTime": "2026-11-30T16:00:00.000Z",
        "endDateTime": "2026-12-31T16:00:00.000Z",
    }


def test_pages_fields_and_strangers(desk: Desk, as_person: Caller) -> None:
    first = desk.create(customer={"external_ref": "acme", "name": "ACME"})["id"]
    second, _ = desk.issued()
    everything = desk.client.get(PATH)
    assert [quote["id"] for quote in everything.json()] == [second, first]
    assert [quote["state"] for quote in everything.json()] == ["approved", "inProgress"]
    assert (everything.headers["x-total-count"], everything.headers["x-result-count"]) == ("2", "2")
    page = desk.client.get(PATH, params={"offset": 1, "limit": 1, "fields": "state,externalId"})
    assert page.json() == [{"id": first, "href": f"{PATH}/{first}", "state": "inProgress", "externalId": "acme"}]
    assert (page.headers["x-total-count"], page.headers["x-result-count"]) == ("2", "1")
    assert "link" not in page.headers
    assert 'offset=1&limit=1>; rel="next"' in desk.client.get(PATH, params={"limit": 1}).headers["link"]
    assert desk.client.get(PATH, params={"offset": 9}).json() == []
    shown = desk.client.get(f"{PATH}/{second}").json()
    assert (shown["version"], shown["number"]) == ("1", "Q-2026-000001")
    unknown = desk.client.get(PATH, params={"fields": "state,margin"})
    assert (unknown.status_code, unknown.json()["errors"][0]["parameter"]) == (422, "fields")
    assert desk.client.get(PATH, params={"stat": "x"}).status_code == 400
    stranger = as_person("eve", "quotes:read", tenant="ten_other")
    assert stranger.client.get(f"{PATH}/{first}").status_code == 404
    assert stranger.client.get(PATH).json() == []
