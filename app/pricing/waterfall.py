"""From list price to net unit price, step by step in a fixed order, each step recorded with its source.

list -> price book -> volume tier -> commitment -> negotiated percentage -> fixed discount -> markup -> net.
Contingency and tax belong to the document (:mod:`app.pricing.line_items`): contingency after markup, before tax.
``markup = price / cost - 1`` and ``margin = 1 - cost / price`` are different numbers; only markup is an input.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from app.pricing.errors import CurrencyMismatchError, MoneyFormatError
from app.pricing.money import CONTEXT, ONE, ZERO, Money

StepName = Literal["price_book", "volume_tier", "commitment", "negotiated", "fixed_discount", "markup"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBookRule:
    """One contracted rule: a fixed unit price, or a share off list, held within a floor and a cap."""

    source: str
    unit_price: Money | None = None
    percent_off: Decimal | None = None
    floor: Money | None = None
    cap: Money | None = None

    def __post_init__(self) -> None:
        if self.unit_price is not None and self.percent_off is not None:
            raise ValueError("a price book rule states a unit price or a share off list, not both")
        if self.percent_off is not None:
            check_share(self.percent_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeTier:
    """Share off for quantities of at least ``from_quantity``."""

    from_quantity: Decimal
    percent_off: Decimal
    source: str

    def __post_init__(self) -> None:
        check_share(self.percent_off)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustments:
    """Everything that moves a unit price, in the order of the fields."""

    price_book: PriceBookRule | None = None
    volume_tiers: tuple[VolumeTier, ...] = ()
    commitment_off: Decimal = ZERO
    commitment_source: str = ""
    negotiated_off: Decimal = ZERO
    negotiated_source: str = ""
    fixed_off: Money | None = None
    fixed_source: str = ""
    markup: Decimal = ZERO
    markup_source: str = ""

    def __post_init__(self) -> None:
        check_share(self.commitment_off)
        check_share(self.negotiated_off)
        if not self.markup.is_finite() or self.markup <= -ONE:
            raise MoneyFormatError(str(self.markup), "a markup is price / cost - 1 and above -1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One recorded step: the unit price after it and the difference it made."""

    name: StepName
    source: str
    delta: Money
    after: Money

    def as_json(self) -> dict[str, object]:
        """The shape a line shows."""
        return {
            "step": self.name,
            "source": self.source,
            "delta": self.delta.as_json(),
            "unit_price": self.after.as_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """List price, the steps taken, and the net unit price they lead to; the deltas add up exactly."""

    list_unit_price: Money
    steps: tuple[Step, ...] = field(default=())

    @property
    def net_unit_price(self) -> Money:
        """The last step's price."""
        return self.steps[-1].after if self.steps else self.list_unit_price

    @property
    def cost_unit_price(self) -> Money:
        """The price before markup: what the seller pays."""
        costs = [s.after for s in self.steps if s.name != "markup"]
        return costs[-1] if costs else self.list_unit_price


def check_share(share: Decimal) -> None:
    """Refuse a share that is not in [0, 1]."""
    if not share.is_finite() or not ZERO <= share <= ONE:
        raise MoneyFormatError(str(share), 'a share is a decimal fraction between "0" and "1"')


def waterfall(list_unit_price: Money, quantity: Decimal, adjustments: Adjustments) -> Waterfall:
    """Apply the adjustments in their fixed order; steps that change nothing are not recorded."""
    steps: list[Step] = []
    price = list_unit_price
    rule = adjustments.price_book
    if rule is not None:
        price = _record(steps, price, _booked(price, rule), "price_book", rule.source)
    tier = _tier(adjustments.volume_tiers, quantity)
    if tier is not None:
        price = _record(steps, price, _less(price, tier.percent_off), "volume_tier", tier.source)
    price = _record(steps, price, _less(price, adjustments.commitment_off), "commitment", adjustments.commitment_source)
    price = _record(steps, price, _less(price, adjustments.negotiated_off), "negotiated", adjustments.negotiated_source)
    if adjustments.fixed_off is not None:
        price = _record(
            steps, price, _not_below_zero(price, adjustments.fixed_off), "fixed_discount", adjustments.fixed_source
        )
    _record(steps, price, price.times_unit(ONE + adjustments.markup), "markup", adjustments.markup_source)
    return Waterfall(list_unit_price=list_unit_price, steps=tuple(steps))


def _record(steps: list[Step], before: Money, after: Money, name: StepName, source: str) -> Money:
    if after.amount != before.amount or name == "price_book":
        steps.append(Step(name=name, source=source, delta=after - before, after=after))
    return after


def _less(price: Money, share: Decimal) -> Money:
    return price if share == 0 else price.times_unit(CONTEXT.subtract(ONE, share))


def _booked(price: Money, rule: PriceBookRule) -> Money:
    for bound in (rule.unit_price, rule.floor, rule.cap):
        if bound is not None and bound.currency != price.currency:
            raise CurrencyMismatchError(price.currency, bound.currency)
    booked = rule.unit_price or (price if rule.percent_off is None else _less(price, rule.percent_off))
    if rule.floor is not None and booked < rule.floor:
        booked = rule.floor
    if rule.cap is not None and rule.cap < booked:
        booked = rule.cap
    return booked


def _not_below_zero(price: Money, off: Money) -> Money:
    reduced = price - off
    return Money.zero(price.currency) if reduced.amount < 0 else reduced


def _tier(tiers: tuple[VolumeTier, ...], quantity: Decimal) -> VolumeTier | None:
    reached = [t for t in tiers if t.from_quantity <= quantity]
    return max(reached, key=lambda t: t.from_quantity) if reached else None
