"""UBL: arithmetic on every kind of revision, prices in Peppol's form, text that tries to break the XML."""

import os
from decimal import Decimal
from pathlib import Path

import pytest

from app.foundation.problems import Problem
from app.proposals.reading import read_document
from app.proposals.rendered import Options
from app.proposals.ubl import write_ubl
from app.quotes.service import Shown
from tests.proposals.building import VARIANTS, Raw, RawItem, shown
from tests.proposals.ubl_rules import CAC, CBC, check, number

OPTIONS = Options()


def write(found: Shown) -> bytes:
    return write_ubl(read_document(found), OPTIONS).content


@pytest.mark.parametrize("name", VARIANTS)
def test_arithmetic_and_shape(name: str) -> None:
    found = VARIANTS[name]
    document = read_document(found)
    root = check(write(found))
    totals = root.find(f"{CAC}QuotedMonetaryTotal")
    assert totals is not None
    assert number(totals, "TaxExclusiveAmount") == document.net.amount
    assert number(totals, "PayableAmount") == (document.gross or document.net).amount


def test_included_tax_is_stated_and_leaves_the_lines() -> None:
    root = check(write(VARIANTS["included tax CNY"]))
    assert root.findtext(f"{CAC}TaxTotal/{CBC}TaxIncludedIndicator") == "true"
    parts = [
        number(allowance, "Amount")
        for allowance in root.findall(f"{CAC}QuotationLine/{CAC}LineItem/{CAC}AllowanceCharge")
        if allowance.findtext(f"{CBC}AllowanceChargeReason") == "Tax included in the price"
    ]
    assert sum(parts) == number(root, "*TaxTotal/TaxAmount") > 0


def test_a_tiny_price_is_stated_exactly_for_a_base_quantity() -> None:
    tokens = RawItem(lines=(Raw(quantity="123456789", list_price="0.000002345678", unit="token"),))
    root = check(write(shown((tokens,))))
    line = root.find(f"{CAC}QuotationLine/{CAC}LineItem/{CAC}Price")
    assert line is not None
    assert (line.findtext(f"{CBC}PriceAmount"), line.findtext(f"{CBC}BaseQuantity")) == ("234.5678", "100000000")


def test_a_price_of_more_digits_than_a_schema_holds_is_refused_by_name() -> None:
    long = RawItem(lines=(Raw(quantity="2", list_price="1234567.123456789012"), Raw(quantity="1", list_price="3")))
    with pytest.raises(Problem) as caught:
        write(shown((long,)))
    assert caught.value.slug == "export-not-representable"
    assert caught.value.extensions["fields"] == [
        {
            "pointer": "/items/0/options/0/cost/lines/0/net_unit_price",
            "field": "Price/PriceAmount",
            "limit": "4 decimals and 18 digits",
            "value": "1234567.123456789012",
        }
    ]


def test_a_discount_shows_beside_the_list_price_and_never_under_a_markup() -> None:
    price = f"{CAC}QuotationLine/{CAC}LineItem/{CAC}Price"
    discounted = check(write(VARIANTS["discount"]))
    listed = discounted.find(f"{price}/{CAC}AllowanceCharge/{CBC}BaseAmount")
    base = discounted.find(f"{price}/{CBC}BaseQuantity")
    assert listed is not None
    assert base is not None
    assert Decimal(listed.text or "") / Decimal(base.text or "") == Decimal("104.915952380952")
    assert check(write(VARIANTS["discount and markup"])).find(f"{price}/{CAC}AllowanceCharge") is None
    assert check(write(VARIANTS["owned"])).find(f"{price}/{CAC}AllowanceCharge") is None


HOSTILE = "]]><x/>&amp; \x0b\x1b\ufffe \u202egnp.exe 🚀 '\"--><!DOCTYPE"


def test_hostile_text_stays_text() -> None:
    rendered = write_ubl(
        read_document(shown(
            (RawItem(lines=(Raw(quantity="1", list_price="2"),), label=HOSTILE, id="a<b>&"),),
            title=HOSTILE, customer={"external_ref": HOSTILE, "name": HOSTILE},
        )), OPTIONS,
    )  # fmt: skip
    root = check(rendered.content)
    expected = HOSTILE.replace("\x0b", "\ufffd").replace("\x1b", "\ufffd").replace("\ufffe", "\ufffd")
    assert [note.text for note in root.findall(f"{CBC}Note")][-1] == expected
    party = f"{CAC}BuyerCustomerParty/{CAC}Party/{CAC}PartyName/{CBC}Name"
    assert root.findtext(party) == expected
    assert root.findtext(f"{CAC}QuotationLine/{CAC}LineItem/{CAC}Item/{CBC}Description") == f"a<b>&: {expected}"
    # What could not stand in XML was replaced, and is named with what it was.
    assert {a.pointer for a in rendered.adaptations} == {
        "/spec/title", "/parties/customer/external_ref", "/parties/customer/name", "/items/0/options/0/label/en",
    }  # fmt: skip


def test_a_draft_says_so() -> None:
    root = check(write(VARIANTS["draft"]))
    assert (root.findtext(f"{CBC}Note") or "").startswith("DRAFT: not an offer")
    assert root.findtext(f"{CBC}ID") == "D-0123456789abcdef0123456789abcdef"
    assert check(write(VARIANTS["one item"])).findtext(f"{CBC}ID") == "Q-2026-000007-2"


@pytest.mark.outside
@pytest.mark.skipif(
    "GPUQUOTE_UBL_XSD" not in os.environ, reason="GPUQUOTE_UBL_XSD names no copy of OASIS's UBL 2.1 xsd/"
)
@pytest.mark.parametrize("name", VARIANTS)
def test_the_schema_of_oasis_accepts_it(name: str) -> None:
    etree = pytest.importorskip("lxml.etree")
    schema = etree.XMLSchema(etree.parse(Path(os.environ["GPUQUOTE_UBL_XSD"]) / "maindoc" / "UBL-Quotation-2.1.xsd"))
    schema.assertValid(etree.fromstring(write(VARIANTS[name])))
