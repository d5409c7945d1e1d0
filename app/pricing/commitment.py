"""Rent or own, commit or pay as you go: break-even points and the cheapest mix for a usage profile."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.pricing.errors import CurrencyMismatchError, PricingError
from app.pricing.money import CONTEXT, ZERO, Money, total
from app.pricing.ownership import HOURS_PER_MONTH, OwnedHour


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """Where owning starts to be cheaper than renting one accelerator.

    Parameters
    ----------
    useful_hours_per_month : Decimal
        Hours of use at which the two cost the same; may exceed a month's 730, then renting always wins.
    utilization : Decimal
        The same as a share of 730 hours.
    months_to_recover_capital : Decimal or None
        Capital over the monthly saving at the owner's utilisation; None when there is no saving.
    """

    useful_hours_per_month: Decimal
    utilization: Decimal
    months_to_recover_capital: Decimal | None


def rent_or_own(owned: OwnedHour, rent_per_accelerator_hour: Money) -> BreakEven:
    """Break-even of owning against renting at a price per accelerator-hour.

    The capital is recovered from what is not paid as rent, less the running cost; depreciation and cost of capital
    are not running costs.
    """
    monthly = owned.monthly_total
    if rent_per_accelerator_hour.currency != monthly.currency:
        raise CurrencyMismatchError(rent_per_accelerator_hour.currency, monthly.currency)
    if rent_per_accelerator_hour.amount <= 0:
        raise PricingError("a rent is above zero")
    hours = CONTEXT.divide(monthly.amount, rent_per_accelerator_hour.amount)
    running = monthly - owned.monthly["depreciation"] - owned.monthly["cost_of_capital"]
    saving = rent_per_accelerator_hour.times_unit(owned.useful_hours_per_month) - running
    months = CONTEXT.divide(owned.capital.amount, saving.amount) if saving.amount > 0 else None
    return BreakEven(
        useful_hours_per_month=hours,
        utilization=CONTEXT.divide(hours, HOURS_PER_MONTH),
        months_to_recover_capital=months,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Units committed for every hour of the profile, the rest on demand."""

    committed_units: Decimal
    on_demand_unit_hours: Decimal
    committed_unit_hours: Decimal
    cost: Money
    all_on_demand: Money
    all_committed: Money


def cheapest_mix(profile: Sequence[Decimal], committed_per_hour: Money, on_demand_per_hour: Money) -> Mix:
    """Cheapest committed base for an hourly profile of units in use.

    The cost is convex and piecewise linear in the base, so its minimum is at one of the profile's own levels (or at
    zero); every level is costed exactly. Ties go to the smaller commitment.

    Parameters
    ----------
    profile : sequence of Decimal
        Units in use in each hour (24, 168 or 8,760 of them, each standing for itself).
    committed_per_hour, on_demand_per_hour : Money
        Price of one unit-hour, committed hours being paid whether used or not.
    """
    if not profile or any(not u.is_finite() or u < 0 for u in profile):
        raise PricingError("a usage profile has at least one hour and no negative hour")
    currency = on_demand_per_hour.currency
    levels = sorted({ZERO, *profile})
    costs = [(_cost(profile, level, committed_per_hour, on_demand_per_hour), level) for level in levels]
    cost, base = min(costs, key=lambda c: (c[0].amount, c[1]))
    return Mix(
        committed_units=base,
        committed_unit_hours=base * len(profile),
        on_demand_unit_hours=_above(profile, base),
        cost=total([cost], currency),
        all_on_demand=costs[0][0],
        all_committed=costs[-1][0],
    )


def _above(profile: Sequence[Decimal], base: Decimal) -> Decimal:
    return sum((u - base for u in profile if u > base), ZERO)


def _cost(profile: Sequence[Decimal], base: Decimal, committed: Money, on_demand: Money) -> Money:
    return committed.times(base * len(profile)) + on_demand.times(_above(profile, base))
