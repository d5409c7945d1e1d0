"""What a caller without ``costs:read`` does not get to see: the way from cost to price."""

from collections.abc import Mapping
from typing import Any


def without_costs(content: Mapping[str, Any]) -> dict[str, Any]:
    """Give the content without mark-up and what it was put on; its hash stays that of the whole content."""
    spec = dict(content["spec"])
    terms = spec.get("terms")
    if isinstance(terms, Mapping) and "markup" in terms:
        spec["terms"] = {name: value for name, value in terms.items() if name != "markup"}
    items = [{**item, "options": [_option(option) for option in item["options"]]} for item in content["items"]]
    return {**content, "spec": spec, "items": items}


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
