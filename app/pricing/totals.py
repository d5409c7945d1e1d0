"""Totals of a priced document; every identity holds on the rounded values that are printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.pricing.errors import CurrencyMismatchError, PricingError
from app.pricing.line_items import Charge, Line
from app.pricing.money import CONTEXT, ZERO, Money, plain, total
from app.pricing.rounding import RoundingPolicy, TaxRule


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxAmount:
    """Tax of one category and rate; ``amount`` is None when no rule is known (``not_determined``), never zero."""

    category: str
    rule: TaxRule | None
    base: Money
    amount: Money | None

    def as_json(self) -> dict[str, object]:
        """The shape a revision stores."""
        return {
            "category": self.category,
            "jurisdiction": self.rule.jurisdiction if self.rule else None,
            "rate": plain(self.rule.rate) if self.rule else None,
            "inclusive": self.rule.inclusive if self.rule else None,
            "base": self.base.as_json(),
            "amount": self.amount.as_json() if self.amount else None,
            "status": "estimated" if self.amount else "not_determined",
            "source": self.rule.source if self.rule else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums by charge, and over the horizon when there is one.

    Parameters
    ----------
    one_off, recurring_monthly, usage : Money
    horizon_months : Decimal or None
        Months the recurring charge is counted for; None where nothing recurs.
    net : Money
        ``one_off + usage + recurring_monthly x horizon``, less tax that prices already include.
    tax : tuple of TaxAmount
    gross : Money or None
        ``net`` plus all taxes; None when a tax is not determined.
    rounding : Money
        What line rounding added against the unrounded products.
    """

    one_off: Money
    recurring_monthly: Money
    usage: Money
    horizon_months: Decimal | None
    net: Money
    tax: tuple[TaxAmount, ...]
    gross: Money | None
    rounding: Money
    policy: str

    def as_json(self) -> dict[str, object]:
        """The shape a revision stores."""
        return {
            "one_off": self.one_off.as_json(),
            "recurring_monthly": self.recurring_monthly.as_json(),
            "usage": self.usage.as_json(),
            "tco_horizon_months": None if self.horizon_months is None else plain(self.horizon_months),
            "net": self.net.as_json(),
            "tax": [t.as_json() for t in self.tax],
            "gross": self.gross.as_json() if self.gross else None,
            "rounding": self.rounding.as_json(),
            "rounding_policy": self.policy,
        }


def totals(
    lines: Sequence[Line],
    currency: str,
    policy: RoundingPolicy,
    taxes: Sequence[TaxRule],
    horizon_months: Decimal | None = None,
) -> Totals:
    """Add up a document whose every line is priced.

    Raises
    ------
    PricingError
        Lines recur and no horizon was stated: one-off, recurring and usage are never mixed silently.
    """
    for line in lines:
        if line.net.currency != currency:
            raise CurrencyMismatchError(line.net.currency, currency)
    recurring = [line for line in lines if line.charge == "recurring"]
    if recurring and horizon_months is None:
        raise PricingError("recurring lines are totalled over a stated horizon only")
    months = horizon_months if recurring else None
    counted = [(line, line.net.times(months) if months and line.charge == "recurring" else line.net) for line in lines]
    listed = total((net for _, net in counted), currency)
    tax = _taxes(counted, currency, policy, taxes)
    inside = total((t.amount for t in tax if t.amount and t.rule and t.rule.inclusive), currency)
    net = listed - inside
    known = all(t.amount is not None for t in tax)
    return Totals(
        one_off=_sum(lines, "one_off", currency),
        recurring_monthly=_sum(lines, "recurring", currency),
        usage=_sum(lines, "usage", currency),
        horizon_months=months,
        net=net,
        tax=tax,
        gross=total([net, *(t.amount for t in tax if t.amount)], currency) if known else None,
        rounding=_rounding(counted, currency, months),
        policy=policy.id,
    )


def _sum(lines: Sequence[Line], charge: Charge, currency: str) -> Money:
    return total((line.net for line in lines if line.charge == charge), currency)


def _taxes(
    counted: Sequence[tuple[Line, Money]], currency: str, policy: RoundingPolicy, taxes: Sequence[TaxRule]
) -> tuple[TaxAmount, ...]:
    rules = {rule.category: rule for rule in taxes}
    result = []
    for category in sorted({line.tax_category for line, _ in counted}):
        nets = [net for line, net in counted if line.tax_category == category]
        base = total(nets, currency)
        rule = rules.get(category)
        amount = None
        if rule is not None:
            by_rate = policy.tax_scope == "tax_by_rate"
            amount = rule.tax_of(base) if by_rate else total((rule.tax_of(net) for net in nets), currency)
        shown = base - amount if rule and amount and rule.inclusive else base
        result.append(TaxAmount(category=category, rule=rule, base=shown, amount=amount))
    return tuple(result)


def _rounding(counted: Sequence[tuple[Line, Money]], currency: str, months: Decimal | None) -> Money:
    difference = ZERO
    for line, net in counted:
        product = CONTEXT.multiply(line.quantity, line.waterfall.net_unit_price.amount)
        if line.discount:
            product = CONTEXT.subtract(product, line.discount.amount)
        if months and line.charge == "recurring":
            product = CONTEXT.multiply(product, months)
        difference = CONTEXT.add(difference, CONTEXT.subtract(net.amount, product))
    return Money.unit(difference, currency)
