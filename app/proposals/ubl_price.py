"""A unit price in Peppol's form: at most four decimals, of a base quantity that makes it exact, or refused."""

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact

from app.pricing.money import UNIT_PRICE_DECIMALS, plain
from app.proposals.document import Sold
from app.proposals.errors import Fitting

# Peppol BIS ordering, totals: "Price" has at most four decimals.
PRICE_DECIMALS = 4
# XML Schema part 2, 3.2.3: a processor need not support more decimal digits than eighteen.
SCHEMA_DIGITS = 18
_EXACT = Context(prec=60, traps=[Inexact])


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Texts of a price of ``base_quantity`` units; ``listed`` and ``off`` where there is a list price to show."""

    net: str
    base_quantity: Decimal
    listed: str | None = None
    off: str | None = None


def price(sold: Sold, pointer: str, fitting: Fitting) -> Price:
    """Scale the price by the smallest power of ten that leaves four decimals."""
    net = sold.unit_price.amount
    listed = None if sold.list_unit_price is None else sold.list_unit_price.amount
    # A surcharge on the list price (a contract above it) is not an allowance; the price alone is stated then.
    shown = [net] if listed is None or listed <= net else [net, listed]
    power = min(
        p for p in range(UNIT_PRICE_DECIMALS + 1) if all(_decimals(v.scaleb(p)) <= PRICE_DECIMALS for v in shown)
    )
    scaled = [_EXACT.scaleb(value, power) for value in shown]
    for value in scaled:
        digits = len(plain(value).replace(".", "").lstrip("-0"))
        if digits > SCHEMA_DIGITS:
            fitting.refuse(
                f"{pointer}/net_unit_price", "Price/PriceAmount",
                f"{PRICE_DECIMALS} decimals and {SCHEMA_DIGITS} digits", plain(net),
            )  # fmt: skip
    base = Decimal(1).scaleb(power)
    if len(scaled) == 1:
        return Price(net=plain(scaled[0]), base_quantity=base)
    off = _EXACT.subtract(scaled[1], scaled[0])
    return Price(net=plain(scaled[0]), base_quantity=base, listed=plain(scaled[1]), off=plain(off))


def _decimals(value: Decimal) -> int:
    return len(plain(value).partition(".")[2])
