"""MLPerf inference rows: whole systems of unstated layout and input length, at full load or under a latency limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.engine.outcome import Infeasible
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.loadcurve import load_curve, quantiles_for, random_waits, tpot_at, ttft_at
from app.engine.serving.replica import prepare
from app.engine.serving.selection import best_under_objectives
from app.engine.workload import ServingPlanRequest
from benchmarks.serving.cases import Case
from benchmarks.serving.read import workload_of

# candidate mean input lengths [token]; the one that fits a model's own MLPerf rows best is taken (data README, trap 5)
PROMPTS = (128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0, 1536.0, 2048.0, 3072.0, 4096.0, 6144.0, 8192.0, 12288.0)
# submitters push to the latency limit, not to a planned utilisation; a finer ladder finds it
PUSHED_UTILIZATION = 0.98
POINTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFigures:
    """Prediction for a whole system."""

    output_tokens_per_s: float
    tpot_s: float
    ttft_s: float


def predict_system(case: Case, calibration: ServingCalibration, prompt: float) -> SystemFigures | str:
    """Best replicas of the system for a mean input length, or the reason there is none."""
    work = workload_of(case, prompt)
    request = ServingPlanRequest()
    if case.plan is not None:
        request = ServingPlanRequest(tensor=case.plan[0], pipeline=case.plan[1])
    replicas = prepare(work, case.accelerator, None, request, calibration, case.accelerators)
    if isinstance(replicas, Infeasible):
        return replicas.message
    curve = load_curve(replicas, POINTS)
    size = replicas.size[:, 0]
    copies = np.floor(case.accelerators / size)
    if case.regime != "server":
        total = copies * curve.rate.max(axis=1)
        best = int(np.argmax(total))
        column = int(np.argmax(curve.rate[best]))
        running = curve.running[best, column]
    else:
        _, rate = best_under_objectives(work, replicas, curve, 1.0, PUSHED_UTILIZATION)
        if not rate.max() > 0.0:
            rate = curve.rate[:, 0]
        total = copies * rate
        best = int(np.argmax(total))
        running = float(np.interp(rate[best], np.maximum.accumulate(curve.rate[best]), curve.running[best]))
        column = int(np.argmin(np.abs(curve.running[best] - running)))
    waits = random_waits(work, curve, curve.rate, curve.rate.max(axis=1, keepdims=True), replicas.cap)
    mean = quantiles_for(work, (float("nan"),))
    return SystemFigures(
        output_tokens_per_s=float(total[best]) * case.output,
        tpot_s=float(tpot_at(work, curve, 1.0, mean)[best, column]),
        ttft_s=float(ttft_at(curve, waits, replicas.frontend_s, mean)[best, column]),
    )


def fit_prompts(cases: Sequence[Case], calibration: ServingCalibration) -> dict[str, float]:
    """Mean input length of each model, from its own rows."""
    by_model: dict[str, list[Case]] = {}
    for case in cases:
        by_model.setdefault(case.model, []).append(case)
    return {model: _best_prompt(rows, calibration) for model, rows in sorted(by_model.items())}


def _best_prompt(cases: Sequence[Case], calibration: ServingCalibration) -> float:
    sample = [c for c in cases if c.regime != "server"] or list(cases)
    errors = []
    for prompt in PROMPTS:
        each = []
        for case in sample:
            out = predict_system(case, calibration, prompt)
            measured = case.measured.get("output_tokens_per_s_total")
            if isinstance(out, SystemFigures) and measured:
                each.append(abs(np.log(out.output_tokens_per_s / measured)))
        errors.append(float(np.median(each)) if each else np.inf)
    return PROMPTS[int(np.argmin(errors))]


def with_prompt(case: Case, prompts: Mapping[str, float]) -> Case:
    """The case with its model's input length."""
    return replace(case, prompt=prompts[case.model])


def mlperf_lines(cases: Sequence[Case], calibration: ServingCalibration) -> str:
    """Errors of the MLPerf rows by round and scenario, as Markdown."""
    prompts = fit_prompts(cases, calibration)
    groups: dict[str, list[float]] = {}
    for case in cases:
        out = predict_system(case, calibration, prompts[case.model])
        measured = case.measured.get("output_tokens_per_s_total")
        if isinstance(out, SystemFigures) and measured:
            error = float(np.log(out.output_tokens_per_s / measured))
            groups.setdefault("all", []).append(error)
            groups.setdefault(f"{case.source}, {case.regime}", []).append(error)
    lines = ["| rows | n | median % | p90 % | signed median % |", "|---|---:|---:|---:|---:|"]
    for name, values in sorted(groups.items()):
        errors = 100.0 * np.abs(np.expm1(values))
        signed = 100.0 * float(np.expm1(np.median(values)))
        lines.append(
            f"| {name} | {len(values)} | {np.median(errors):.1f} | {np.quantile(errors, 0.9):.0f} | {signed:+.1f} |"
        )
    lengths = ", ".join(f"{model} {length:.0f}" for model, length in prompts.items())
    return "\n".join(lines) + f"\n\nInput lengths found [token]: {lengths}."
