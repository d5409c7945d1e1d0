"""OCI: lengths and decimals of SAP's table, nothing rounded, everything that was cut named."""

import html
import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import ROUND_HALF_UP, Decimal
from urllib.parse import parse_qs

import pytest

from app.foundation.problems import Problem
from app.proposals.oci import write_oci
from app.proposals.reading import read_document
from app.proposals.rendered import Options
from app.proposals.rendering import render
from app.quotes.lifecycle import Status
from app.quotes.service import Shown
from tests.proposals.building import CURRENCIES, VARIANTS, Raw, RawItem, shown

OFFERS = [name for name in VARIANTS if name != "draft"]
LENGTHS = {
    "DESCRIPTION": 40, "QUANTITY": 15, "UNIT": 3, "PRICE": 15, "CURRENCY": 5, "PRICEUNIT": 5, "VENDOR": 10,
    "VENDORMAT": 40, "MATGROUP": 10, "SERVICE": 1, "EXT_QUOTE_ID": 35, "EXT_QUOTE_ITEM": 10, "EXT_PRODUCT_ID": 40,
}  # fmt: skip
MINOR = {"USD": 2, "CNY": 2, "JPY": 0, "KWD": 3}
WHOLE = RawItem(lines=(Raw(quantity="100.125", list_price="2.4995", en="Accelerator time"),))


def fields(found: Shown, **options: str) -> dict[str, str]:
    content = write_oci(read_document(found), Options(encoding="json", **options)).content
    parsed: dict[str, str] = json.loads(content)
    return parsed


@pytest.mark.parametrize("name", OFFERS)
def test_lengths_digits_and_amounts(name: str) -> None:
    document = read_document(VARIANTS[name])
    found = fields(VARIANTS[name])
    unit = Decimal(1).scaleb(-MINOR[document.currency])
    for n, line in enumerate(document.lines, start=1):
        row = {key: found[f"NEW_ITEM-{key}[{n}]"] for key in LENGTHS if f"NEW_ITEM-{key}[{n}]" in found}
        assert {key for key, value in row.items() if len(value) > LENGTHS[key]} == set()
        for key in ("QUANTITY", "PRICE"):
            assert re.fullmatch(r"\d{1,11}(\.\d{1,3})?", row[key])
        assert re.fullmatch(r"10{0,4}", row["PRICEUNIT"])
        product = Decimal(row["QUANTITY"]) * Decimal(row["PRICE"]) / Decimal(row["PRICEUNIT"])
        assert product.quantize(unit, rounding=ROUND_HALF_UP) == line.amount.amount
        assert (row["EXT_QUOTE_ID"], row["EXT_QUOTE_ITEM"]) == (document.number, line.id)
        assert (row["CURRENCY"], row["SERVICE"]) == (document.currency, "X")
        assert line.description["en"] in found[f"NEW_ITEM-LONGTEXT_{n}:132[]"]


@pytest.mark.parametrize("currency", CURRENCIES)
def test_what_fits_goes_as_it_is(currency: str) -> None:
    row = fields(shown((WHOLE,), currency=currency), mode="strict")
    assert (row["NEW_ITEM-QUANTITY[1]"], row["NEW_ITEM-UNIT[1]"]) == ("100.125", "HUR")
    assert (row["NEW_ITEM-PRICE[1]"], row["NEW_ITEM-PRICEUNIT[1]"]) == ("24.995", "10")


def test_strict_refuses_every_field_that_does_not_fit() -> None:
    with pytest.raises(Problem) as caught:
        fields(VARIANTS["one item"], mode="strict")
    assert caught.value.slug == "export-not-representable"
    found = [(row["pointer"], row["field"], row["limit"]) for row in caught.value.extensions["fields"]]
    lines = "/items/0/options/0/cost/lines"
    digits = "11 digits and 3 decimals, a unit with a code"
    assert found == [
        (f"{lines}/0/quantity", "NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", digits),
        (f"{lines}/1/quantity", "NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", digits),
        (f"{lines}/1/description", "NEW_ITEM-DESCRIPTION", "40 characters"),
        (f"{lines}/3/quantity", "NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", digits),
    ]
    assert caught.value.extensions["fields"][2]["value"] == "Accelerator time lost to failures and restarts"
    assert "lenient" in caught.value.detail


