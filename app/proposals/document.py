"""What a customer may know of a stored revision, as frozen values: every format is written from these and nothing else.

Cost, mark-up, margin and floor prices have no place here, so no format can leak them, whoever asks. Prices are the
stored ones; nothing is looked up or computed anew but the sums over the months a recurring charge is quoted for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

from app.pricing.money import Money

LUMP, MONTH = "lump", "month"


class Standing(StrEnum):
    """What a revision is to its reader."""

    DRAFT = "draft"
    OFFER = "offer"
    VOID = "void"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tax:
    """One tax row of one item; ``amount`` is None where the tax is not determined, which is not zero."""

    item_id: str
    category: str
    jurisdiction: str | None
    rate: Decimal | None
    inclusive: bool
    base: Money
    amount: Money | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line as it is sold.

    Parameters
    ----------
    id : str
        Unique in the document, at most ten characters: the stored id, after the item's position where there are more.
    pointer : str
        RFC 6901 pointer to the line in the revision.
    list_unit_price : Money or None
        None where it is the seller's cost: under a mark-up, and on owned hardware.
    net : Money
        As stored: of one month where the charge recurs.
    months : Decimal or None
        Months that a recurring charge is quoted for.
    amount : Money
        What the line adds to the total, less tax that its price includes.
    included_tax : Money
        That tax.
    """

    id: str
    pointer: str
    item_id: str
    kind: str
    charge: str
    description: Mapping[str, str]
    quantity: Decimal
    unit: str
    hours_basis: str | None
    list_unit_price: Money | None
    unit_price: Money
    discount: Money | None
    net: Money
    months: Decimal | None
    amount: Money
    included_tax: Money
    tax: Tax
    price_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sold:
    """Quantity times unit price of a line in the form other systems take: months of a month's price, or one lump."""

    quantity: Decimal
    unit: str
    unit_price: Money
    list_unit_price: Money | None


def as_sold(line: Line) -> Sold:
    """Give the line as quantity and price whose product, rounded once, is its part of the total before discount."""
    whole = line.amount + line.included_tax
    if line.months is not None and line.kind != "contingency":
        return Sold(quantity=line.months, unit=MONTH, unit_price=line.net, list_unit_price=None)
    before_discount = whole if line.discount is None else whole + line.discount
    # The parts of an owned hour are rounded one by one and shown as one line, which then is no product of its price.
    if line.kind == "contingency" or line.unit_price.times(line.quantity) != before_discount:
        return as_lump(line, before_discount)
    return Sold(
        quantity=line.quantity, unit=line.unit, unit_price=line.unit_price, list_unit_price=line.list_unit_price
    )


def as_lump(line: Line, amount: Money | None = None) -> Sold:
    """Give the line as one piece at its whole amount."""
    return Sold(quantity=Decimal(1), unit=LUMP, unit_price=amount or line.amount, list_unit_price=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item of the quote with the option that is offered, or was accepted."""

    id: str
    kind: str
    option_id: str
    label: Mapping[str, str]
    provider: str | None
    instance_type: str | None
    offer_id: str | None
    region: str | None
    purchase_model: str
    term_months: int | None
    duration_hours: float | None
    months: Decimal | None
    configuration: Mapping[str, Any]
    performance: Mapping[str, Any]
    lines: tuple[Line, ...]
    taxes: tuple[Tax, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A revision as an export states it; ``is_over`` tells an offer whose last day has ended."""

    number: str
    quote_number: str | None
    quote_id: str
    revision_id: str
    revision: int
    content_sha256: str
    status: str
    standing: Standing
    is_over: bool
    dated: datetime
    valid_from_on: date
    valid_through_on: date
    timezone: str
    expires_at: datetime
    seller: str
    customer_ref: str | None
    customer_name: str | None
    title: str | None
    currency: str
    items: tuple[Item, ...]
    one_off: Money
    recurring_monthly: Money
    usage: Money
    net: Money
    gross: Money | None
    rounding_policy: str
    pins: Mapping[str, str | None]

    @property
    def valid_from_at(self) -> datetime:
        """Midnight at which the first day begins, in its own zone."""
        return datetime.combine(self.valid_from_on, time.min, tzinfo=ZoneInfo(self.timezone))

    @property
    def lines(self) -> tuple[Line, ...]:
        """All lines, in order."""
        return tuple(line for item in self.items for line in item.lines)

    @property
    def taxes(self) -> tuple[Tax, ...]:
        """All tax rows, in order."""
        return tuple(tax for item in self.items for tax in item.taxes)

    @property
    def tax_amount(self) -> Money | None:
        """Sum of all taxes; None where one is not determined."""
        return None if self.gross is None else self.gross - self.net

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know beside the figures."""
        said = []
        if self.standing is Standing.DRAFT:
            said.append("DRAFT: not an offer, and not open to acceptance.")
        elif self.standing is Standing.VOID:
            said.append(f"VOID: this revision is {self.status} and no longer an offer.")
        said.append("Quantities are estimates of a performance model; the prices are those of the stored revision.")
        if self.tax_amount is None:
            said.append("Tax: not determined. All amounts are without tax.")
        else:
            said.append("Tax: an estimate, not tax advice.")
        if any(line.months is not None for line in self.lines):
            said.append("Recurring charges are counted for the months stated as their quantity.")
        said.append(f"Rounding: {self.rounding_policy}. Content SHA-256: {self.content_sha256}.")
        return tuple(said)
