"""Serving predictions against measured rows: throughput, TPOT and unsaturated TTFT, by source, chip and more."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.answer import band
from app.engine.serving.calibration import ServingCalibration, Situation
from app.engine.serving.plans import routed_experts
from app.engine.serving.search import search_serving
from app.engine.workload import ServingPlanRequest
from benchmarks.serving.batch import assemble, predict
from benchmarks.serving.cases import Case, RefusedError, workers_of
from benchmarks.serving.fit import UNSATURATED_TTFT_MS
from benchmarks.serving.mlperf import SystemFigures, fit_prompts, predict_system
from benchmarks.serving.read import Refusal, read_cases, read_rows, searched, with_plan, workload_of

METRICS = {
    "output_tokens_per_s_total": "output_tokens_per_s",
    "tpot_ms": "tpot",
    "ttft_ms": "ttft",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One figure of one row."""

    case: Case
    metric: str
    measured: float
    predicted: float
    p10: float
    p90: float
    evidence: str
    searched: float | None
    searched_reason: str | None

    @property
    def log_error(self) -> float:
        """log(predicted / measured)."""
        return float(np.log(self.predicted / self.measured))

    @property
    def inside(self) -> bool:
        """Whether the interval holds the measured figure."""
        return self.p10 <= self.measured <= self.p90


def shipped_calibration() -> ServingCalibration:
    """The calibration file of the package."""
    text = files("app.catalog").joinpath("data", "calibration", "serving.json").read_text(encoding="utf-8")
    return ServingCalibration.from_mapping(json.loads(text))


def situation_of(case: Case) -> Situation:
    """Chip, formats and engine of a case."""
    return Situation(
        accelerator=case.accelerator, precisions=case.precisions, stack=case.stack, released_year=case.year,
        experts=routed_experts(case.transformer),
    )  # fmt: skip


def outcomes_of(cases: Sequence[Case], calibration: ServingCalibration) -> tuple[list[Outcome], list[Refusal]]:
    """Predict the cases; rows of whole systems under a latency limit (MLPerf) go their own way."""
    planned, refusals = [], []
    for case in cases:
        if case.mlperf or case.regime == "server":
            continue
        try:
            ready = with_plan(case, calibration)
            assemble([ready], calibration)
            planned.append(ready)
        except RefusedError as error:
            refusals.append(Refusal(id=case.id, reason=str(error)))
        except (ArithmeticError, KeyError, ValueError) as error:
            refusals.append(Refusal(id=case.id, reason=f"cannot be computed: {error}"))
    out: list[Outcome] = []
    for regime in ("offline", "static", "closed"):
        chosen = [c for c in planned if c.regime == regime]
        if chosen:
            out.extend(_regime(chosen, calibration))
    for case in (c for c in planned if c.regime == "disaggregated"):
        try:
            out.extend(_disaggregated(case, calibration))
        except RefusedError as error:
            refusals.append(Refusal(id=case.id, reason=str(error)))
    mlperf, more = _mlperf([c for c in cases if c.mlperf or c.regime == "server"], calibration)
    return out + mlperf, refusals + more


def _regime(cases: Sequence[Case], calibration: ServingCalibration) -> list[Outcome]:
    batch = assemble(cases, calibration)
    frontend = np.array([[calibration.value("frontend_s", situation_of(c))] for c in cases])
    predicted = predict(batch, frontend)
    figures = {
        "output_tokens_per_s_total": predicted.output_tokens_per_s,
        "tpot_ms": predicted.tpot_s * 1e3,
        "ttft_ms": predicted.ttft_s * 1e3,
    }
    out = []
    for i, case in enumerate(cases):
        search = searched(case, calibration)
        for metric, values in figures.items():
            measured = case.measured.get(metric)
            if measured and np.isfinite(values[i]):
                out.append(_outcome(case, metric, measured, float(values[i]), calibration, search))
    return out


def _disaggregated(case: Case, calibration: ServingCalibration) -> list[Outcome]:
    """Prefill and decode on replicas of their own: the engine's group of both, with the decode replica's width."""
    assert case.plan is not None
    tensor, pipeline, expert, data = case.plan
    workers = case.workers or workers_of("", case.accelerators, tensor * pipeline * data)
    request = ServingPlanRequest(
        tensor=tensor, pipeline=pipeline, expert=expert, data=data, prefill_replicas=workers[0],
        decode_replicas=workers[1],
    )  # fmt: skip
    group = search_serving(workload_of(case), case.accelerator, None, request, calibration)
    if isinstance(group, Infeasible):
        raise RefusedError(group.message)
    figures = {
        "output_tokens_per_s_total": group.output_tokens_per_s.p50,
        "tpot_ms": group.tpot_s.mean.p50 * 1e3,
        "ttft_ms": group.ttft_s.mean.p50 * 1e3,
    }
    return [
        _outcome(case, metric, case.measured[metric], value, calibration, group)
        for metric, value in figures.items()
        if case.measured.get(metric)
    ]


def _outcome(
    case: Case, metric: str, measured: float, predicted: float, calibration: ServingCalibration,
    search: ServingResult | Infeasible,
) -> Outcome:  # fmt: skip
    evidence = calibration.evidence_class(case.accelerator, case.precisions.weights)
    interval = band(calibration, METRICS[metric], evidence, predicted)
    value, reason = None, None
    if isinstance(search, Infeasible):
        reason = search.message
    else:
        value = {
            "output_tokens_per_s_total": search.output_tokens_per_s.p50,
            "tpot_ms": search.tpot_s.mean.p50 * 1e3,
            "ttft_ms": search.ttft_s.mean.p50 * 1e3,
        }[metric]
    return Outcome(
        case=case, metric=metric, measured=measured, predicted=predicted, p10=interval.p10, p90=interval.p90,
        evidence=evidence, searched=value, searched_reason=reason,
    )  # fmt: skip


