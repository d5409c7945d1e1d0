"""Keeping what a revision stands for when it is calculated again: the same supply, or a plain word that it is gone."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.estimates import service as estimates
from app.estimates.service import Kept
from app.quotes.options import Json, money, option_of, selected_options

# What a quote selects per item; None = nothing, because what was selected before is gone.
Selections = Mapping[str, str | None]
NEXT_WHEN_GONE = (
    "Nothing was put in its place. Select another option with PATCH (selections), change supply, deadline or budget, "
    "or draft from the earlier revision with pricing hold."
)


def supply_of(options: Mapping[str, Json | None]) -> dict[str, Kept]:
    """Read what is to be kept from options by item."""
    return {item: Kept.of_option(option) for item, option in options.items() if option is not None}


def selections_of(content: Json) -> dict[str, str | None]:
    """Read what a stored content selects."""
    return {item["id"]: item["selected_option_id"] for item in content["items"]}


def own_choices(content: Json) -> dict[str, Json | None]:
    """Selected options that somebody chose over the recommended ones."""
    chosen = selected_options(content["items"])
    return {item: option for item, option in chosen.items() if option is not None and not option["recommended"]}


def select(
    items: Sequence[Json], before: Mapping[str, Json | None], chosen: Mapping[str, str]
) -> dict[str, str | None]:
    """Select what the caller chooses, else the supply selected before; where that is gone or was none, nothing."""
    found: dict[str, str | None] = {}
    for item in items:
        if item["id"] in before:
            earlier = before[item["id"]]
            same = None if earlier is None else estimates.nearest_option(Kept.of_option(earlier), item["options"])
            found[item["id"]] = None if same is None else same["id"]
    return {**found, **chosen}


def report(
    items: Sequence[Json], before: Mapping[str, Json | None], selections: Selections, chosen: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Say item by item what became of the supply that was selected before, and what is cheaper now."""
    rows = []
    for item in items:
        earlier = before.get(item["id"])
        if earlier is None:
            continue
        option = option_of(item, selections.get(item["id"], item["selected_option_id"]))
        rows.append(
            {
                "item": item["id"],
                "status": "chosen" if item["id"] in chosen else _status(earlier, option),
                "before": _named(earlier),
                "after": None if option is None else _named(option),
                "cheaper": None if option is None else _cheaper(item["options"], option),
                **(_gone(item, earlier) if option is None else {}),
            }
        )
    return rows


def _status(earlier: Json, option: Json | None) -> str:
    if option is None:
        return "gone"
    sizes = {side["configuration"]["accelerators"] for side in (earlier, option)}
    return "kept" if len(sizes) == 1 else "resized"


def _named(option: Json) -> dict[str, Any]:
    return {
        "option_id": option["id"],
        "label": option["label"],
        "offer_id": option["offer"]["id"],
        "accelerators": option["configuration"]["accelerators"],
    }


def _cheaper(options: Sequence[Json], selected: Json) -> dict[str, Any] | None:
    """The cheapest option that carries the load for less than the selected one."""
    if selected["cost"]["totals"] is None:
        return None
    paid = money(selected["cost"]["totals"]["net"])
    priced = [
        (money(option["cost"]["totals"]["net"]).amount, i)
        for i, option in enumerate(options)
        if option["cost"]["totals"] is not None and all(advice["severity"] != "critical" for advice in option["advice"])
    ]
    least = min(priced, default=None)
    if least is None or least[0] >= paid.amount:
        return None
    found = options[least[1]]
    net = money(found["cost"]["totals"]["net"])
    return {**_named(found), "net": net.as_json(), "saves": (paid - net).as_json()}


def _gone(item: Json, earlier: Json) -> dict[str, str]:
    unpriced = {row["offer_id"]: row for row in item["unpriced_offers"]}.get(earlier["offer"]["id"])
    if unpriced is not None:
        return {"outcome": unpriced["outcome"], "reason": unpriced["reason"], "next": NEXT_WHEN_GONE}
    reason = (
        f"{earlier['label']['en']} is not among what the supply offers now, what runs the job, and what keeps its "
        "deadline and budget."
    )
    return {"outcome": "not_offered", "reason": reason, "next": NEXT_WHEN_GONE}
