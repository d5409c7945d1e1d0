"""What a caller without ``costs:read`` does not get to see: the way from cost to price."""

from collections.abc import Mapping
from typing import Any


def without_costs(content: Mapping[str, Any]) -> dict[str, Any]:
    """Give the content without mark-up and what it was put on; its hash stays that of the whole content."""
    spec = dict(content["spec"])
    terms = spec.get("terms")
    if isinstance(terms, Mapping) and "markup" in terms:
        spec["terms"] = {name: value for name, value in terms.items() if name != "markup"}
    items = [_item(item) for item in content["items"]]
    return {**content, "spec": spec, "items": items}


def _item(item: Mapping[str, Any]) -> dict[str, Any]:
    # What owning costs is the seller's own figure.
    shown = {name: value for name, value in item.items() if name != "rent_or_own"}
    return {**shown, "options": [_option(option) for option in item["options"]]}


def without_cost_drift(compared: Mapping[str, Any]) -> dict[str, Any]:
    """Give a comparison without what tells the way from cost to price: how much moved, not why."""
    changes = [
        {
            **change,
            "spec_changes": [place for place in change["spec_changes"] if not place.startswith("/terms/markup")],
            "drift": {name: value for name, value in change["drift"].items() if name != "effects"},
        }
        for change in compared["changes"]
    ]
    return {**compared, "changes": changes}


def _option(option: Mapping[str, Any]) -> dict[str, Any]:
    lines = [_line(line) for line in option["cost"]["lines"]]
    return {**option, "cost": {**option["cost"], "lines": lines}}


def _line(line: Mapping[str, Any]) -> dict[str, Any]:
    steps = line.get("waterfall") or ()
    if not any(step["step"] == "markup" for step in steps):
        return dict(line)
    # With a mark-up on it, the list price and every step before are the seller's cost.
    hidden = ("list_unit_price", "waterfall", "native_net", "price_evidence")
    return {name: value for name, value in line.items() if name not in hidden}