def test_lenient_cuts_and_says_what_it_was() -> None:
    rendered = write_oci(read_document(VARIANTS["one item"]), Options(encoding="json"))
    row = json.loads(rendered.content)
    assert row["NEW_ITEM-DESCRIPTION[2]"] == "Accelerator time lost to failures and re"
    assert (row["NEW_ITEM-QUANTITY[1]"], row["NEW_ITEM-UNIT[1]"], row["NEW_ITEM-PRICE[1]"]) == ("1", "C62", "3297.52")
    said = {(a.field, a.value) for a in rendered.adaptations}
    assert ("NEW_ITEM-DESCRIPTION", "Accelerator time lost to failures and restarts") in said
    assert ("NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", "31.43008 node_hour at 104.915952380952") in said


def test_an_amount_that_does_not_fit_is_refused_in_both_modes() -> None:
    huge = RawItem(lines=(Raw(quantity="1000000.1234", list_price="123456.789", en="Time"),))
    for mode in ("lenient", "strict"):
        with pytest.raises(Problem) as caught:
            fields(shown((huge,)), mode=mode)
        assert "NEW_ITEM-PRICE" in {row["field"] for row in caught.value.extensions["fields"]}


def test_four_decimals_go_by_the_price_unit() -> None:
    item = RawItem(lines=(Raw(quantity="1.00001", list_price="0.1234", en="Time"),))
    row = fields(shown((item,), currency="CLF"))
    assert (row["NEW_ITEM-PRICE[1]"], row["NEW_ITEM-PRICEUNIT[1]"]) == ("1.234", "10")


def test_the_three_encodings_say_the_same() -> None:
    hostile = '"><script>alert(1)</script>&'
    item = RawItem(lines=(Raw(quantity="1", list_price="2", en="Time"),), label=hostile)
    document = read_document(shown((item,)))
    as_json = json.loads(write_oci(document, Options(encoding="json")).content)
    encoded = parse_qs(write_oci(document, Options(encoding="urlencoded")).content.decode(), strict_parsing=True)
    assert {name: values[0] for name, values in encoded.items()} == as_json
    page = write_oci(document, Options(hook_url='https://b.example/?a="&b')).content.decode()
    assert "<script>" not in page
    assert 'action="https://b.example/?a=&quot;&amp;b"' in page
    inputs = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    assert {html.unescape(name): html.unescape(value) for name, value in inputs} == as_json


@pytest.mark.parametrize(
    "status", [Status.DRAFT, Status.IN_REVIEW, Status.APPROVED, Status.WITHDRAWN, Status.SUPERSEDED]
)
def test_nothing_but_an_offer_becomes_a_cart(status: Status) -> None:
    with pytest.raises(Problem) as caught:
        render(read_document(shown((WHOLE,), status=status)), "oci", {})
    assert [row["pointer"] for row in caught.value.extensions["fields"]] == ["/status"]


@pytest.mark.parametrize("file_format", ["oci", "cxml"])
def test_no_cart_after_the_last_day(file_format: str) -> None:
    found = shown((WHOLE,))
    chosen = {"buyer_cookie": "c"} if file_format == "cxml" else {}
    late = replace(found, now=found.revision.head.expires_at)
    early = replace(found, now=late.now - timedelta(microseconds=1))
    render(read_document(early), file_format, chosen)
    with pytest.raises(Problem) as caught:
        render(read_document(late), file_format, chosen)
    assert caught.value.slug == "quote-expired"
    assert render(read_document(late), "ubl", {}).content == render(read_document(early), "ubl", {}).content
