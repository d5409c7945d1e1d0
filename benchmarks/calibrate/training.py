"""Fit the training engine to the measurement rows and write what the catalog ships, the same bytes every time."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.interval import conformal_quantiles
from app.engine.training.calibration import BASES, TrainingCalibration
from app.engine.training.problem import Problem
from benchmarks.calibrate.kernel_curves import fit_curves
from benchmarks.training.fit import fit, source_weights, spreads
from benchmarks.training.packed import Packed, effect_names, pack, resolve_plans
from benchmarks.training.rows import Row, read_rows, readable_rows
from benchmarks.training.validation import (
    CHIP_FOLDS,
    PAIR_FOLDS,
    SOURCE_FOLDS,
    chip_of,
    out_of_sample,
    pair_of,
    source_of,
    vendor_of,
)

Array = NDArray[np.float64]

ROOT = Path(__file__).parents[2]
MEASUREMENTS = ROOT / "benchmarks" / "data" / "training_calibration.jsonl"
SHIPPED = ROOT / "app" / "catalog" / "data" / "calibration" / "training.json"
EVIDENCE = SHIPPED.with_name("training_evidence.jsonl")
CROSS_VALIDATION = ROOT / "benchmarks" / "data" / "training_cross_validation.jsonl"
# the day the measurement files were compiled (benchmarks/data/README.md); a date of today would change the bytes
COMPILED_ON = "2026-11-30"
# plans of rows that state none are searched with the parameters of the round before
ROUNDS = 3
LEVELS = (0.1, 0.5, 0.9)
# a job asked about comes from no source at all, but mostly from a stack like those measured: between both schemes
SOURCE_SHARE = 0.25
NO_RESIDUALS = {"calibrated": (-0.2, 0.0, 0.2), "transferred": (-0.3, 0.0, 0.3), "datasheet": (-0.5, 0.0, 0.5)}


def blank(curves: dict[str, dict[str, float | int]]) -> TrainingCalibration:
    """A calibration with kernel curves and every effect at zero."""
    data = {"effects": {}, "curves": curves, "residuals": {}, "seen": [], "fitted_on": COMPILED_ON}
    return replace(TrainingCalibration.from_mapping(data), residuals=NO_RESIDUALS)


def prepare(
    rows: Sequence[Row], calibration: TrainingCalibration
) -> tuple[list[Row], list[Problem], Packed, Array, Array]:
    """Rows with a throughput and a plan that fits, packed with their resolved plans."""
    problems, plans = resolve_plans(rows, calibration)
    usable = [
        (row, problem, plan)
        for row, problem, plan in zip(rows, problems, plans, strict=True)
        if row.tokens_per_s and plan is not None and isinstance(problem, Problem)
    ]
    chosen = [row for row, _, _ in usable]
    kept = [problem for _, problem, _ in usable]
    names = effect_names([p.setting for p in kept])
    packed = pack(kept, [plan for _, _, plan in usable], calibration, names)
    return chosen, kept, packed, np.log([row.tokens_per_s or 1.0 for row in chosen]), source_weights(chosen)


def fitted(rows: Sequence[Row]) -> tuple[TrainingCalibration, list[Row], list[Problem], Packed, Array, Array, Array]:
    """The calibration after all rounds, with what it was fitted to."""
    calibration = blank(fit_curves())
    for _ in range(ROUNDS):
        chosen, problems, packed, measured, weights = prepare(rows, calibration)
        start = np.array([calibration.effects.get(name, 0.0) for name in packed.names])
        effects = np.round(fit(packed, measured, weights, start), 4)
        calibration = replace(calibration, effects=dict(zip(packed.names, effects.tolist(), strict=True)))
    return calibration, chosen, problems, packed, measured, weights, effects


def seen_keys(problems: Sequence[Problem]) -> list[str]:
    """What the evidence classes look up."""
    keys: set[str] = set()
    for problem in problems:
        part, precision = problem.cluster.accelerator, problem.setting.precision
        keys |= {f"{part.id}:{precision}", f"accelerator={part.id}", f"vendor={part.vendor}"}
        keys.add(f"generation={part.architecture}")
    return sorted(keys)


def quantiles(residuals: Array, rows: Sequence[Row], how: str, weights: Array | None = None) -> dict[str, Any]:
    """Conformal quantiles of one evidence class, rows pooled."""
    ones = np.ones_like(residuals) if weights is None else weights
    low, centre, high = conformal_quantiles(residuals, ones, LEVELS)
    figures = {"p10": round(low, 4), "p50": round(centre, 4), "p90": round(high, 4)}
    return figures | {"unit": "log(measured / predicted)", "rows": len(rows), "how": how}


def run(out: Path | None) -> int:
    """Fit, cross-validate and write parameters, evidence and out-of-sample residuals."""
    rows, refused = readable_rows(read_rows(MEASUREMENTS))
    calibration, chosen, problems, packed, measured, weights, effects = fitted(rows)
    start = 0.0 * effects
    schemes = {
        "pair": (pair_of, PAIR_FOLDS),
        "source": (source_of, SOURCE_FOLDS),
        "chip": (chip_of, CHIP_FOLDS),
        "vendor": (vendor_of, len({vendor_of(r) for r in chosen})),
    }
    residuals = {
        name: out_of_sample(packed, chosen, measured, weights, group, count, start)
        for name, (group, count) in schemes.items()
    }
    spread = dict(zip(packed.names, spreads(packed.names), strict=True))
    counts = {name: int(packed.touched(i).size) for i, name in enumerate(packed.names)}
    data = {
        "fitted_on": COMPILED_ON,
        "measurements": "benchmarks/data/training_calibration.jsonl",
        "command": "python -m benchmarks.calibrate training",
        "rows_read": len(rows) + len(refused),
        "rows_used": len(chosen),
        "bases": BASES,
        "effects": {
            name: {"value": value, "unit": "log", "rows": counts[name], "prior_spread": round(float(spread[name]), 4)}
            for name, value in calibration.effects.items()
        },
        "curves": fit_curves(),
        "residuals": {
            "calibrated": quantiles(
                np.concatenate([residuals["pair"], residuals["source"]]),
                chosen,
                "chip-and-model pairs left out, and at a lower weight sources left out",
                np.repeat([1.0, SOURCE_SHARE], len(chosen)),
            ),
            "transferred": quantiles(residuals["chip"], chosen, "chips left out"),
            "datasheet": quantiles(residuals["vendor"], chosen, "vendors (NVIDIA: generations) left out"),
        },
        "seen": seen_keys(problems),
    }
    target = out or SHIPPED
    target.write_text(json.dumps(data, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if out is None:
        predicted = packed.log_rates(effects)
        _write_lines(EVIDENCE, [evidence(r, p) for r, p in zip(chosen, predicted, strict=True)])
        _write_lines(CROSS_VALIDATION, cross_validation(chosen, measured - predicted, residuals))
    print(f"{len(chosen)} rows, {len(packed.names)} effects -> {target}")
    return 0


def _write_lines(path: Path, items: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(item, sort_keys=True, separators=(",", ":")) + "\n" for item in items)
    path.write_text(text, encoding="utf-8")


def evidence(row: Row, log_predicted: float) -> dict[str, Any]:
    """One row as an option cites it at run time."""
    source = row.raw["source"]
    return {
        "id": row.id,
        "title": source.get("title"),
        "site": source.get("repo_or_site"),
        "path": source.get("path"),
        "version": re.sub(r"\s+", " ", str(source.get("version_or_date") or "")),
        "accelerator": row.cluster.accelerator.id,
        "model": row.family,
        "accelerators": row.cluster.accelerators,
        "precision": row.precision,
        "task": row.task,
        "sequence_length": row.workload.sequence_length,
        "measured": float(f"{row.tokens_per_s or 0.0:.5g}"),
        "predicted": float(f"{np.exp(log_predicted):.5g}"),
        "unit": "token/s per accelerator",
    }


def cross_validation(rows: Sequence[Row], fit_residuals: Array, residuals: dict[str, Array]) -> list[dict[str, Any]]:
    """Out-of-sample residuals, row by row."""
    return [
        {"id": row.id, "fit": round(float(fit_residuals[i]), 4)}
        | {name: round(float(values[i]), 4) for name, values in residuals.items()}
        for i, row in enumerate(rows)
    ]
