"""Totals over the items of a request: the selected options added up, charge by charge, where every one has a price."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.pricing.money import Money, total

SUMMED = ("one_off", "recurring_monthly", "usage", "net", "gross")


def content_totals(
    items: Sequence[Mapping[str, Any]],
    currency: str,
    rounding_policy: str,
    selected: Mapping[str, str | None] | None = None,
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Totals and completeness of the selected options.

    Parameters
    ----------
    selected : mapping of str to str, or None
        Option id by item id; None = the recommended ones.
    """
    chosen = [_chosen(item, selected) for item in items]
    unpriced = [
        {"item": item["id"], **line}
        for item, option in zip(items, chosen, strict=True)
        for line in (option["completeness"]["unpriced_lines"] if option else [_without_option(item)])
    ]
    stale = [
        {"item": item["id"], "line": line}
        for item, option in zip(items, chosen, strict=True)
        for line in (option["completeness"]["stale_lines"] if option else ())
    ]
    completeness = {"complete": not unpriced, "unpriced_lines": unpriced, "stale_lines": stale}
    if unpriced:
        return None, completeness
    parts = [option["cost"]["totals"] for option in chosen if option]
    totals: dict[str, Any] = {name: _sum(parts, name, currency) for name in SUMMED}
    totals["tax"] = [row for part in parts for row in part["tax"]]
    totals["tco_horizon_months"] = sorted({p["tco_horizon_months"] for p in parts if p["tco_horizon_months"]})
    totals["rounding_policy"] = rounding_policy
    totals["net_p10"], totals["net_p90"] = (
        _sum([option["cost"]["net"] for option in chosen if option], q, currency) for q in ("p10", "p90")
    )
    return totals, completeness


def _without_option(item: Mapping[str, Any]) -> dict[str, Any]:
    """Why an item adds nothing to the totals."""
    reason = "no option was found"
    if any(option["recommended"] for option in item["options"]):
        reason = "no option is selected; select one of those shown to have it billed"
    elif item["options"]:
        reason = "no option carries the load within its objectives; none is recommended, select one to have it billed"
    return {"id": None, "outcome": "not_offered", "reason": reason}


def _chosen(item: Mapping[str, Any], selected: Mapping[str, str | None] | None) -> Mapping[str, Any] | None:
    wanted = item["selected_option_id"] if selected is None else selected.get(item["id"])
    return next((option for option in item["options"] if option["id"] == wanted), None)


def _sum(parts: Sequence[Mapping[str, Any]], name: str, currency: str) -> dict[str, str] | None:
    """Exact sum, or None where one part is not determined (a gross without a known tax)."""
    if any(part[name] is None for part in parts):
        return None
    return total((Money.parse(part[name]["amount"], currency) for part in parts), currency).as_json()
