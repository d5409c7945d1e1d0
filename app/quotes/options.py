"""Reading the options inside a revision's items: the selected one, its lines and totals, how old its prices are."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from app.pricing.money import Money

Json = Mapping[str, Any]


def option_of(item: Json, option_id: str | None) -> Json | None:
    """Find an option of an item by id."""
    return next((option for option in item["options"] if option["id"] == option_id), None)


def selected_options(items: Sequence[Json], selections: Mapping[str, str] | None = None) -> dict[str, Json | None]:
    """Give the option of each item: the caller's choice where there is one, else the item's own selection."""
    chosen = selections or {}
    return {item["id"]: option_of(item, chosen.get(item["id"], item["selected_option_id"])) for item in items}


def lines_of(option: Json) -> Sequence[Json]:
    """Give the cost lines of an option."""
    lines: Sequence[Json] = option["cost"]["lines"]
    return lines


def amount_json(amount: Decimal | None, currency: str | None) -> dict[str, str] | None:
    """Write an amount that is stored beside the content as the content writes its own; None where there is none."""
    return None if amount is None or currency is None else Money.settled(amount, currency).as_json()


def money(document: Json) -> Money:
    """Read an amount of stored content."""
    return Money(amount=Decimal(document["amount"]), currency=document["currency"])


def stale_lines(items: Sequence[Json], today: date) -> list[dict[str, Any]]:
    """List lines of selected options whose price was observed longer ago than it may be, or nobody knows when.

    ``age_days`` is null where the day of the price is not known: such a price is stale on every day.
    """
    return [
        {
            "item": item_id,
            "line": line["id"],
            "offer_id": evidence.get("offer_id"),
            "age_days": _age(evidence, today),
            "max_age_days": evidence.get("max_age_days"),
        }
        for item_id, line, evidence in _priced_evidence(items)
        if _is_stale(evidence, today)
    ]


def oldest_price_days(items: Sequence[Json], today: date) -> int | None:
    """Age of the oldest price behind the selected options [day]; None where one of them is of an unknown day."""
    found = [evidence for _, _, evidence in _priced_evidence(items)]
    if any(_is_of_unknown_day(evidence) for evidence in found):
        return None
    return max((age for evidence in found if (age := _age(evidence, today)) is not None), default=0)


def _is_stale(evidence: Json, today: date) -> bool:
    age, limit = _age(evidence, today), evidence.get("max_age_days")
    if age is None:
        return _is_of_unknown_day(evidence)
    return limit is not None and age > limit


def _is_of_unknown_day(evidence: Json) -> bool:
    # The flag keeps out contracts and stated figures, which hold without a day of observation.
    return evidence.get("observed_on") is None and bool(evidence.get("stale"))


def _priced_evidence(items: Sequence[Json]) -> Iterator[tuple[str, Json, Json]]:
    for item_id, option in selected_options(items).items():
        for line in lines_of(option) if option is not None else ():
            evidence = line.get("price_evidence")
            if line.get("status") == "priced" and evidence:
                yield item_id, line, evidence


def _age(evidence: Json, today: date) -> int | None:
    observed = evidence.get("observed_on")
    return None if observed is None else (today - date.fromisoformat(observed)).days
