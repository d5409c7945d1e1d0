"""Fit of the serving parameters: kernel curves first, then engine effects on the measured rows, then residuals."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog.shipped import shipped_accelerators
from app.engine.interval import conformal_quantiles
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.curves import family
from app.engine.serving.operators import Floats
from benchmarks.serving.cases import Case
from benchmarks.serving.fit import (
    Problem,
    apply,
    cross_validate,
    jacobian,
    log_predictions,
    problem_of,
    solve,
)
from benchmarks.serving.kernel_fit import curves
from benchmarks.serving.read import DATA, read_cases, read_rows
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Fit of all rows, and the errors of each cross-validation; errors are log(predicted / measured)."""

    problem: Problem
    theta: Floats
    errors: Floats
    held_out: dict[str, Floats]


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
    slopes = jacobian(problem, theta, BASE, at)
    measured = np.array([t.log_measured for t in problem.targets])
    held = {
        name: cross_validate(problem, BASE, theta, label, count, rounds=2, slopes=slopes)
        for name, (label, count) in GROUPINGS.items()
    }
    return Fitted(problem=problem, theta=theta, errors=at - measured, held_out=held)


def effects_of(fitted: Fitted) -> dict[str, dict[str, float]]:
    """Effects by quantity and key."""
    out: dict[str, dict[str, float]] = {}
    for term, value in zip(fitted.problem.terms, fitted.theta, strict=True):
        out.setdefault(term.quantity, {})[term.key] = float(value)
    return out


def residuals_of(fitted: Fitted) -> dict[str, dict[str, list[float]]]:
    """Quantiles of log(measured / predicted) by metric and evidence class, from rows held out as that class implies.

    ``calibrated``: the pair or the source was unseen; ``transferred``: the chip or the source; ``datasheet``: the chip,
    of rows of the least known vendors, widened by the spread between sources.
    """
    names = {"rate": "output_tokens_per_s", "tpot": "tpot", "ttft": "ttft"}
    held = fitted.held_out
    pools = {"calibrated": ("pair", "source"), "transferred": ("chip", "source"), "datasheet": ("chip", "source")}
    out: dict[str, dict[str, list[float]]] = {}
    for metric, name in names.items():
        of_metric = np.array([t.metric == metric for t in fitted.problem.targets])
        counts: dict[str, int] = {}
        for t in fitted.problem.targets:
            counts[t.case.source] = counts.get(t.case.source, 0) + 1
        weight = np.array([counts[t.case.source] ** -0.5 for t in fitted.problem.targets])
        for evidence, groups in pools.items():
            errors = np.concatenate([-held[g][of_metric] for g in groups])
            weights = np.concatenate([weight[of_metric]] * len(groups))
            low, _, high = conformal_quantiles(errors, weights)
            widen = 1.25 if evidence == "datasheet" else 1.0
            out.setdefault(name, {})[evidence] = [low * widen, high * widen]
    out["e2e"] = {
        evidence: [min(out["tpot"][evidence][0], out["ttft"][evidence][0] * 0.5), out["tpot"][evidence][1]]
        for evidence in pools
    }
    return out


def parameter_file(fitted: Fitted, start: dict[str, Any]) -> dict[str, Any]:
    """The shipped mapping."""
    cases = {t.case.id: t.case for t in fitted.problem.targets}
    pairs = {f"{c.accelerator.id}|{c.precisions.weights}" for c in cases.values()}
    families = {f"family:{family(c.accelerator)}|" for c in cases.values()}
    return {
        **start,
        "effects": shorten(effects_of(fitted)),
        "residuals": shorten(residuals_of(fitted)),
        "calibrated": sorted(pairs | families),
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
    from benchmarks.serving.report import fit_report

    print(fit_report(fitted))
    return 0
