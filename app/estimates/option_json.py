"""The shape of one option (API contract B and 2.1)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from app.catalog.offers import Offer
from app.catalog.snapshot import Snapshot
from app.estimates.advice import advise
from app.estimates.assumptions import HOURS, Assumption, read_stored, with_shares
from app.estimates.bill import Run
from app.estimates.costs import Cost, training_hours
from app.estimates.evidence import nearest_measurements
from app.estimates.ownership import OwnedCost
from app.estimates.purchase import HourlyPrice, offer_json, sold_units
from app.estimates.schemas import Item
from app.estimates.supply import Candidate
from app.estimates.terms import PricedTerms
from app.pricing.money import CONTEXT, Money, quantity_from_float
from app.pricing.outcome import Unpriced

MILLION = Decimal(1_000_000)


def option_json(
    snapshot: Snapshot,
    item: Item,
    option_id: str,
    run: Run,
    candidate: Candidate,
    cost: Cost | None,
    price: HourlyPrice | OwnedCost | Unpriced,
    terms: PricedTerms,
    committed: HourlyPrice | None,
) -> dict[str, Any]:
    """One option as an answer shows and a revision stores it."""
    offer = candidate.offer
    lines = cost.lines if cost else ()
    assumed = [*read_stored(run["assumptions"]), *_fabric(candidate, run), *(cost.assumptions if cost else ())]
    return {
        "id": option_id,
        "label": _label(snapshot, run, offer, committed),
        "recommended": False,
        "run_key": run["key"],
        "offer": dict(offer_json(offer)),
        "committed_offer": dict(offer_json(committed.offer)) if committed else None,
        "configuration": _configuration(run, candidate),
        "performance": dict(run["performance"]),
        "cost": _cost_json(cost, price),
        "unit_costs": unit_costs(run, cost),
        "energy": _energy(run),
        "advice": advise(snapshot, item, run, offer, cost, terms),
        "evidence": nearest_measurements(snapshot, item, run),
        "assumptions": with_shares(assumed, lines),
        "completeness": _completeness(cost, price),
    }


def _label(snapshot: Snapshot, run: Run, offer: Offer | None, committed: HourlyPrice | None) -> dict[str, str]:
    entry = snapshot.accelerators.get(run["accelerator"])
    name = entry.name if entry else run["accelerator"]
    hardware = f"{run['accelerators']} x {name}"
    if offer is None:
        return {"en": f"{hardware}, owned", "zh-CN": f"{hardware}，自有"}
    key = offer.key
    term = f" {key.term_months} months" if key.term_months else ""
    how = key.purchase_model.replace("_", " ") + term
    if committed is not None:
        how = f"base reserved {committed.offer.key.term_months} months, peak {how}"
    chinese = {
        "on_demand": "按需",
        "reserved": "预留",
        "spot": "竞价",
        "capacity_block": "容量块",
        "marketplace": "市场",
        "owned": "自有",
    }
    months = f" {key.term_months} 个月" if key.term_months else ""
    return {
        "en": f"{hardware}, {key.provider} {key.sku} in {key.region}, {how}",
        "zh-CN": f"{hardware}，{key.provider} {key.sku}（{key.region}），{chinese[key.purchase_model]}{months}",
    }


def _fabric(candidate: Candidate, run: Run) -> list[Assumption]:
    """The network, where it is the accelerator's usual one and not the offer's own."""
    fabric = run["fabric"]
    if fabric is None or candidate.fabric_basis != "typical" or run["nodes"] < 2:
        return []
    return [
        Assumption(
            id="scale_out_bytes_per_s_per_accelerator",
            value=fabric["bytes_per_s_per_accelerator"],
            unit="byte/s",
            source=f"usual network of servers with {run['accelerator']}; the offer does not state its own",
            moves=HOURS,
        )
    ]


def _configuration(run: Run, candidate: Candidate) -> dict[str, Any]:
    offer = candidate.offer
    result: dict[str, Any] = {
        "accelerator": run["accelerator"],
        "architecture": run["architecture"],
        "accelerators": run["accelerators"],
        "nodes": run["nodes"],
        "fabric": {**run["fabric"], "basis": candidate.fabric_basis} if run["fabric"] else None,
        "plan": dict(run["plan"]),
    }
    for name in ("accelerators_per_run", "concurrent_runs", "precision", "spare_nodes", "data", "checkpoint", "fleet"):
        if name in run:
            result[name] = run[name]
    if offer is not None:
        _, sold = sold_units(offer, run["accelerators"])
        result["sold_units"] = sold
        result["sold_unit"] = offer.sold_unit
    return result


def _cost_json(cost: Cost | None, price: HourlyPrice | OwnedCost | Unpriced) -> dict[str, Any]:
    if cost is None:
        reason = price if isinstance(price, Unpriced) else Unpriced(outcome="unknown_price", reason="not priced")
        return {
            "status": reason.outcome,
            "reason": reason.reason,
            "missing": list(reason.missing),
            "lines": [],
            "unpriced_lines": [],
            "excluded": [],
            "totals": None,
            "net": None,
            "native_subtotals": [],
            "converted_from": [],
        }
    net = cost.totals.net.as_json() if cost.totals else None
    return {
        "status": "priced" if cost.totals else "incomplete",
        "lines": [line.as_json() for line in cost.lines],
        "unpriced_lines": [line.as_json() for line in cost.unpriced],
        "excluded": [dict(e) for e in cost.excluded],
        "totals": cost.totals.as_json() if cost.totals else None,
        "net": {
            "p10": cost.low.as_json() if cost.low else None,
            "p50": net,
            "p90": cost.high.as_json() if cost.high else None,
        },
        "native_subtotals": _native(cost),
        "converted_from": cost.converted_from,
    }


def _native(cost: Cost) -> list[dict[str, object]]:
    """Sums by charge in each currency that prices came in, where that is not the terms' own."""
    sums: dict[tuple[str, str], Money] = {}
    for line in cost.lines:
        if line.native_net is not None:
            key = (line.charge, line.native_net.currency)
            sums[key] = sums[key] + line.native_net if key in sums else line.native_net
    return [{"charge": charge, **amount.as_json()} for (charge, _), amount in sorted(sums.items())]


