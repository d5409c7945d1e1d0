"""Every run under every offer of its machine, coarsely priced: what the exact bills are written for."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from app.catalog.offers import Offer
from app.catalog.snapshot import Snapshot
from app.engine.hardware import Accelerator
from app.estimates.bill import Run
from app.estimates.ownership import OwnedCost, owned_cost
from app.estimates.purchase import HourlyPrice, booked, hourly_price, paid_hours, sold_units
from app.estimates.ranking import Standing
from app.estimates.schemas import Item, PurchaseModel
from app.estimates.serving_costs import CommittedBase, unit_hours_by_the_hour, units_by_hour
from app.estimates.supply import STEADY, Candidate, Selection, bought_as
from app.estimates.terms import PricedTerms
from app.pricing.money import CONTEXT, quantity_from_float
from app.pricing.outcome import Unpriced
from app.pricing.ownership import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A run, what it would be bought as, and its coarse rank."""

    run: Run
    candidate: Candidate
    price: HourlyPrice | OwnedCost | Unpriced
    bought: PurchaseModel | None
    standing: Standing
    committed: HourlyPrice | None = None

    @property
    def id(self) -> str:
        """The same run under the same offers has the same id on every machine."""
        offer = self.candidate.offer.id if self.candidate.offer else "owned"
        if self.committed is not None:
            offer = f"{self.committed.offer.id}+{offer}"
        return "opt_" + hashlib.sha256(f"{self.run['key']}\x1f{offer}".encode()).hexdigest()[:16]


