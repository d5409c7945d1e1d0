"""Monthly bill of a serving fleet: all the time, by the hour, or a committed base with an on-demand peak."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.estimates.bill import Bill, Run
from app.estimates.data_costs import egress_line
from app.estimates.purchase import HourlyPrice, paid_hours, rounding_text, sold_units, unit_name
from app.estimates.schemas import PurchaseModel
from app.estimates.terms import PricedTerms
from app.pricing.commitment import Mix, cheapest_mix
from app.pricing.money import CONTEXT, ZERO
from app.pricing.ownership import HOURS_PER_MONTH


def rented_serving(
    run: Run, price: HourlyPrice, bought: PurchaseModel | None, terms: PricedTerms, quantile: str
) -> Bill:
    """A fleet on one offer; replicas follow the hour where the offer is paid by the hour and scaling is asked for."""
    bill = Bill(terms=terms)
    fleet = run["fleet"]
    loaded, spare = fleet["accelerators"][quantile], fleet["spare_accelerators"]
    exact, _ = sold_units(price.offer, loaded)
    whole, sold = sold_units(price.offer, loaded + spare)
    shared = _shared(terms, price, Decimal(sold))
    if price.period_hours is None and fleet["hourly_replicas"]:
        billed = unit_hours_by_the_hour(run, price, quantile)
        bill.add(kind="compute", en=_SCALED, zh="每月加速器时长（按小时伸缩）", billed=billed, **shared)
        _, always = sold_units(price.offer, spare) if spare else (ZERO, 0)
        spare_hours = Decimal(always) * HOURS_PER_MONTH
        bill.add(kind="spare", en=_SPARE, zh="备用副本", billed=spare_hours, **shared)
    else:
        bill.add(kind="compute", en=_FLEET, zh="每月加速器时长", billed=exact * HOURS_PER_MONTH, **shared)
        bill.add(kind="spare", en=_SPARE, zh="备用副本", billed=(whole - exact) * HOURS_PER_MONTH, **shared)
        rounding = (Decimal(sold) - whole) * HOURS_PER_MONTH
        en = rounding_text(price, sold)
        bill.add(kind="unit_rounding", en=en, zh="按整机或最小数量取整", billed=rounding, **shared)
    served = HOURS_PER_MONTH * Decimal(run["months"])
    unused = Decimal(sold) * (paid_hours(price, served, bought) - served)
    bill.add(kind="commitment", en=_BEYOND, zh="服务期之外的承诺时长", billed=unused, **{**shared, "charge": "one_off"})
    egress_line(bill, run, price.offer.provider)
    return bill


_FLEET = "Accelerator time of the fleet, a month"
_SCALED = "Accelerator time of the fleet, a month, scaled by the hour"
_SPARE = "Spare replicas, a month"
_BEYOND = "Committed hours beyond the service's months"


def _shared(terms: PricedTerms, price: HourlyPrice, units: Decimal) -> dict[str, Any]:
    waterfall, native = terms.price(price.listed, CONTEXT.multiply(units, HOURS_PER_MONTH), price.contracted)
    return {
        "charge": "recurring",
        "unit": unit_name(price.offer),
        "priced": waterfall,
        "native_unit": native,
        "hours_basis": "730",
        "evidence": price.evidence(),
    }


def units_by_hour(run: Run, price: HourlyPrice, quantile: str) -> list[Decimal]:
    """Sold units of each hour of the profile."""
    fleet = run["fleet"]
    each = fleet["accelerators_per_replica"]
    return [Decimal(sold_units(price.offer, n * each)[1]) for n in fleet["hourly_replicas"][quantile]]


def unit_hours_by_the_hour(run: Run, price: HourlyPrice, quantile: str) -> Decimal:
    """Sold-unit hours of a month when replicas follow the hour."""
    units = units_by_hour(run, price, quantile)
    return CONTEXT.divide(sum(units, ZERO) * HOURS_PER_MONTH, Decimal(len(units)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedBase:
    """A committed offer for the base and an on-demand offer of the same machine for the peak."""

    committed: HourlyPrice
    on_demand: HourlyPrice

    def mix(self, run: Run, terms: PricedTerms, quantile: str) -> Mix:
        """Cheapest split of the profile between the two."""
        hourly = [terms.converted(price.net) for price in (self.committed, self.on_demand)]
        return cheapest_mix(units_by_hour(run, self.on_demand, quantile), hourly[0], hourly[1])


def mixed_serving(run: Run, base: CommittedBase, terms: PricedTerms, quantile: str) -> Bill:
    """A committed base all month, the rest on demand; the term beyond the service's months is its own line."""
    bill = Bill(terms=terms)
    mix = base.mix(run, terms, quantile)
    hours = len(run["fleet"]["hourly_replicas"][quantile])
    committed = _shared(terms, base.committed, mix.committed_units)
    en = f"Committed base of {mix.committed_units} {base.committed.offer.sold_unit}(s), a month"
    paid = mix.committed_units * HOURS_PER_MONTH
    bill.add(kind="compute", en=en, zh="承诺的基础容量（每月）", billed=paid, **committed)
    on_demand = _shared(terms, base.on_demand, mix.committed_units)
    above = CONTEXT.divide(mix.on_demand_unit_hours * HOURS_PER_MONTH, Decimal(hours))
    bill.add(kind="compute", en="On-demand peak, a month", zh="按需的峰值容量（每月）", billed=above, **on_demand)
    served = HOURS_PER_MONTH * Decimal(run["months"])
    unused = mix.committed_units * (paid_hours(base.committed, served, None) - served)
    bill.add(
        kind="commitment", en=_BEYOND, zh="服务期之外的承诺时长", billed=unused, **{**committed, "charge": "one_off"}
    )
    spare = run["fleet"]["spare_accelerators"]
    if spare:
        _, always = sold_units(base.on_demand.offer, spare)
        hours_held = Decimal(always) * HOURS_PER_MONTH
        bill.add(kind="spare", en=_SPARE, zh="备用副本", billed=hours_held, **on_demand)
    egress_line(bill, run, base.on_demand.offer.provider)
    return bill
