"""What a caller without ``costs:read`` does not get to see of comparisons, policies and verdicts."""

from collections.abc import Mapping
from typing import Any


def without_causes(drift: Mapping[str, Any]) -> dict[str, Any]:
    """Give a drift without its parts: how much moved, not why."""
    return {name: value for name, value in drift.items() if name != "effects"}


def without_cost_drift(compared: Mapping[str, Any]) -> dict[str, Any]:
    """Give a comparison without what tells the way from cost to price: how much moved, not why."""
    changes = [
        {
            **change,
            "spec_changes": [place for place in change["spec_changes"] if not _is_cost(place)],
            "drift": without_causes(change["drift"]),
        }
        for change in compared["changes"]
    ]
    return {**compared, "changes": changes}


def _is_cost(place: str) -> bool:
    return place.startswith("/terms/markup") or "/supply/ownership" in place


def without_margin_rules(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Give an approval policy without the margins below which the seller does not go unasked."""
    return {**policy, "rules": [rule for rule in policy["rules"] if rule["measure"] != "margin"]}
