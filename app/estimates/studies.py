"""Questions about an answered estimate: what moves its total, and what would make it cheaper or faster."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.estimates import service
from app.estimates.improvements import improvements, or_none
from app.estimates.remembered import Remembered
from app.estimates.schemas import Constraints, EstimateRequest, Item
from app.estimates.sensitivity import SAMPLES, Limits, sensitivity
from app.estimates.terms import priced_terms

REMEMBERED = 256
# Options priced to find the best of a changed item.
FEW_OPTIONS = 3


def study(
    snapshot: Snapshot,
    request: EstimateRequest,
    today: date,
    samples: int = SAMPLES,
    book: PriceBook | None = None,
) -> dict[str, Any]:
    """What moves the totals of the recommended options, and how likely deadline and budget are kept.

    Parameters
    ----------
    samples : int
        Rows of each base matrix of the global study; a power of two.
    book : PriceBook or None
        As for :func:`estimate`.
    """
    answer = service.estimate(snapshot, request, today, book)
    terms = priced_terms(snapshot, request.terms, service.price_day(request, today), book)
    rows = []
    for item, shown in zip(request.items, answer.content["items"], strict=True):
        budget = item.constraints.budget
        limits = Limits(
            deadline_hours=item.constraints.deadline_hours,
            budget=None
            if budget is None
            else float(terms.conversion(budget.currency).convert_unit(budget.money).amount),
        )
        option = shown["options"][0] if shown["options"] else None
        rows.append(
            {
                "id": item.id,
                "option_id": option["id"] if option else None,
                "label": option["label"] if option else None,
                "sensitivity": sensitivity(snapshot, option, limits, samples) if option else None,
            }
        )
    return {"items": rows, "currency": terms.currency, "pins": answer.pins}


def estimate_with_advice(
    snapshot: Snapshot, request: EstimateRequest, today: date, book: PriceBook | None = None
) -> service.Estimate:
    """The estimate, with the effect of every change worth making beside the recommended options' advice.

    A quote stores the estimate alone: the effects are computed from the engine, so they are asked for when explained.
    """
    answer = service.estimate(snapshot, request, today, book)
    items = []
    for item, shown in zip(request.items, answer.content["items"], strict=True):
        options = list(shown["options"])
        if options:
            found = advice_of(snapshot, request, item, options[0], today, book)
            options[0] = {**options[0], "advice": [*options[0]["advice"], *found]}
        items.append({**shown, "options": options})
    return replace(answer, content={**answer.content, "items": items})


def advice_of(
    snapshot: Snapshot,
    request: EstimateRequest,
    item: Item,
    option: Mapping[str, Any],
    today: date,
    book: PriceBook | None = None,
) -> list[dict[str, Any]]:
    """Changes that save money or time on one option of an item, most money first; remembered per request and option."""
    if item.constraints.solve_for is not None:
        return []
    key = (snapshot.content_sha256, item.model_dump_json(), request.terms.model_dump_json(),
           service.price_day(request, today), option["id"], None if book is None else repr(book))  # fmt: skip
    known = _remembered.get(key)
    if known is None:

        def best(changed: Item) -> Mapping[str, Any] | None:
            free = changed.model_copy(update={"constraints": Constraints(max_options=FEW_OPTIONS)})
            body = request.model_copy(update={"items": [free]})
            options = service.estimate(snapshot, body, today, book).content["items"][0]["options"]
            firm = [o for o in options if not o["offer"].get("indicative")]
            return firm[0] if firm else None

        found = improvements(snapshot, item, option, lambda changed: or_none(lambda: best(changed)))
        known = _remembered.put(key, found)
    return known


_remembered: Remembered[tuple[object, ...], list[dict[str, Any]]] = Remembered(REMEMBERED)