def by_machine(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs by machine and market."""
    found: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        found.setdefault((run["hardware"], run["market"]), []).append(run)
    return found


def _runs_of(candidate: Candidate, item: Item, runs: Mapping[tuple[str, str], list[Run]]) -> list[Run]:
    """Runs of a candidate's machine; services are computed without interruptions whatever they are bought as."""
    market = candidate.market if item.job.kind == "training" else STEADY
    return runs.get((candidate.hardware.key, market), [])


def all_choices(
    snapshot: Snapshot,
    item: Item,
    runs: Mapping[tuple[str, str], list[Run]],
    selection: Selection,
    terms: PricedTerms,
    unpriced: dict[str, Mapping[str, object]],
) -> list[Choice]:
    """Every run under every offer, coarsely priced; offers without a price go to ``unpriced``, never to zero."""
    choices: list[Choice] = []
    without: list[Choice] = []
    owned: dict[str, OwnedCost | Unpriced] = {}
    deadline = item.constraints.deadline_hours
    solved = {None: None, "tokens": "tokens", "concurrency": "users"}[item.constraints.solve_for]
    for candidate in selection.candidates:
        price = _price(snapshot, item, candidate, terms, owned)
        if isinstance(price, Unpriced):
            subject = candidate.offer.id if candidate.offer else f"owned:{candidate.hardware.accelerator.id}"
            unpriced[subject] = _unpriced_json(candidate, price)
        rate = _hourly_rate(price, terms)
        with_price = without if isinstance(price, Unpriced) else choices
        bought = bought_as(candidate.offer, item.supply.purchase_models) if candidate.offer else None
        for run in _runs_of(candidate, item, runs):
            if deadline is not None and run["kind"] == "training" and run["duration_hours"]["p50"] > deadline:
                continue
            standing = _coarse(run, candidate, price, bought, rate)
            if solved is not None:
                standing = replace(standing, solved=_decimal(run[solved]))
            with_price.append(Choice(run=run, candidate=candidate, price=price, bought=bought, standing=standing))
    if not choices:
        lacking = [c for c in without if isinstance(c.price, Unpriced) and c.price.reason == NO_RATE]
        if lacking:
            raise terms.no_rate(_priced_currency(snapshot, lacking[0], terms))
    return choices or without


NO_RATE = "no exchange rate into the currency of the terms on that day"


def _priced_currency(snapshot: Snapshot, choice: Choice, terms: PricedTerms) -> str:
    """The currency a price is known in that cannot be converted."""
    assert choice.candidate.offer is not None
    price = _offered(snapshot, choice.candidate.offer, terms)
    known = price.currencies if isinstance(price, HourlyPrice) else ()
    return next((currency for currency in known if not terms.has_rate(currency)), terms.currency)


def _offered(snapshot: Snapshot, offer: Offer, terms: PricedTerms) -> HourlyPrice | Unpriced:
    """The offer's price on the day, the tenant's book applied."""
    answer = hourly_price(snapshot, offer, terms.as_of)
    return booked(answer, snapshot, offer, terms.book, terms.as_of)


def _price(
    snapshot: Snapshot,
    item: Item,
    candidate: Candidate,
    terms: PricedTerms,
    owned: dict[str, OwnedCost | Unpriced],
) -> HourlyPrice | OwnedCost | Unpriced:
    if candidate.offer is None:
        accelerator: Accelerator = candidate.hardware.accelerator
        if accelerator.id not in owned:
            owned[accelerator.id] = owned_cost(snapshot, accelerator, item.supply.ownership, terms)
        return owned[accelerator.id]
    price = _offered(snapshot, candidate.offer, terms)
    if isinstance(price, HourlyPrice):
        lacking = tuple(f"{c}/{terms.currency}" for c in price.currencies if not terms.has_rate(c))
        if lacking:
            return Unpriced(outcome="unknown_price", reason=NO_RATE, missing=lacking)
    return price


def _unpriced_json(candidate: Candidate, price: Unpriced) -> dict[str, object]:
    offer = candidate.offer
    return {
        "offer_id": offer.id if offer else None,
        "provider": offer.provider if offer else None,
        "instance_type": offer.key.sku if offer else None,
        "region": offer.region if offer else None,
        "purchase_model": offer.purchase_model if offer else "owned",
        "accelerator": candidate.hardware.accelerator.id,
        "outcome": price.outcome,
        "reason": price.reason,
        "missing": list(price.missing),
    }


def mixes(choices: Sequence[Choice], terms: PricedTerms) -> list[Choice]:
    """Committed base and on-demand peak of the same machine, for fleets that follow the hour."""
    hourly = [c for c in choices if c.run["kind"] == "inference" and c.run["fleet"]["hourly_replicas"]]
    reserved: dict[tuple[object, ...], list[HourlyPrice]] = {}
    for choice in hourly:
        price = choice.price
        if isinstance(price, HourlyPrice) and price.offer.purchase_model == "reserved":
            reserved.setdefault((choice.run["key"], *_machine(price)), []).append(price)
    found = []
    for choice in hourly:
        price = choice.price
        if not isinstance(price, HourlyPrice) or price.offer.purchase_model != "on_demand":
            continue
        for committed in reserved.get((choice.run["key"], *_machine(price)), ()):
            mix = CommittedBase(committed=committed, on_demand=price).mix(choice.run, terms, "p50")
            if not 0 < mix.committed_units < max(units_by_hour(choice.run, price, "p50")):
                continue
            hours = HOURS_PER_MONTH * Decimal(choice.run["months"])
            months = CONTEXT.divide(hours, Decimal(len(choice.run["fleet"]["hourly_replicas"]["p50"])))
            standing = replace(choice.standing, net=CONTEXT.multiply(mix.cost.amount, months))
            found.append(replace(choice, committed=committed, standing=standing))
    return found


def _machine(price: HourlyPrice) -> tuple[object, ...]:
    key = price.offer.key
    return (key.provider, key.sku, key.accelerator_label, key.region, key.tier, key.tenancy, key.os)


def _hourly_rate(price: HourlyPrice | OwnedCost | Unpriced, terms: PricedTerms) -> Decimal | None:
    """One sold unit or owned accelerator for an hour, in the terms' currency, before discounts and markup."""
    if isinstance(price, HourlyPrice):
        return CONTEXT.multiply(price.net.amount, terms.factor(price.net.currency))
    return price.hour.per_accelerator_hour.amount if isinstance(price, OwnedCost) else None


def _coarse(
    run: Run,
    candidate: Candidate,
    price: HourlyPrice | OwnedCost | Unpriced,
    bought: PurchaseModel | None,
    rate: Decimal | None,
) -> Standing:
    net: Decimal | None = None
    hours, time = _hours(run)
    if rate is not None and isinstance(price, HourlyPrice):
        _, sold = sold_units(price.offer, run["accelerators"])
        billed = hours
        if price.period_hours is not None:
            billed = paid_hours(price, hours, bought)
        elif run["kind"] == "inference" and run["fleet"]["hourly_replicas"]:
            return _standing(run, candidate, CONTEXT.multiply(rate, _scaled_hours(run, price)), time)
        net = CONTEXT.multiply(rate, sold * billed)
    elif rate is not None and isinstance(price, OwnedCost):
        held = hours if run["kind"] == "training" else price.hour.useful_hours_per_month * Decimal(run["months"])
        net = CONTEXT.multiply(rate, run["accelerators"] * held)
    return _standing(run, candidate, net, time)


def _standing(run: Run, candidate: Candidate, net: Decimal | None, time: Decimal) -> Standing:
    return Standing(
        net=net,
        hours=time,
        kg_co2e=_carbon(run),
        name=f"{run['key']}\x1f{candidate.name}",
        carries_load=run.get("carries_load", True),
    )


def _scaled_hours(run: Run, price: HourlyPrice) -> Decimal:
    return unit_hours_by_the_hour(run, price, "p50") * Decimal(run["months"])


def _hours(run: Run) -> tuple[Decimal, Decimal]:
    """Hours a run is billed for at the median, and the time it is ranked by (duration, or latency of a request)."""
    if run["kind"] == "training":
        return _decimal(run["hours"]["p50"]), _decimal(run["duration_hours"]["p50"])
    return HOURS_PER_MONTH * Decimal(run["months"]), _decimal(run["e2e_ms"])


@lru_cache(maxsize=4096)
def _decimal(figure: float) -> Decimal:
    return quantity_from_float(figure)


def _carbon(run: Run) -> Decimal | None:
    energy = run["energy"]
    known = energy is not None and energy["kg_co2e"] is not None
    return _decimal(energy["kg_co2e"]) if known else None
