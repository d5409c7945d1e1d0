"""Predictions of rows: with the plan a row states, and with the plan the engine would choose."""

from dataclasses import dataclass, replace
from typing import Any

from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_problem, search_training
from app.engine.workload import TrainingPlanRequest
from benchmarks.training.reasons import reason
from benchmarks.training.rows import Row
from benchmarks.training.stated import rank_row

# share of a whole run spent evaluating where a row does not say (MLPerf rows of the calibration: median 0.1)
EVALUATION_SHARE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One figure of one row against its measurement."""

    row: Row
    metric: str
    measured: float
    predicted: float | None
    p10: float | None
    p90: float | None
    refused: str | None
    evidence_class: str | None
    searched_predicted: float | None
    searched_reason: str | None
    assumed: str

    def element(self) -> dict[str, Any]:
        """As the accuracy file writes it."""
        return {
            "id": self.row.id,
            "metric": self.metric,
            "measured": self.measured,
            "predicted": self.predicted,
            "p10": self.p10,
            "p90": self.p90,
            "refused": self.refused,
            "evidence_class": self.evidence_class,
            "searched_predicted": self.searched_predicted,
            "searched_reason": self.searched_reason,
            "assumed": self.assumed,
        }


def predict(row: Row, calibration: TrainingCalibration) -> list[Prediction]:
    """Every figure of a row: throughput, hours, or both."""
    ranked = rank_row(row, calibration)
    note = "" if isinstance(ranked, Infeasible) else ranked[2]
    stated = ranked if isinstance(ranked, Infeasible) else search_problem(ranked[0])
    free = search_training(row.workload, row.cluster, TrainingPlanRequest(), calibration)
    figures: list[Prediction] = []
    count = row.cluster.accelerators
    if row.tokens_per_s is not None:
        figures.append(_figure(row, "tokens_per_s_per_gpu", row.tokens_per_s, stated, free, 1.0 / count, False))
    if row.wall_hours is not None and row.tokens_total is not None:
        figures.append(_figure(row, "wall_hours", row.wall_hours, stated, free, row.tokens_total / 3600.0, True))
        hours = row.wall_hours * count
        figures.append(_figure(row, "accelerator_hours", hours, stated, free, row.tokens_total * count / 3600.0, True))
    if not figures and row.wall_hours is not None:
        why = "the row states a duration but no amount of work (tokens_total is null)"
        figures.append(_refusal(row, "wall_hours", row.wall_hours, why))
    return [replace(figure, assumed="; ".join(filter(None, (figure.assumed, note)))) for figure in figures]


def _refusal(row: Row, metric: str, measured: float, refused: str) -> Prediction:
    return Prediction(
        row=row,
        metric=metric,
        measured=measured,
        predicted=None,
        p10=None,
        p90=None,
        refused=refused,
        evidence_class=None,
        searched_predicted=None,
        searched_reason=None,
        assumed="",
    )


def _figure(
    row: Row,
    metric: str,
    measured: float,
    stated: TrainingResult | Infeasible,
    free: TrainingResult | Infeasible,
    scale: float,
    inverse: bool,
) -> Prediction:
    if isinstance(stated, Infeasible):
        return _refusal(row, metric, measured, f"{stated.rule}: {stated.message}")
    rate = stated.tokens_per_s
    share = row.evaluation_hours * (row.cluster.accelerators if metric == "accelerator_hours" else 1.0)
    extra = share if row.evaluation_hours else None

    def convert(value: float) -> float:
        if not inverse:
            return value * scale
        hours = scale / value
        return hours + extra if extra is not None else hours * (1.0 + EVALUATION_SHARE)

    ends = sorted((convert(rate.p10), convert(rate.p90)))
    chosen = None if isinstance(free, Infeasible) else convert(free.tokens_per_s.p50)
    return Prediction(
        row=row,
        metric=metric,
        measured=measured,
        predicted=convert(rate.p50),
        p10=ends[0],
        p90=ends[1],
        refused=None,
        evidence_class=stated.evidence_class,
        searched_predicted=chosen,
        searched_reason=reason(row, stated, free),
        assumed=f"precision {row.precision}, {_words(stated)}",
    )


def _words(result: TrainingResult) -> str:
    p = result.plan
    return (
        f"tp{p.tensor} pp{p.pipeline} vp{p.virtual_pipeline} cp{p.context} ep{p.expert} dp{p.data} "
        f"mb{p.micro_batch_sequences} {p.sharding} recompute {p.recompute}"
    )
