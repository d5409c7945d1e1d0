"""How a document is rounded and taxed, as data: the policy's id stands on the quote."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from app.pricing.currency import exponent
from app.pricing.errors import PricingError
from app.pricing.money import CONTEXT, ONE, ZERO, Money
from app.pricing.waterfall import check_share

TaxScope = Literal["tax_by_rate", "tax_per_line"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundingPolicy:
    """Lines are rounded half up once; tax is rounded per rate over the document, or on every line."""

    id: str
    tax_scope: TaxScope


POLICIES: dict[str, RoundingPolicy] = {
    p.id: p
    for p in (
        RoundingPolicy(id="line_half_up/tax_by_rate", tax_scope="tax_by_rate"),
        RoundingPolicy(id="line_half_up/tax_per_line", tax_scope="tax_per_line"),
    )
}
DEFAULT_POLICY = POLICIES["line_half_up/tax_by_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxRule:
    """A dated tax rate of one jurisdiction and category; an estimate, not tax advice.

    Parameters
    ----------
    rate : Decimal
        0.06 = 6 %.
    inclusive : bool
        Whether prices already contain it (shown as part of the price, not on top).
    """

    jurisdiction: str
    category: str
    rate: Decimal
    inclusive: bool
    valid_from: date
    valid_to: date | None
    source: str

    def __post_init__(self) -> None:
        check_share(self.rate)

    def on(self, day: date) -> bool:
        """Whether the rule holds on that day (half open)."""
        return self.valid_from <= day and (self.valid_to is None or day < self.valid_to)

    def tax_of(self, amount: Money) -> Money:
        """Tax of a taxable amount: on top of it, or the part already inside it; rounded once."""
        if self.inclusive:
            share = CONTEXT.divide(self.rate, ONE + self.rate)
            return amount.times(share)
        return amount.times(self.rate)


def allocate(amount: Money, weights: Sequence[Decimal]) -> tuple[Money, ...]:
    """Split an amount over lines so that the parts add up to it exactly (largest remainder, ties to the first).

    Parameters
    ----------
    amount : Money
        A settled amount, of either sign.
    weights : sequence of Decimal
        Not negative, at least one positive.
    """
    if not weights or any(w < 0 for w in weights) or sum(weights, ZERO) == 0:
        raise PricingError("an amount is allocated over weights that are not negative and not all zero")
    unit = ONE.scaleb(-exponent(amount.currency))
    units = Fraction(amount.amount) / Fraction(unit)
    if units.denominator != 1:
        raise PricingError(f"{amount.text} {amount.currency} is not a settled amount")
    sign, whole = (-1 if units < 0 else 1), abs(units.numerator)
    everything = sum(map(Fraction, weights))
    exact = [whole * Fraction(w) / everything for w in weights]
    parts = [e.numerator // e.denominator for e in exact]
    by_remainder = sorted(range(len(weights)), key=lambda i: (parts[i] - exact[i], i))
    for i in by_remainder[: whole - sum(parts)]:
        parts[i] += 1
    return tuple(Money.settled(unit * (sign * p), amount.currency) for p in parts)
