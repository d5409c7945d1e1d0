"""Revisions side by side: what each costs, what differs between them, and why a total moved."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.foundation.canonical import canonical_sha256
from app.pricing.currency import exponent
from app.pricing.money import CONTEXT, ONE, Money
from app.quotes.content import open_content
from app.quotes.costs import without_cost_drift
from app.quotes.drift import Drift, DriftLine, DriftSide, split_drift
from app.quotes.mergepatch import changed_pointers
from app.quotes.options import lines_of, money, selected_options
from app.quotes.records import Revision

_HUNDRED = Decimal(100)
# Fields of a spec that say when it is priced and for how long, not what is wanted.
_NOT_THE_JOB = ("as_of", "catalog_revision", "title")


def compare(revisions: Sequence[tuple[Revision, str | None]], *, with_costs: bool = True) -> dict[str, Any]:
    """Compare two or more revisions; each pair of neighbours gets a drift report.

    Without ``with_costs`` the report says how much moved and not why: the causes tell the margin.
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
            "drift": drift_view(contents[index], contents[index + 1]),
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


def drift_view(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Write the drift between two contents; says why where there is none to state."""
    if before["totals"] is None or after["totals"] is None:
        return {"available": False, "reason": "a revision has parts without a price, so it has no total"}
    currencies = [side["totals"]["net"]["currency"] for side in (before, after)]
    if currencies[0] != currencies[1]:
        reason = f"totals are in {currencies[0]} and {currencies[1]}; amounts of two currencies have no difference"
        return {"available": False, "reason": reason}
    quantum = ONE.scaleb(-exponent(currencies[0]))
    drift = split_drift(_side(before), _side(after), quantum=quantum)
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


def _side(content: Mapping[str, Any]) -> DriftSide:
    net = money(content["totals"]["net"])
    spec = {name: value for name, value in content["spec"].items() if name not in _NOT_THE_JOB}
    return DriftSide(
        lines=tuple(_lines(content, net.currency)),
        total=net.amount,
        currency=net.currency,
        spec_sha256=canonical_sha256(_without_terms(spec)),
        engine=f"{content['pins']['engine_version']}+{content['pins']['engine_build']}",
    )


def _without_terms(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Give the spec without its commercial terms: they are the contract, not the job."""
    return {name: value for name, value in spec.items() if name not in ("terms", "customer")}


def _lines(content: Mapping[str, Any], currency: str) -> list[DriftLine]:
    lines: list[DriftLine] = []
    rates = _rates(content, currency)
    for item_id, option in selected_options(content["items"]).items():
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
