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


def money(document: Json) -> Money:
    """Read an amount of stored content."""
    return Money(amount=Decimal(document["amount"]), currency=document["currency"])


def stale_lines(items: Sequence[Json], today: date) -> list[dict[str, Any]]:
    """List lines of selected options whose price was observed longer ago than it may be, as of ``today``."""
    return [
        {
            "item": item_id,
            "line": line["id"],
            "offer_id": evidence.get("offer_id"),
            "age_days": age,
            "max_age_days": limit,
        }
        for item_id, line, evidence in _priced_evidence(items)
        if (age := _age(evidence, today)) is not None and (limit := evidence.get("max_age_days")) is not None
        if age > limit
    ]


def oldest_price_days(items: Sequence[Json], today: date) -> int:
    """Age of the oldest price behind the selected options [day]."""
    ages = [_age(evidence, today) for _, _, evidence in _priced_evidence(items)]
    return max((age for age in ages if age is not None), default=0)


def _priced_evidence(items: Sequence[Json]) -> Iterator[tuple[str, Json, Json]]:
    for item_id, option in selected_options(items).items():
        for line in lines_of(option) if option is not None else ():
            evidence = line.get("price_evidence")
            if line.get("status") == "priced" and evidence:
                yield item_id, line, evidence


def _age(evidence: Json, today: date) -> int | None:
    observed = evidence.get("observed_on")
    return None if observed is None else (today - date.fromisoformat(observed)).days
