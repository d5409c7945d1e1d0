"""The shape of one judged claim: verdict, figures of both sides, reason, condition, evidence."""

from collections.abc import Mapping
from typing import Any

from app.claims.conditions import Condition
from app.claims.facts import checked_statement
from app.claims.judging import Asked, Prediction, claimed_range
from app.claims.metrics import Metric
from app.claims.readings import Reading, World
from app.claims.reasons import Words, cannot_run, decided, not_like_this, unknown
from app.claims.schemas import ClaimField
from app.claims.sides import item_of
from app.claims.verdict import Judgement
from app.engine.outcome import Band
from app.estimates import service as estimates
from app.estimates.physics import quantized

EVIDENCE_PER_SIDE = 2
EMPTY: Mapping[str, Any] = {
    "verdict": "not_decidable",
    "predicted": None,
    "unit": None,
    "chances": None,
    "basis": None,
    "shared_error": None,
    "candidate": None,
    "baseline": None,
    "reason": None,
    "condition": None,
    "evidence": [],
    "assumptions": [],
}


def _unit(world: World, metric: Metric) -> str:
    return world.terms.currency if metric.unit == "money" else metric.unit


def answer_json(world: World, asked: Asked, found: Prediction, condition: Condition | None) -> dict[str, Any]:
    metric, unit = asked.metric, _unit(world, asked.metric)
    reason = _reason(asked, found, unit)
    claim = asked.field
    figure = found.candidate.figure if found.candidate else None
    row = {
        **head_json(claim, metric, asked.relation),
        "verdict": found.judged.verdict if found.judged else "not_decidable",
        "predicted": band_json(found.band),
        "unit": {"ratio": "ratio", "percent_change": "percent"}.get(asked.relation, unit),
        "chances": chances_json(found.judged),
        "basis": figure.basis if figure else None,
        "shared_error": found.shared_error,
        "candidate": _side(found.candidate, unit),
        "baseline": _side(found.baseline, unit),
        "reason": reason,
        "condition": condition.as_json() if condition else None,
        "evidence": _evidence(world, asked, found),
        "assumptions": [dict(a) for a in found.assumptions],
    }
    rounded: dict[str, Any] = quantized(row)
    return rounded


def _reason(asked: Asked, found: Prediction, unit: str) -> Words:
    if found.band is not None and found.judged is not None:
        words = decided(asked.metric, asked.relation, found.band, asked.claimed, asked.field.equals, found.judged, unit)
        why = found.candidate.why if found.candidate else None
        if asked.metric.source == "feasible" and why:
            return not_like_this(why, found.candidate.numbers if found.candidate else {})
        return words
    for name, reading in (("candidate", found.candidate), ("baseline", found.baseline)):
        if reading is not None and reading.figure is None:
            why = reading.why or ""
            return cannot_run(name, why, reading.numbers) if reading.infeasible else unknown(name, why)
    return unknown("baseline", "the figure is zero, so nothing can be compared with it")


def head_json(claim: ClaimField, metric: Metric, relation: str | None) -> dict[str, Any]:
    stated = claimed_range(claim) if (claim.low, claim.high, claim.equals) != (None, None, None) else None
    return {
        "id": claim.id,
        "metric": metric.id,
        "relation": relation,
        "claimed": {"low": stated.low, "high": stated.high, "equals": claim.equals} if stated else None,
        "text": claim.text,
    }


def band_json(band: Band | None) -> dict[str, float] | None:
    return None if band is None else {"p10": band.p10, "p50": band.p50, "p90": band.p90}


def chances_json(judged: Judgement | None) -> dict[str, float] | None:
    return None if judged is None else {"worse": judged.worse, "within": judged.within, "better": judged.better}


def _side(reading: Reading | None, unit: str) -> dict[str, Any] | None:
    if reading is None:
        return None
    run, figure, option = reading.run, reading.figure, reading.option
    is_share = figure is not None and figure.basis == "arithmetic" and run is None and not reading.numbers
    return {
        "value": band_json(figure.value) if figure else None,
        "unit": "relative" if is_share and unit != "yes = 1" else unit,
        "basis": figure.basis if figure else None,
        "why": reading.why,
        "label": option["label"] if option else None,
        "configuration": None
        if run is None
        else {key: run[key] for key in ("accelerator", "accelerators", "nodes", "fabric", "plan") if key in run},
        "numbers": dict(reading.numbers),
    }


def _evidence(world: World, asked: Asked, found: Prediction) -> list[dict[str, Any]]:
    """Catalog rows, prices and the nearest public measurements behind both sides."""
    rows: list[dict[str, Any]] = []
    for name, side, reading in (
        ("candidate", asked.candidate, found.candidate), ("baseline", asked.baseline, found.baseline)
    ):  # fmt: skip
        if reading is None:
            continue
        rows.extend({"side": name, **row} for row in reading.evidence)
        if reading.run is not None and side is not None:
            near = estimates.nearest_measurements(world.snapshot, item_of(side), reading.run)[:EVIDENCE_PER_SIDE]
            rows.extend({"side": name, "kind": "measurement", **row} for row in near)
    text = asked.field.text
    checked = checked_statement(world.snapshot, text) if text and asked.metric.source == "specification" else None
    if checked is not None:
        rows.append(checked.as_json())
    return rows
