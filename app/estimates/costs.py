"""What a run costs under an offer: lines from hours and bytes, each priced or with the reason why not."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from app.estimates.assumptions import Assumption
from app.estimates.bill import Bill, Run
from app.estimates.data_costs import egress_line, storage_line
from app.estimates.ownership import OwnedCost
from app.estimates.purchase import HourlyPrice, paid_hours, rounding_text, sold_units, unit_name
from app.estimates.schemas import PurchaseModel
from app.estimates.serving_costs import CommittedBase, mixed_serving, rented_serving
from app.estimates.terms import PricedTerms
from app.pricing.line_items import Charge, HoursBasis, Line, UnpricedLine, with_contingency
from app.pricing.money import CONTEXT, ZERO, Money, quantity_from_float
from app.pricing.totals import Totals, totals

QUANTILES = ("p10", "p50", "p90")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The bill of one option.

    Parameters
    ----------
    lines : tuple of Line
        Everything that has a price, contingency included.
    unpriced : tuple of UnpricedLine
        What is needed and has none; then there are no totals.
    totals : Totals or None
        At the median hours.
    low, high : Money or None
        Net at the 10th and 90th percentile of the hours.
    excluded : tuple
        What the bill leaves out and says so (egress of a provider without a known price).
    """

    lines: tuple[Line, ...]
    unpriced: tuple[UnpricedLine, ...]
    totals: Totals | None
    low: Money | None
    high: Money | None
    excluded: tuple[Mapping[str, object], ...]
    assumptions: tuple[Assumption, ...] = ()
    owned_currencies: tuple[str, ...] = ()

    @property
    def converted_from(self) -> list[str]:
        """Currencies that prices of this bill came in, other than the terms' own."""
        native = {line.native_net.currency for line in self.lines if line.native_net is not None}
        return sorted(native | set(self.owned_currencies))

    @property
    def stale_lines(self) -> list[str]:
        """Ids of lines whose price is older than its limit."""
        return [line.id for line in self.lines if line.evidence.get("stale")]


def rented_cost(
    run: Run,
    price: HourlyPrice,
    bought: PurchaseModel | None,
    terms: PricedTerms,
    storage: str | None,
    quantiles: Sequence[str] = QUANTILES,
) -> Cost:
    """The bill of a run on a rented offer, its net at these quantiles of the hours."""
    if run["kind"] == "training":
        bills = {q: _rented_training(run, price, bought, terms, storage, q) for q in quantiles}
    else:
        bills = {q: rented_serving(run, price, bought, terms, q) for q in quantiles}
    return _cost(bills, terms, _horizon(run))


def mixed_cost(run: Run, base: CommittedBase, terms: PricedTerms, quantiles: Sequence[str] = QUANTILES) -> Cost:
    """The bill of an hourly scaled fleet on a committed base with an on-demand peak."""
    return _cost({q: mixed_serving(run, base, terms, q) for q in quantiles}, terms, _horizon(run))


def owned_bill(run: Run, owned: OwnedCost, terms: PricedTerms, quantiles: Sequence[str] = QUANTILES) -> Cost:
    """The bill of a run on owned hardware."""
    build = _owned_training if run["kind"] == "training" else _owned_serving
    bills = {q: build(run, owned, terms, q) for q in quantiles}
    for bill in bills.values():
        bill.assumptions.extend(owned.assumptions)
    return replace(_cost(bills, terms, _horizon(run)), owned_currencies=owned.currencies)


def _horizon(run: Run) -> Decimal | None:
    return Decimal(run["months"]) if run["kind"] == "inference" else None


def _cost(bills: Mapping[str, Bill], terms: PricedTerms, months: Decimal | None) -> Cost:
    middle = bills["p50"]
    sums: dict[str, Totals] = {}
    lines: tuple[Line, ...] = tuple(middle.lines)
    if not middle.unpriced:
        for quantile, bill in bills.items():
            all_lines = with_contingency(bill.lines, terms.contingency, "terms.contingency")
            sums[quantile] = totals(all_lines, terms.currency, terms.policy, terms.taxes, months)
            lines = all_lines if quantile == "p50" else lines
    nets = {q: total.net for q, total in sums.items()}
    return Cost(
        lines=lines,
        unpriced=tuple(middle.unpriced),
        totals=sums.get("p50"),
        low=_ordered(nets, "p10", min),
        high=_ordered(nets, "p90", max),
        excluded=tuple(middle.excluded),
        assumptions=tuple(middle.assumptions),
    )


def _ordered(nets: Mapping[str, Money], quantile: str, pick: Callable[..., Money]) -> Money | None:
    """Net at a quantile, never past p50: hours that are one line at one and two lines at the other round apart."""
    return pick(nets["p50"], nets[quantile], key=lambda net: net.amount) if quantile in nets else None


