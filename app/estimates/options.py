"""What it costs: priced, ranked options of one item from stored engine outputs; the engine is not asked again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.catalog.snapshot import Snapshot
from app.estimates.bill import Run
from app.estimates.choices import Choice, all_choices, by_machine, mixes
from app.estimates.comparisons import rent_or_own_rows, serve_or_call
from app.estimates.costs import QUANTILES, Cost, mixed_cost, owned_bill, rented_cost
from app.estimates.errors import infeasible
from app.estimates.keeping import Kept, nearest_choice
from app.estimates.option_json import option_json
from app.estimates.ownership import OwnedCost
from app.estimates.purchase import HourlyPrice
from app.estimates.ranking import Standing, best_of_each, sort_key
from app.estimates.schemas import Item
from app.estimates.serving_costs import CommittedBase
from app.estimates.supply import Selection
from app.estimates.terms import PricedTerms
from app.pricing.money import CONTEXT
from app.pricing.outcome import Unpriced

# Options priced in full before the last cut; the coarse key leaves out storage, egress and contingency only.
FINALISTS = 2
MOST_UNPRICED_SHOWN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A choice with its bill and exact rank."""

    choice: Choice
    cost: Cost | None
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedItem:
    """An item as an answer shows it.

    Parameters
    ----------
    ranked_runs : frozenset of str
        Runs of every option that was priced in full. Kept with a quote, they are enough to rank the same options the
        same way again: whatever was left out stood behind all of them.
    """

    content: dict[str, Any]
    ranked_runs: frozenset[str]


def price_item(
    snapshot: Snapshot,
    item: Item,
    outputs: Mapping[str, Any],
    selection: Selection,
    terms: PricedTerms,
    at: str,
    complete: Callable[[Run], Run],
    kept: Kept | None = None,
) -> PricedItem:
    """Options of an item, best first, with what could not be priced and why.

    Parameters
    ----------
    complete : callable
        Gives the whole run of one that so far has only what ranking needs.
    kept : Kept or None
        Supply that is shown beside the best, whatever its rank, where it still keeps deadline and budget.

    Raises
    ------
    Problem
        ``infeasible-spec`` where no option keeps the budget.
    """
    runs = by_machine(outputs["runs"])
    unpriced: dict[str, Mapping[str, object]] = {}
    choices = all_choices(snapshot, item, runs, selection, terms, unpriced)
    choices.extend(mixes(choices, terms))
    within = _within_budget(choices, item, terms)
    if choices and not within:
        # the bills of the cheapest by their coarse prices: what is said to be enough must be
        cheapest = sorted(choices, key=lambda c: sort_key("cost", c.standing))
        cheapest = cheapest[: FINALISTS * item.constraints.max_options]
        bills = [_bill(replace(choice, run=complete(choice.run)), terms) for choice in cheapest]
        raise _over_budget([p.standing for p in bills], item, terms, at)
    ranked = sorted(within, key=lambda c: sort_key(item.objective, c.standing))
    finalists = _cut(ranked, item, FINALISTS * item.constraints.max_options)
    held = None if kept is None else nearest_choice(kept, ranked)
    if held is not None and all(choice.id != held.id for choice in finalists):
        finalists.append(held)
    whole = [replace(choice, run=complete(choice.run)) for choice in finalists]
    priced = [_bill(choice, terms) for choice in whole]
    affordable = [p for p in priced if _affordable(p.standing, item, terms)]
    if priced and not affordable:
        raise _over_budget([p.standing for p in priced], item, terms, at)
    best = sorted(affordable, key=lambda p: sort_key(item.objective, p.standing))
    shown = _shown(best, item, held)
    options = [
        option_json(snapshot, item, c.id, c.run, c.candidate, _spread(p, terms), c.price, terms, c.committed)
        for p in shown
        for c in (p.choice,)
    ]
    is_recommended = bool(options) and shown[0].standing.carries_load
    if is_recommended:
        options[0]["recommended"] = True
    sides = [(p.choice.run, p.choice.price, p.choice.id) for p in best if not isinstance(p.choice.price, Unpriced)]
    api = list(outputs.get("api_prices", ()))
    content = {
        "id": item.id,
        "kind": item.job.kind,
        "objective": item.objective,
        "options": options,
        "selected_option_id": options[0]["id"] if is_recommended else None,
        "rent_or_own": rent_or_own_rows(_of_shown(sides, options), terms),
        "serve_or_call": serve_or_call(shown[0].choice.run, shown[0].cost, api, terms) if shown else [],
        "refused": list(outputs["refused"]),
        "skipped": [s.as_json() for s in selection.skipped],
        "unpriced_offers": list(unpriced.values())[:MOST_UNPRICED_SHOWN],
        "unpriced_offers_count": len(unpriced),
    }
    return PricedItem(content=content, ranked_runs=frozenset(str(choice.run["key"]) for choice in finalists))


