"""Revisions side by side: what each costs, what differs between them, and why a total moved."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.estimates.service import Kept, nearest_option
from app.foundation.canonical import canonical_sha256
from app.pricing.currency import exponent
from app.pricing.money import CONTEXT, ONE, Money
from app.quotes.calculation import Calculation
from app.quotes.content import open_content
from app.quotes.costs import without_cost_drift
from app.quotes.drift import Drift, DriftLine, DriftSide, split_drift
from app.quotes.mergepatch import changed_pointers
from app.quotes.options import lines_of, money, option_of, selected_options
from app.quotes.records import Revision

_HUNDRED = Decimal(100)
# Fields of a spec that say when and on which terms it is priced and for whom, not what is wanted.
_NOT_THE_JOB = ("as_of", "catalog_revision", "title", "terms", "customer")


def compare(
    revisions: Sequence[tuple[Revision, str | None]],
    *,
    with_costs: bool = True,
    between: Sequence[Calculation | None] = (),
) -> dict[str, Any]:
    """Compare two or more revisions; each pair of neighbours gets a drift report.

    Without ``with_costs`` the report says how much moved and not why: the causes tell the margin. ``between`` holds,
    for each pair, what :func:`app.quotes.separating.between` found.
    """
    contents = [open_content(revision.content_text) for revision, _ in revisions]
    columns = [
        _column(revision, number, content) for (revision, number), content in zip(revisions, contents, strict=True)
    ]
    changes = [
        {
            "from": columns[index]["id"],
            "to": columns[index + 1]["id"],
            "spec_changes": changed_pointers(contents[index]["spec"], contents[index + 1]["spec"]),
            "pin_changes": changed_pointers(contents[index]["pins"], contents[index + 1]["pins"]),
            "drift": drift_view(contents[index], contents[index + 1], between[index] if between else None),
        }
        for index in range(len(contents) - 1)
    ]
    compared = {"revisions": columns, "changes": changes}
    return compared if with_costs else without_cost_drift(compared)


def _column(revision: Revision, number: str | None, content: Mapping[str, Any]) -> dict[str, Any]:
    head = revision.head
    options = selected_options(content["items"])
    return {
        "id": head.id,
        "quote_id": head.quote_id,
        "revision": head.n,
        "number": number,
        "status": head.status,
        "content_sha256": head.content_sha256,
        "totals": content["totals"],
        "pins": content["pins"],
        "selected": {
            item_id: None
            if option is None
            else {name: option.get(name) for name in ("id", "offer", "configuration", "performance", "unit_costs")}
            for item_id, option in options.items()
        },
    }


def drift_view(
    before: Mapping[str, Any], after: Mapping[str, Any], between: Calculation | None = None
) -> dict[str, Any]:
    """Write the drift between two contents; says why where there is none to state."""
    if before["totals"] is None or after["totals"] is None:
        return {"available": False, "reason": "a revision has parts without a price, so it has no total"}
    currencies = [side["totals"]["net"]["currency"] for side in (before, after)]
    if currencies[0] != currencies[1]:
        reason = f"totals are in {currencies[0]} and {currencies[1]}; amounts of two currencies have no difference"
        return {"available": False, "reason": reason}
    quantum = ONE.scaleb(-exponent(currencies[0]))
    held = _on_supply_of(before, after)
    drift = split_drift(
        _side(before, _common(before, held)),
        _side(after, held),
        quantum=quantum,
        between=None if between is None else _quantities(before, between),
    )
    return {"available": True, **_drift_json(drift)}


def _drift_json(drift: Drift) -> dict[str, Any]:
    return {
        "before": _amount(drift.before, drift.currency),
        "after": _amount(drift.after, drift.currency),
        "change": _amount(drift.change, drift.currency),
        "change_percent": _percent(drift.change, drift.before),
        "effects": {
            name: {"amount": _amount(value, drift.currency), "percent": _percent(value, drift.before)}
            for name, value in drift.effects.items()
        },
        "notes": list(drift.notes),
    }


def _amount(value: Decimal, currency: str) -> dict[str, str]:
    return Money.settled(value, currency).as_json()


def _percent(part: Decimal, whole: Decimal) -> str | None:
    if not whole:
        return None
    return format(CONTEXT.divide(part * _HUNDRED, whole).quantize(Decimal("0.01")), "f")


def job_sha256(content: Mapping[str, Any]) -> str:
    """Hash what is wanted, apart from when it is priced and on which terms."""
    spec = {name: value for name, value in content["spec"].items() if name not in _NOT_THE_JOB}
    return canonical_sha256(spec)


def engine_of(content: Mapping[str, Any]) -> str:
    """Name the engine behind the figures."""
    return f"{content['pins']['engine_version']}+{content['pins']['engine_build']}"


Options = Mapping[str, Mapping[str, Any] | None]


def _on_supply_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
    """For each item of ``after`` its option on the supply that ``before`` selected; None where there is none."""
    earlier = selected_options(before["items"])
    found: dict[str, Mapping[str, Any] | None] = {}
    for item in after["items"]:
        selected = earlier.get(item["id"])
        if selected is None:
            found[item["id"]] = option_of(item, item["selected_option_id"])
            continue
        priced = [option for option in item["options"] if option["cost"]["totals"] is not None]
        found[item["id"]] = nearest_option(Kept.of_option(selected), priced)
    return found


def _common(before: Mapping[str, Any], held: Options) -> Options:
    """Selected options of ``before``, without those whose supply is gone: their whole cost is a change of selection."""
    return {
        item: None if item in held and held[item] is None else option
        for item, option in selected_options(before["items"]).items()
    }


def _side(content: Mapping[str, Any], held: Options) -> DriftSide:
    net = money(content["totals"]["net"])
    lines = _lines(content, net.currency, held)
    whole = _lines(content, net.currency, selected_options(content["items"]))
    return DriftSide(
        lines=tuple(lines),
        total=net.amount,
        currency=net.currency,
        spec_sha256=job_sha256(content),
        engine=engine_of(content),
        selection=sum((line.total for line in whole), Decimal(0)) - sum((line.total for line in lines), Decimal(0)),
    )


def _quantities(before: Mapping[str, Any], between: Calculation) -> dict[str, Decimal]:
    """Quantities of the earlier job on the later engine, on the supply selected before."""
    content = {"items": between.items, "fx": between.fx}
    return {line.key: line.quantity for line in _lines(content, between.currency, _on_supply_of(before, content))}


def _lines(content: Mapping[str, Any], currency: str, options: Options) -> list[DriftLine]:
    lines: list[DriftLine] = []
    rates = _rates(content, currency)
    for item_id, option in options.items():
        if option is None:
            continue
        seen: Counter[str] = Counter()
        months = Decimal(option["cost"]["totals"]["tco_horizon_months"] or 1)
        lines.extend(_drift_line(item_id, line, seen, rates, months, currency) for line in lines_of(option))
    return lines


def _drift_line(
    item_id: str,
    line: Mapping[str, Any],
    seen: Counter[str],
    rates: Mapping[str, Decimal],
    months: Decimal,
    currency: str,
) -> DriftLine:
    offer = (line.get("price_evidence") or {}).get("offer_id") or ""
    name = f"{item_id}/{offer}/{line['kind']}/{line['charge']}/{line['unit']}"
    seen[name] += 1
    counted = months if line["charge"] == "recurring" else ONE
    native_net = line.get("native_net")
    native = native_net["currency"] if native_net else currency
    rate = rates.get(native, ONE)
    listed = money(line["list_unit_price"]).amount
    paid = money(line["net_unit_price"]).amount
    return DriftLine(
        key=f"{name}/{seen[name]}",
        quantity=Decimal(line["quantity"]) * counted,
        list_unit_price=CONTEXT.divide(listed, rate),
        native_currency=native,
        exchange_rate=rate,
        total=CONTEXT.multiply(money(line["net"]).amount, counted),
        contract_factor=CONTEXT.divide(paid, listed) if listed else None,
    )


def _rates(content: Mapping[str, Any], currency: str) -> dict[str, Decimal]:
    rates = {currency: ONE}
    for row in content["fx"]:
        base, quote = row["pair"].split("/")
        if quote == currency:
            rates[base] = Decimal(row["rate"])
    return rates
