"""Why a revision costs what it costs: waterfall, assumptions, evidence, and what moves the total most."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from app.estimates import service as estimates
from app.quotes.calculation import Calculator
from app.quotes.content import open_content
from app.quotes.options import lines_of, money, selected_options
from app.quotes.records import Revision

# Rows of each base matrix: enough for the order of the drivers, quick enough to answer at once.
SAMPLES = 1024
TOP_DRIVERS = 5
_LINE_FIELDS = (
    "id",
    "kind",
    "description",
    "quantity",
    "unit",
    "list_unit_price",
    "waterfall",
    "net_unit_price",
    "net",
)


def explain(revision: Revision, calculator: Calculator, *, with_costs: bool) -> dict[str, Any]:
    """Explain the selected option of every item from what is stored.

    Changes that would save money or time (``improvements``) are worked out by the running engine, so they are there
    only while it is the one the revision pins.
    """
    content = open_content(revision.content_text)
    shown = content if with_costs else estimates.without_costs(content)
    whole = selected_options(content["items"])
    items = [
        _item(content, item_id, option, whole[item_id], calculator)
        for item_id, option in selected_options(shown["items"]).items()
    ]
    return {
        "revision": revision.head.n,
        "content_sha256": revision.head.content_sha256,
        "totals": content["totals"],
        "pins": content["pins"],
        "items": items,
    }


def _item(
    content: Mapping[str, Any],
    item_id: str,
    option: Mapping[str, Any] | None,
    whole: Mapping[str, Any] | None,
    calculator: Calculator,
) -> dict[str, Any]:
    if option is None or whole is None:
        return {"id": item_id, "option_id": None, "reason": "no option is selected"}
    limits = _limits(content, item_id)
    study = estimates.sensitivity(calculator.snapshot, whole, limits, SAMPLES)
    return {
        "id": item_id,
        "option_id": option["id"],
        "label": option["label"],
        "waterfall": [{name: line.get(name) for name in _LINE_FIELDS} for line in lines_of(option)],
        "assumptions": option["assumptions"],
        "evidence": option["evidence"],
        "advice": option["advice"],
        "improvements": _improvements(content, item_id, whole, calculator),
        "top_drivers": [row["name"] for row in study["factors"][:TOP_DRIVERS]],
        "sensitivity": study,
    }


def _improvements(
    content: Mapping[str, Any], item_id: str, option: Mapping[str, Any], calculator: Calculator
) -> dict[str, Any]:
    pins = content["pins"]
    if pins["engine_version"] != calculator.engine_version:
        return {"status": "engine-unavailable", "items": []}
    found = calculator.improvements(content["spec"], item_id, option, as_of=date.fromisoformat(pins["as_of"]))
    return {"status": "computed", "items": found}


def _limits(content: Mapping[str, Any], item_id: str) -> estimates.Limits:
    """Deadline, and the budget in the revision's own currency at its own rates."""
    constraints = next(item["constraints"] for item in content["spec"]["items"] if item["id"] == item_id)
    budget = constraints["budget"]
    amount = None
    if budget is not None:
        currency = content["spec"]["terms"]["currency"]
        rates = {f"{currency}/{currency}": Decimal(1), **{row["pair"]: Decimal(row["rate"]) for row in content["fx"]}}
        rate = rates.get(f"{budget['currency']}/{currency}")
        amount = None if rate is None else float(money(budget).amount * rate)
    return estimates.Limits(deadline_hours=constraints["deadline_hours"], budget=amount)
