"""FOCUS 1.2 as CSV: one row for each line over its whole period, one for each tax that is known.

``ListUnitPrice x PricingQuantity`` is ``ListCost`` to the last digit, and the same for the contracted price, because
these are the unrounded products; what the quote bills is the rounded amount, in ``BilledCost`` and
``x_RoundedAmount``. Discounts are in the price: there are no negative rows. Where the list price is the seller's cost
(under a mark-up), the seller's own price stands as the list price. A quote is no bill: every row is an estimate, and
its period is counted from the first day of validity.
"""

import csv
import io
import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact

from app.foundation.canonical import canonical_bytes
from app.pricing.money import CONTEXT, ONE, ZERO, plain
from app.proposals.document import Document, Item, Line, Tax
from app.proposals.focus_columns import COLUMNS, FREQUENCIES, MACHINE_TIME, PRICING, SERVICES, TAXES
from app.proposals.rendered import Options, Rendered
from app.proposals.spreadsheet import text_cell
from app.proposals.units import focus_unit

# A price of 30 digits times a quantity of 27 and the months; anything inexact is a fault, not a rounding.
_EXACT = Context(prec=100, traps=[Inexact])

Row = dict[str, str]


def write_focus(document: Document, options: Options) -> Rendered:
    """Write the rows."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    for item in document.items:
        writer.writerows(_line(document, item, line, options.locale) for line in item.lines)
        writer.writerows(_taxes(document, item))
    content = text.getvalue().encode()
    return Rendered(content=content, media_type="text/csv; charset=utf-8", extension="focus.csv")


def _shared(document: Document, item: Item, period: tuple[datetime, datetime]) -> Row:
    start, end = period
    return {
        "BillingAccountId": text_cell(document.customer_ref or document.quote_id),
        "BillingAccountName": text_cell(document.customer_name),
        "BillingCurrency": document.currency,
        "BillingPeriodStart": _instant(_month_of(start)),
        "BillingPeriodEnd": _instant(_next_month(end - timedelta(seconds=1))),
        "ChargePeriodStart": _instant(start),
        "ChargePeriodEnd": _instant(end),
        "InvoiceIssuerName": text_cell(document.seller),
        "ProviderName": text_cell(item.provider or document.seller),
        "PublisherName": text_cell(item.provider or document.seller),
        "PricingCurrency": document.currency,
        "RegionId": text_cell(item.region),
        "x_QuoteNumber": document.number,
        "x_Revision": str(document.revision),
        "x_RfqId": text_cell(document.customer_ref),
        "x_IsEstimate": "true",
        "x_Standing": str(document.standing),
        "x_ItemId": text_cell(item.id),
    }


def _line(document: Document, item: Item, line: Line, locale: str) -> Row:
    quantity = line.quantity if line.months is None else _EXACT.multiply(line.quantity, line.months)
    listed = line.list_unit_price or line.unit_price
    contingency = line.kind == "contingency"
    category, subcategory = SERVICES.get(line.kind, MACHINE_TIME)
    usage = line.charge != "one_off" and not contingency
    unit = focus_unit(line.unit)
    details = {"x_PurchaseModel": item.purchase_model, "x_TermMonths": item.term_months}
    return {
        **_shared(document, item, _period(document, item, line)),
        "BilledCost": line.amount.text,
        "EffectiveCost": line.amount.text,
        "ChargeCategory": "Adjustment" if contingency else "Usage" if usage else "Purchase",
        "ChargeDescription": line.description[locale],
        "ChargeFrequency": FREQUENCIES[line.charge],
        "ConsumedQuantity": plain(quantity) if usage else "",
        "ConsumedUnit": unit if usage else "",
        "ContractedCost": plain(_EXACT.multiply(line.unit_price.amount, quantity)),
        "ContractedUnitPrice": plain(line.unit_price.amount),
        "ListCost": plain(_EXACT.multiply(listed.amount, quantity)),
        "ListUnitPrice": plain(listed.amount),
        "PricingCategory": "" if contingency else PRICING.get(item.purchase_model, "Other"),
        "PricingQuantity": plain(quantity),
        "PricingUnit": unit,
        "ServiceCategory": category,
        "ServiceSubcategory": subcategory,
        "ServiceName": line.kind,
        "SkuId": text_cell(item.instance_type),
        "SkuPriceId": text_cell(line.price_id),
        "SkuPriceDetails": canonical_bytes(details).decode() if line.price_id else "",
        "x_QuoteLineId": line.id,
        "x_RoundedAmount": line.amount.text,
        "x_LineKind": line.kind,
        "x_TaxStatus": _tax_status(line.tax),
        "x_HoursBasis": line.hours_basis or "",
        "x_Months": "" if line.months is None else plain(line.months),
    }


def _tax_status(tax: Tax) -> str:
    if tax.amount is None:
        return "not_determined"
    return "included_in_unit_price" if tax.inclusive else "in_rows_of_its_own"


def _taxes(document: Document, item: Item) -> Iterator[Row]:
    for number, tax in enumerate(item.taxes, start=1):
        if tax.amount is None or tax.rate is None:
            continue
        rows = [_line(document, item, line, "en") for line in item.lines if line.tax is tax]
        share = CONTEXT.divide(tax.rate, ONE + tax.rate) if tax.inclusive else tax.rate
        starts, ends = zip(*(_period(document, item, line) for line in item.lines), strict=True)
        category, subcategory = TAXES
        yield {
            **_shared(document, item, (min(starts), max(ends))),
            "BilledCost": tax.amount.text,
            "EffectiveCost": tax.amount.text,
            "ChargeCategory": "Tax",
            "ChargeDescription": f"Tax {plain(tax.rate * 100)} % {tax.jurisdiction}",
            "ChargeFrequency": "One-Time",
            # Tax of the unrounded costs, as FOCUS has it; the billed tax is that of the quote.
            "ContractedCost": _of(rows, "ContractedCost", share),
            "ListCost": _of(rows, "ListCost", share),
            "ServiceCategory": category,
            "ServiceSubcategory": subcategory,
            "ServiceName": "tax",
            "x_QuoteLineId": f"T{item_number(document, item)}-{number}",
            "x_RoundedAmount": tax.amount.text,
            "x_LineKind": "tax",
            "x_TaxStatus": "estimated",
        }


def item_number(document: Document, item: Item) -> int:
    """Count the item's place from one."""
    return document.items.index(item) + 1


def _of(rows: list[Row], column: str, share: Decimal) -> str:
    added = sum((Decimal(row[column]) for row in rows), ZERO)
    return plain(Context(prec=60).multiply(added, share))


def _period(document: Document, item: Item, line: Line) -> tuple[datetime, datetime]:
    """Count the charge's period from the first day of validity: its months, or the hours of the job."""
    start = document.valid_from_at
    if line.months is not None or (item.months is not None and line.charge == "one_off"):
        return start.astimezone(UTC), _plus_months(start, math.ceil(item.months or ONE)).astimezone(UTC)
    hours = math.ceil(item.duration_hours or 1)
    return start.astimezone(UTC), start.astimezone(UTC) + timedelta(hours=hours)


def _plus_months(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _month_of(moment: datetime) -> datetime:
    return moment.replace(day=1, hour=0, minute=0, second=0)


def _next_month(moment: datetime) -> datetime:
    return _plus_months(_month_of(moment), 1)


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
