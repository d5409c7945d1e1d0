"""Fit of the serving parameters: kernel curves first, then engine effects on the measured rows, then residuals."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog.shipped import shipped_accelerators
from app.engine.serving.calibration import ServingCalibration
from benchmarks.serving.cases import Case
from benchmarks.serving.document import TABLES
from benchmarks.serving.fit import (
    apply,
    cross_validate,
    log_predictions,
    problem_of,
    solve,
)
from benchmarks.serving.intervals import Fitted, residuals_of
from benchmarks.serving.kernel_fit import curves
from benchmarks.serving.read import DATA, read_cases, read_rows
from benchmarks.serving.report import fit_report
from benchmarks.serving.terms import BASE, ENGINE_CONVENTIONS, TERMS

ROWS = DATA / "inference_calibration.jsonl"
SHIPPED = Path(__file__).parents[2] / "app" / "catalog" / "data" / "calibration"
# parameters are written with this many significant digits, far inside their uncertainty
DIGITS = 4
DEFAULT_STACK = "vllm"
DEFAULT_YEAR = 2026.0
# date of the rows and kernel tables the file rests on
DATA_DATE = "2026-11-30"
GROUPINGS = {
    "pair": (lambda c: c.pair, 8),
    "source": (lambda c: c.source, 20),
    "chip": (lambda c: c.accelerator.id, 12),
}


def shorten(value: Any) -> Any:
    """Numbers to ``DIGITS`` significant digits, all the way down."""
    if isinstance(value, dict):
        return {k: shorten(v) for k, v in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [shorten(v) for v in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def seed() -> dict[str, Any]:
    """The parameter file before any effect."""
    return {
        "curves": shorten(curves(shipped_accelerators())),
        "base": dict(BASE),
        "effects": {},
        "engines": {k: dict(v) for k, v in ENGINE_CONVENTIONS.items()},
        "residuals": {},
        "calibrated": [],
        "default_stack": DEFAULT_STACK,
        "default_year": DEFAULT_YEAR,
    }


def fit_cases(cases: Sequence[Case], start: dict[str, Any]) -> Fitted:
    """Fit and cross-validate."""
    calibration = ServingCalibration.from_mapping(start)
    problem = problem_of(cases, calibration, TERMS)
    theta = np.array([float(f"{x:.{DIGITS}g}") for x in solve(problem, BASE)])
    at = log_predictions(problem, apply(problem, theta, BASE))
    measured = np.array([t.log_measured for t in problem.targets])
    held = {name: cross_validate(problem, BASE, label, count) for name, (label, count) in GROUPINGS.items()}
    return Fitted(problem=problem, theta=theta, errors=at - measured, held_out=held)


def effects_of(fitted: Fitted) -> dict[str, dict[str, float]]:
    """Effects by quantity and key."""
    out: dict[str, dict[str, float]] = {}
    for term, value in zip(fitted.problem.terms, fitted.theta, strict=True):
        out.setdefault(term.quantity, {})[term.key] = float(value)
    return out


def parameter_file(fitted: Fitted, start: dict[str, Any]) -> dict[str, Any]:
    """The shipped mapping."""
    cases = {t.case.id: t.case for t in fitted.problem.targets}
    pairs = {f"{c.accelerator.id}|{c.precisions.weights}" for c in cases.values()}
    vendors = {f"vendor:{c.accelerator.vendor}|" for c in cases.values()}
    return {
        **start,
        "effects": shorten(effects_of(fitted)),
        "residuals": shorten(residuals_of(fitted)),
        "calibrated": sorted(pairs | vendors),
        "rows": len(cases),
        "figures": len(fitted.problem.targets),
        "data_date": DATA_DATE,
        "units": {k: "s" if k.endswith("_s") else "1" for k in sorted(BASE)},
        "attribution": "kernel curves derived from aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0), see kernels.md",
    }


def evidence_lines(fitted: Fitted) -> str:
    """Condensed evidence: one line a measured rate or TPOT, with the prediction of the fit."""
    lines = []
    for target, error in zip(fitted.problem.targets, fitted.errors, strict=True):
        c = target.case
        value = float(np.exp(target.log_measured))
        lines.append(
            json.dumps(
                shorten(
                    {
                        "id": c.id, "source": c.source, "accelerator": c.accelerator.id, "model": c.model,
                        "accelerators": c.accelerators, "engine": c.stack, "precision": c.precisions.weights,
                        "isl": c.prompt, "osl": c.output, "concurrency": c.concurrency, "metric": target.metric,
                        "measured": value, "predicted": value * float(np.exp(error)),
                    }
                ),
                sort_keys=True,
            )
        )  # fmt: skip
    return "\n".join(lines) + "\n"


def calibrate() -> tuple[Fitted, dict[str, Any]]:
    """Fit everything on the calibration rows."""
    cases, _ = read_cases(read_rows(ROWS))
    start = seed()
    fitted = fit_cases([c for c in cases if not c.mlperf], start)
    return fitted, parameter_file(fitted, start)


def run(out: Path | None) -> int:
    """Write the parameter file and the evidence beside it; the same measurements give the same bytes."""
    fitted, parameters = calibrate()
    path = out or SHIPPED / "serving.json"
    path.write_text(json.dumps(parameters, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    path.with_name(f"{path.stem}_evidence.jsonl").write_text(evidence_lines(fitted), encoding="utf-8")
    tables = fit_report(fitted)
    print(tables)
    if out is None:
        kept = {"rows": parameters["rows"], "figures": parameters["figures"], "tables": tables}
        TABLES.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0