def training_hours(run: Run, quantile: str) -> tuple[dict[str, Decimal], Decimal]:
    """Billed hours by purpose, scaled to a quantile of the total; their sum is the total."""
    scale = run["hours"][quantile] / run["hours"]["p50"]
    hours = run["hours_split"]
    split = {name: quantity_from_float(hours[name] * scale) for name in _PURPOSE if name in hours}
    return split, sum(split.values(), ZERO)


_PURPOSE = {
    "training": ("compute", "Accelerator time, training", "加速器时长：训练"),
    "failures": ("failures", "Accelerator time lost to failures and restarts", "加速器时长：故障与重启"),
    "checkpoints": ("failures", "Accelerator time spent writing checkpoints", "加速器时长：写检查点"),
    "evaluation": ("campaign", "Accelerator time, evaluation", "加速器时长：评估"),
    "campaign": ("campaign", "Accelerator time, other runs of the campaign", "加速器时长：其他实验"),
    "idle": ("campaign", "Accelerator time waiting for the last concurrent run", "加速器时长：等待最后一个并行实验"),
    "reruns": ("campaign", "Accelerator time, expected reruns", "加速器时长：预计重跑"),
}


def _rented_training(
    run: Run, price: HourlyPrice, bought: PurchaseModel | None, terms: PricedTerms, storage: str | None, quantile: str
) -> Bill:
    bill = Bill(terms=terms)
    split, hours = training_hours(run, quantile)
    exact, sold = sold_units(price.offer, run["accelerators"])
    waterfall, native = terms.price(price.listed, CONTEXT.multiply(Decimal(sold), hours), price.contracted)
    basis: HoursBasis = "contract_hours"
    shared: dict[str, Any] = {
        "charge": "usage",
        "unit": unit_name(price.offer),
        "priced": waterfall,
        "native_unit": native,
        "hours_basis": basis,
        "evidence": price.evidence(),
    }
    for purpose, used in split.items():
        kind, en, zh = _PURPOSE[purpose]
        bill.add(kind=kind, en=en, zh=zh, billed=CONTEXT.multiply(exact, used), **shared)
    rounding = CONTEXT.multiply(Decimal(sold) - exact, hours)
    bill.add(kind="unit_rounding", en=rounding_text(price, sold), zh="按整机或最小数量取整", billed=rounding, **shared)
    unused = CONTEXT.multiply(Decimal(sold), paid_hours(price, hours, bought) - hours)
    bill.add(
        kind="commitment", en="Committed hours the job does not use", zh="承诺期内未使用的时长", billed=unused, **shared
    )
    storage_line(bill, run, price.offer.provider, storage, hours)
    egress_line(bill, run, price.offer.provider)
    return bill


_OWNED = {
    "depreciation": ("ownership", "Depreciation of owned hardware", "自有硬件折旧"),
    "cost_of_capital": ("ownership", "Cost of capital", "资金成本"),
    "electricity": ("energy", "Electricity, facility included", "电费（含机房）"),
    "colocation": ("ownership", "Colocation", "机房托管"),
    "staff": ("ownership", "Staff", "人员"),
}


def _owned_lines(bill: Bill, owned: OwnedCost, hours: Decimal, charge: Charge, basis: HoursBasis) -> None:
    for part, (kind, en, zh) in _OWNED.items():
        unit_price = owned.hour.share_per_hour(part)
        if unit_price.amount == 0:
            continue
        waterfall, _ = bill.terms.price(unit_price, hours, None)
        bill.add(
            kind=kind,
            charge=charge,
            en=en,
            zh=zh,
            billed=hours,
            unit="accelerator_hour",
            priced=waterfall,
            hours_basis=basis,
            evidence={"rule": "owned", "part": part, "stale": False},
        )


def _owned_training(run: Run, owned: OwnedCost, terms: PricedTerms, quantile: str) -> Bill:
    bill = Bill(terms=terms)
    _, hours = training_hours(run, quantile)
    _owned_lines(bill, owned, Decimal(run["accelerators"]) * hours, "usage", "contract_hours")
    return bill


def _owned_serving(run: Run, owned: OwnedCost, terms: PricedTerms, quantile: str) -> Bill:
    bill = Bill(terms=terms)
    fleet = run["fleet"]
    held = Decimal(fleet["accelerators"][quantile] + fleet["spare_accelerators"])
    # an owned accelerator is paid for whether it works or not: the utilization of the terms already says so
    _owned_lines(bill, owned, held * owned.hour.useful_hours_per_month, "recurring", "730")
    return bill