def _mlperf(cases: Sequence[Case], calibration: ServingCalibration) -> tuple[list[Outcome], list[Refusal]]:
    prompts = fit_prompts([c for c in cases if c.prompt is None], calibration)
    out, refusals = [], []
    for case in cases:
        figures = predict_system(case, calibration, case.prompt or prompts[case.model])
        if not isinstance(figures, SystemFigures):
            refusals.append(Refusal(id=case.id, reason=figures))
            continue
        reason = Infeasible(rule="mlperf", message="layout and input length are searched", numbers={}, nearest={})
        for metric, value in (
            ("output_tokens_per_s_total", figures.output_tokens_per_s),
            ("tpot_ms", figures.tpot_s * 1e3),
            ("ttft_ms", figures.ttft_s * 1e3),
        ):
            measured = case.measured.get(metric)
            if measured:
                out.append(_outcome(case, metric, measured, value, calibration, reason))
    return out, refusals


def as_json(outcomes: Sequence[Outcome], refusals: Sequence[Refusal], rows: Sequence[dict[str, Any]]) -> str:
    """One element per id and metric; refused rows one per metric they measure."""
    elements: list[dict[str, Any]] = [
        {
            "id": o.case.id, "metric": o.metric, "measured": o.measured, "predicted": o.predicted, "p10": o.p10,
            "p90": o.p90, "refused": None, "evidence_class": o.evidence, "searched_predicted": o.searched,
            "searched_reason": o.searched_reason,
        }
        for o in outcomes
    ]  # fmt: skip
    by_id = {str(row.get("id")): row for row in rows}
    for refusal in refusals:
        measured = (by_id.get(refusal.id) or {}).get("measured") or {}
        metrics = [m for m in METRICS if measured.get(m)] or ["output_tokens_per_s_total"]
        elements.extend(
            {
                "id": refusal.id, "metric": metric, "measured": measured.get(metric), "predicted": None, "p10": None,
                "p90": None, "refused": refusal.reason, "evidence_class": None, "searched_predicted": None,
                "searched_reason": None,
            }
            for metric in metrics
        )  # fmt: skip
    return json.dumps(elements, indent=1)


def _statistics(outcomes: Sequence[Outcome]) -> str:
    log_errors = np.array([o.log_error for o in outcomes])
    errors = 100.0 * np.abs(np.expm1(log_errors))
    by_source: dict[str, list[float]] = {}
    for outcome, error in zip(outcomes, errors, strict=True):
        by_source.setdefault(outcome.case.source, []).append(float(error))
    of_sources = float(np.median([np.median(v) for v in by_source.values()]))
    covered = 100.0 * float(np.mean([o.inside for o in outcomes]))
    return (
        f"n {len(outcomes):5d}  median {np.median(errors):6.1f} %  p90 {np.quantile(errors, 0.9):7.1f} %  "
        f"signed {100.0 * np.expm1(np.median(log_errors)):+6.1f} %  coverage {covered:3.0f} %  "
        f"median of sources {of_sources:6.1f} %"
    )


GROUPS: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
    ("source", lambda o: o.case.source),
    ("chip", lambda o: o.case.accelerator.id),
    ("engine", lambda o: o.case.stack),
    ("precision", lambda o: o.case.precisions.weights),
    ("model kind", lambda o: "MoE" if o.case.mixture else "dense"),
    ("regime", lambda o: o.case.regime),
    ("evidence", lambda o: o.evidence),
)


def report(outcomes: Sequence[Outcome], refusals: Sequence[Refusal], rows: int) -> str:
    """The printed tables."""
    refused_ids = {r.id for r in refusals}
    lines = [f"rows read {rows}, predicted {rows - len(refused_ids)}, refused {len(refused_ids)}"]
    reasons: dict[str, int] = {}
    for refusal in refusals:
        reasons[refusal.reason] = reasons.get(refusal.reason, 0) + 1
    lines += [f"  refused {count}: {reason}" for reason, count in sorted(reasons.items())]
    titles = {
        "output_tokens_per_s_total": "throughput", "tpot_ms": "TPOT",
        "ttft_ms": f"TTFT, measured at most {UNSATURATED_TTFT_MS:.0f} ms",
    }  # fmt: skip
    for metric, title in titles.items():
        chosen = [
            o
            for o in outcomes
            if o.metric == metric and not o.case.mlperf and (metric != "ttft_ms" or o.measured <= UNSATURATED_TTFT_MS)
        ]
        if not chosen:
            continue
        lines += ["", f"== {title}", f"{'all':40s} {_statistics(chosen)}"]
        for name, label in GROUPS:
            lines.append(f"-- by {name}")
            for key in sorted({label(o) for o in chosen}):
                lines.append(f"{key[:40]:40s} {_statistics([o for o in chosen if label(o) == key])}")
    mlperf = [o for o in outcomes if o.case.mlperf]
    if mlperf:
        lines += ["", "== MLPerf (input length free per model, fitted on these rows; layout searched)"]
        for metric, title in titles.items():
            chosen = [o for o in mlperf if o.metric == metric]
            if chosen:
                lines.append(f"{title[:40]:40s} {_statistics(chosen)}")
    return "\n".join(lines)


def run(path: Path, json_out: Path | None) -> int:
    """Predict every row of a file and print how far off the predictions are."""
    rows = read_rows(path)
    cases, refusals = read_cases(rows)
    outcomes, more = outcomes_of(cases, shipped_calibration())
    print(report(outcomes, [*refusals, *more], len(rows)))
    if json_out is not None:
        json_out.write_text(as_json(outcomes, [*refusals, *more], rows), encoding="utf-8")
    return 0
