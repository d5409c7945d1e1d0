"""Why a row is far off, from what can be told: its repeats, what it leaves unsaid, and where its time goes."""

from collections.abc import Sequence

import numpy as np

from app.engine.outcome import Infeasible
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from benchmarks.training.rows import Row

# repeats of a job that differ by more than this cannot both be predicted
DISAGREEMENT = 1.2


def diagnose(row: Row, rows: Sequence[Row], calibration: TrainingCalibration) -> str:
    """One or two sentences."""
    parts = [_repeats(row, rows), _unsaid(row), _lonely(row, rows), _time(row, calibration)]
    return "; ".join(part for part in parts if part)


def _repeats(row: Row, rows: Sequence[Row]) -> str:
    same = [
        r.tokens_per_s
        for r in rows
        if (r.gpu, r.family, r.task, r.workload.sequence_length)
        == (row.gpu, row.family, row.task, row.workload.sequence_length)
        and r.precision == row.precision
        and r.tokens_per_s
    ]
    if len(same) > 1 and max(same) / min(same) > DISAGREEMENT:
        return (
            f"{len(same)} rows of this chip, model, precision and length span {min(same):,.0f} to {max(same):,.0f} "
            "tokens/s"
        )
    return ""


def _unsaid(row: Row) -> str:
    plan = row.raw.get("parallelism") or {}
    missing = [name for name in ("tp", "pp") if plan.get(name) is None]
    if row.raw.get("micro_batch") is None:
        missing.append("micro-batch")
    if row.raw.get("recompute") is None and row.raw.get("gpu", "").startswith(("TPU", "MI")):
        missing.append("recompute")
    return f"the row does not state {', '.join(missing)}" if missing else ""


def _lonely(row: Row, rows: Sequence[Row]) -> str:
    chip = [r for r in rows if r.gpu == row.gpu and r.family != row.family]
    if not chip:
        return "no other model was measured on this chip"
    kin = [r for r in chip if r.precision == row.precision and r.moe == row.moe]
    return "" if kin else f"no other row of this chip is {row.precision} and {'MoE' if row.moe else 'dense'}"


def _time(row: Row, calibration: TrainingCalibration) -> str:
    found = search_training(row.workload, row.cluster, row.request, calibration)
    if isinstance(found, Infeasible):
        return ""
    order = sorted(found.time_breakdown.items(), key=lambda item: -item[1])[:3]
    rate = found.tokens_per_s.p50 / row.cluster.accelerators
    share = np.expm1(np.log(rate / (row.tokens_per_s or rate)))
    words = ", ".join(f"{name} {value:.0%}" for name, value in order)
    return f"with its pair seen {share:+.0%}; predicted time: {words}"