def _shown(best: Sequence[Priced], item: Item, held: Choice | None) -> list[Priced]:
    """The best options, and the one that is held."""
    shown = best_of_each(best, lambda p: p.choice.id, lambda p: _named(p.choice, item), item.constraints.max_options)
    if held is None:
        return shown
    ids = {held.id, *(p.choice.id for p in shown)}
    return [p for p in best if p.choice.id in ids]


def _of_shown(
    sides: Sequence[tuple[Run, HourlyPrice | OwnedCost, str]], options: Sequence[Mapping[str, Any]]
) -> list[tuple[Run, HourlyPrice | OwnedCost, str]]:
    """Only what is shown is compared, so that a replay compares the same."""
    shown = {option["id"] for option in options}
    return [side for side in sides if side[2] in shown]


def _cut(ranked: Sequence[Choice], item: Item, most: int) -> list[Choice]:
    return best_of_each(ranked, lambda c: _group(c, item), lambda c: _named(c, item), most)


def _group(choice: Choice, item: Item) -> tuple[object, ...]:
    """Choices that differ only in region are one, unless regions or offers were asked for."""
    offer = choice.candidate.offer
    if offer is None:
        return (choice.run["key"], "owned")
    where: object = None
    if item.supply.regions is not None or item.supply.offers is not None:
        where = offer.id
    key = offer.key
    mixed = choice.committed.offer.key.term_months if choice.committed else None
    return (choice.run["key"], key.provider, key.purchase_model, key.term_months, key.product, where, mixed)


def _named(choice: Choice, item: Item) -> tuple[str | None, str | None]:
    """What the caller named and wants to see: an accelerator, a way of buying it."""
    supply, offer = item.supply, choice.candidate.offer
    bought = offer.purchase_model if offer else "owned"
    return (
        choice.run["accelerator"] if supply.accelerators is not None else None,
        bought if supply.purchase_models is not None else None,
    )


def _bill(choice: Choice, terms: PricedTerms) -> Priced:
    """The exact bill at the median hours."""
    cost = _cost(choice, terms, ("p50",))
    if cost is not None and cost.totals is not None:
        return Priced(choice=choice, cost=cost, standing=replace(choice.standing, net=cost.totals.net.amount))
    return Priced(
        choice=choice, cost=cost, standing=replace(choice.standing, net=None, priced_part=choice.standing.net)
    )


def _spread(priced: Priced, terms: PricedTerms) -> Cost | None:
    """The bill with its net at the 10th and 90th percentile of the hours beside it."""
    return _cost(priced.choice, terms, QUANTILES)


def _cost(choice: Choice, terms: PricedTerms, quantiles: Sequence[str]) -> Cost | None:
    if isinstance(choice.price, HourlyPrice) and choice.committed is not None:
        base = CommittedBase(committed=choice.committed, on_demand=choice.price)
        return mixed_cost(choice.run, base, terms, quantiles)
    if isinstance(choice.price, HourlyPrice):
        storage = choice.run.get("storage_id")
        return rented_cost(choice.run, choice.price, choice.bought, terms, storage, quantiles)
    if isinstance(choice.price, OwnedCost):
        return owned_bill(choice.run, choice.price, terms, quantiles)
    return None


def _affordable(standing: Standing, item: Item, terms: PricedTerms) -> bool:
    budget = item.constraints.budget
    if budget is None or standing.net is None:
        return True
    return standing.net <= terms.conversion(budget.currency).convert_unit(budget.money).amount


def _within_budget(choices: Sequence[Choice], item: Item, terms: PricedTerms) -> list[Choice]:
    """Drop what is over the budget by its coarse price in the terms already: the exact bill only adds to it."""
    if item.constraints.budget is None:
        return list(choices)
    return [c for c in choices if _affordable(_in_terms(c.standing, terms), item, terms)]


def _in_terms(standing: Standing, terms: PricedTerms) -> Standing:
    """The standing with discount, markup and contingency in its coarse price, as every line of the bill has them."""
    if standing.net is None:
        return standing
    sold = CONTEXT.multiply(1 - terms.discount, 1 + terms.markup)
    return replace(standing, net=CONTEXT.multiply(standing.net, CONTEXT.multiply(sold, 1 + terms.contingency)))


def _over_budget(standings: Sequence[Standing], item: Item, terms: PricedTerms, at: str) -> Exception:
    cheapest = terms.enough(min(s.net for s in standings if s.net is not None))
    budget = item.constraints.budget
    assert budget is not None
    pointer = f"{at}/constraints/budget"
    return infeasible(
        pointer,
        "budget",
        f"the cheapest option found costs {cheapest.text} {cheapest.currency}, more than the budget of "
        f"{budget.money.text} {budget.currency}",
        {pointer: cheapest.as_json()},
    )
