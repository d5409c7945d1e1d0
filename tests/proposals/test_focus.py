"""FOCUS 1.2: the identities hold to the last digit, columns and values are those of the specification."""

import csv
import io
import re
from decimal import Decimal, getcontext, localcontext

import pytest

from app.proposals.focus import write_focus
from app.proposals.focus_columns import COLUMNS
from app.proposals.reading import read_document
from app.proposals.rendered import Options
from app.quotes.service import Shown
from tests.proposals.building import VARIANTS, Raw, RawItem, shown

# Mandatory columns of FOCUS 1.2 and those of them that hold no null.
MANDATORY = {
    "BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd",
    "BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd",
    "ChargePeriodStart", "ContractedCost", "EffectiveCost", "InvoiceIssuerName", "ListCost", "PricingQuantity",
    "PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName",
}  # fmt: skip
NULLABLE = {"BillingAccountName", "ChargeClass", "ChargeDescription", "PricingQuantity", "PricingUnit"}
OWN = {"x_QuoteNumber", "x_Revision", "x_QuoteLineId", "x_RfqId", "x_RoundedAmount", "x_IsEstimate"}
NUMBERS = [c for c in COLUMNS if c.endswith(("Cost", "UnitPrice", "Quantity")) or c == "x_RoundedAmount"]
MINOR = {"USD": 2, "CNY": 2, "JPY": 0, "KWD": 3}


def rows(found: Shown, locale: str = "en") -> list[dict[str, str]]:
    content = write_focus(read_document(found), Options(locale=locale)).content.decode()
    return list(csv.DictReader(io.StringIO(content, newline="")))


@pytest.mark.parametrize("name", VARIANTS)
def test_identities_and_values(name: str) -> None:
    document = read_document(VARIANTS[name])
    found = rows(VARIANTS[name])
    assert set(found[0]) >= MANDATORY | OWN
    with localcontext(getcontext(), prec=120):
        for row in found:
            _values(row, document.currency)
            if row["ChargeCategory"] == "Tax":
                assert not row["ListUnitPrice"] + row["ContractedUnitPrice"] + row["PricingQuantity"]
                assert not row["PricingCategory"]
                continue
            quantity = Decimal(row["PricingQuantity"])
            assert Decimal(row["ListUnitPrice"]) * quantity == Decimal(row["ListCost"])
            assert Decimal(row["ContractedUnitPrice"]) * quantity == Decimal(row["ContractedCost"])
            assert Decimal(row["ListUnitPrice"]) >= Decimal(row["ContractedUnitPrice"])
        billed = sum(Decimal(row["BilledCost"]) for row in found)
    assert billed == (document.gross or document.net).amount
    lines = [row for row in found if row["ChargeCategory"] != "Tax"]
    assert sum(Decimal(row["x_RoundedAmount"]) for row in lines) == document.net.amount
    assert [row["x_QuoteLineId"] for row in lines] == [line.id for line in document.lines]


def _values(row: dict[str, str], currency: str) -> None:
    assert {c for c in MANDATORY - NULLABLE if not row[c]} == set()
    assert row["x_IsEstimate"] == "true"
    assert row["BillingCurrency"] == currency
    for column in NUMBERS:
        assert re.fullmatch(r"([0-9]+(\.[0-9]+)?)?", row[column]), (column, row[column])
    for column in ("BilledCost", "EffectiveCost", "x_RoundedAmount"):
        assert len(row[column].partition(".")[2]) == MINOR[currency]
    for column in ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"):
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[column])
    assert row["BillingPeriodStart"] <= row["ChargePeriodStart"] < row["ChargePeriodEnd"] <= row["BillingPeriodEnd"]
    assert row["ChargeCategory"] in {"Usage", "Purchase", "Tax", "Adjustment"}
    assert row["ChargeFrequency"] in {"One-Time", "Recurring", "Usage-Based"}
    assert (row["ChargeCategory"], row["ChargeFrequency"]) != ("Purchase", "Usage-Based")
    assert row["PricingCategory"] in {"", "Standard", "Committed", "Dynamic", "Other"}
    if row["ChargeCategory"] in ("Usage", "Purchase"):
        assert row["PricingCategory"]
        assert row["PricingQuantity"]
    assert bool(row["ConsumedQuantity"]) == (row["ChargeCategory"] == "Usage")
    assert bool(row["SkuPriceDetails"]) == bool(row["SkuPriceId"])


def test_recurring_charges_cover_their_months() -> None:
    month = next(row for row in rows(VARIANTS["both USD"]) if row["ChargeFrequency"] == "Recurring")
    assert (month["PricingQuantity"], month["PricingUnit"], month["x_Months"]) == ("8760", "Node-Hours", "12")
    # Midnight of 1 December in Shanghai, and of 1 December a year later.
    assert (month["ChargePeriodStart"], month["ChargePeriodEnd"]) == ("2026-11-30T16:00:00Z", "2027-11-30T16:00:00Z")
    assert (month["BillingPeriodStart"], month["BillingPeriodEnd"]) == ("2026-11-01T00:00:00Z", "2027-12-01T00:00:00Z")
    assert month["PricingCategory"] == "Committed"


def test_under_a_markup_the_sellers_price_is_the_list_price() -> None:
    for row in rows(VARIANTS["discount and markup"]):
        assert row["ListUnitPrice"] == row["ContractedUnitPrice"]
        assert not row["SkuPriceId"]
    plain = rows(VARIANTS["discount"])[0]
    assert Decimal(plain["ContractedUnitPrice"]) < Decimal(plain["ListUnitPrice"])
    assert plain["SkuPriceId"] == "prc_1"


def test_a_tax_that_is_not_determined_has_no_row() -> None:
    found = rows(VARIANTS["no tax known"])
    assert {row["ChargeCategory"] for row in found} == {"Usage", "Purchase", "Adjustment"}
    assert {row["x_TaxStatus"] for row in found} == {"not_determined"}


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "＝1"])
def test_text_that_a_spreadsheet_would_calculate_is_text(start: str) -> None:
    item = RawItem(lines=(Raw(quantity="1", list_price="2"),), id=start)
    row = rows(shown((item,), customer={"external_ref": start, "name": start}))[0]
    for column in ("BillingAccountId", "BillingAccountName", "x_RfqId", "x_ItemId"):
        assert row[column] == f"'{start}"
    # Figures are never touched.
    assert row["BilledCost"] == "2.00"


def test_descriptions_follow_the_locale() -> None:
    assert rows(VARIANTS["one item"], "zh-CN")[0]["ChargeDescription"] == "加速器时长：训练"