def unit_costs(run: Run, cost: Cost | None) -> dict[str, Any]:
    """Net cost per unit of work; None where the option has no total."""
    names = _training_units(run) if run["kind"] == "training" else _serving_units(run)
    if cost is None or cost.totals is None:
        return dict.fromkeys(names)
    base = cost.totals.net if run["kind"] == "training" else cost.totals.recurring_monthly
    result: dict[str, Any] = {}
    for name, (share, units) in names.items():
        priced = base.times_unit(share).per(units) if units and share is not None else None
        result[name] = priced.as_json() if priced else None
    return result


Units = Mapping[str, tuple[Decimal | None, Decimal]]


def _training_units(run: Run) -> Units:
    one = Decimal(1)
    _, hours = training_hours(run, "p50")
    tokens = quantity_from_float(run["tokens"])
    return {
        "per_million_tokens": (one, CONTEXT.divide(tokens, MILLION)),
        "per_run": (one, CONTEXT.divide(tokens, quantity_from_float(run["tokens_per_run"]))),
        "per_experiment": (one, quantity_from_float(run["experiments"])),
        "per_accelerator_hour": (one, CONTEXT.multiply(Decimal(run["accelerators"]), hours)),
    }


def _serving_units(run: Run) -> Units:
    one = Decimal(1)
    monthly = {k: quantity_from_float(v) for k, v in run["monthly"].items()}
    prefill = None if run["prefill_share"] is None else quantity_from_float(run["prefill_share"])
    decode = None if prefill is None else one - prefill
    both = monthly["input_tokens"] + monthly["output_tokens"]
    hours = CONTEXT.multiply(Decimal(run["accelerators"]), Decimal(730))
    return {
        "per_million_input_tokens": (prefill, CONTEXT.divide(monthly["input_tokens"], MILLION)),
        "per_million_output_tokens": (decode, CONTEXT.divide(monthly["output_tokens"], MILLION)),
        "per_million_tokens_blended": (one, CONTEXT.divide(both, MILLION)),
        "per_thousand_requests": (one, CONTEXT.divide(monthly["requests"], Decimal(1000))),
        "per_accelerator_hour": (one, hours),
    }


def _energy(run: Run) -> dict[str, Any] | None:
    energy = run["energy"]
    if energy is None:
        return None
    period = "campaign" if run["kind"] == "training" else "month"
    known = energy["kg_co2e"] is not None
    return {
        **energy,
        "period": period,
        "carbon_status": "estimated" if known else "unknown: no grid intensity was stated",
    }


def _completeness(cost: Cost | None, price: HourlyPrice | OwnedCost | Unpriced) -> dict[str, Any]:
    if cost is None:
        outcome = price.outcome if isinstance(price, Unpriced) else "unknown_price"
        reason = price.reason if isinstance(price, Unpriced) else "not priced"
        unpriced = [{"id": "10", "outcome": outcome, "reason": reason}]
        return {"complete": False, "unpriced_lines": unpriced, "stale_lines": []}
    unpriced = [
        {"id": line.id, "outcome": line.unpriced.outcome, "reason": line.unpriced.reason} for line in cost.unpriced
    ]
    return {
        "complete": cost.totals is not None,
        "unpriced_lines": unpriced,
        "stale_lines": cost.stale_lines,
    }
