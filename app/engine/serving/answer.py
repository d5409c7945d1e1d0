"""From the chosen plan at its load to the result: latency statistics, breakdowns, intervals."""

import math
from collections.abc import Mapping

import numpy as np

from app.engine.interval import band_around
from app.engine.outcome import Band, Latency, ServingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.loadcurve import LoadCurve, Waits, e2e_at, random_waits, tpot_at, ttft_at
from app.engine.serving.memory import sequence_bytes
from app.engine.serving.operators import Floats
from app.engine.serving.regimes import Steady, steady_state
from app.engine.serving.replica import Replicas, take
from app.engine.serving.selection import Choice, no_waits
from app.engine.workload import ServingPlan, ServingPlanRequest, ServingWorkload

PERCENTILES = (50.0, 95.0, 99.0)
# width where the calibration file holds no residuals of a class
NO_RESIDUALS = (-0.7, 0.7)


def band(calibration: ServingCalibration, metric: str, evidence: str, value: float) -> Band:
    """Interval of a figure by metric and evidence class.

    References
    ----------
    1. Vovk et al. 2005 (conformal prediction).
    """
    low, high = calibration.residuals.get(metric, {}).get(evidence, NO_RESIDUALS)
    return band_around(value, min(low, 0.0), max(high, 0.0))


def one_point(replicas: Replicas, choice: Choice) -> tuple[LoadCurve, Steady, Replicas]:
    """The chosen plan at exactly its load, as a curve of one plan and one point.

    References
    ----------
    1. :func:`app.engine.serving.regimes.steady_state`.
    """
    rows = [choice.row]
    o, r, q = take(replicas.operators, rows), take(replicas.rates, rows), take(replicas.requests, rows)
    running = np.array([[max(choice.running, 1.0)]])
    steady = steady_state(o, r, q, running)
    curve = LoadCurve(
        running=running, rate=steady.requests_per_s, iteration_s=steady.iteration_s,
        first_token_s=steady.first_token_s, work_s=steady.prefill_s, step_s=steady.decode_s,
        idle_step_s=np.array([[choice.idle_step_s]]),
    )  # fmt: skip
    return curve, steady, replicas


def _latency(
    calibration: ServingCalibration, metric: str, evidence: str, mean: float, tail: Mapping[float, float]
) -> Latency:
    return Latency(
        mean=band(calibration, metric, evidence, mean),
        p50=tail[50.0],
        p95=max(tail[95.0], tail[50.0]),
        p99=max(tail[99.0], tail[95.0], tail[50.0]),
    )


def _shares(steady: Steady) -> dict[str, float]:
    """Shares of engine time by cause, decode and prefill iterations weighted by the time they take."""
    times = steady.times
    decode = {name: float(v[0, 0]) for name, v in times.shares().items()}
    extra = np.maximum(times.total[:, 1] - times.total[:, 0], 1e-30)[0]
    prefill_share = float(1.0 - steady.decode_s[0, 0] / steady.iteration_s[0, 0])
    out = {}
    for name in decode:
        values: Floats = getattr(times, name)
        added = max(float(values[0, 1] - values[0, 0]), 0.0) / float(extra)
        out[name] = decode[name] * (1.0 - prefill_share) + added * prefill_share
    total = sum(out.values())
    return {name: value / total for name, value in out.items()}


def _memory(replicas: Replicas, choice: Choice) -> dict[str, float]:
    """Bytes of the fullest accelerator by owner; they add to its memory."""
    row = [choice.row]
    o, m, q = take(replicas.operators, row), take(replicas.memory, row), take(replicas.requests, row)
    context = q.prompt + q.cached + 0.5 * q.output
    held = float((sequence_bytes(o, context) / o.data)[0, 0]) * max(choice.running, 1.0)
    held = min(held, float(m.cache[0, 0]))
    parts = {
        "weights": float(m.weights[0, 0]),
        "cache": held,
        "workspace": float(m.workspace[0, 0]),
        "reserve": float(m.reserve[0, 0]),
    }
    parts["headroom"] = m.total - sum(parts.values())
    return parts


def answer(
    workload: ServingWorkload, replicas: Replicas, choice: Choice, request: ServingPlanRequest,
    calibration: ServingCalibration, accepted: float,
) -> ServingResult:  # fmt: skip
    """Assemble the result of the chosen plan at its load.

    Parameters
    ----------
    workload : ServingWorkload
    replicas : Replicas
    choice : Choice
    request : ServingPlanRequest
    calibration : ServingCalibration
    accepted : float [token]

    Returns
    -------
    ServingResult

    References
    ----------
    1. Little 1961; Kleinrock 1975.
    """
    curve, steady, _ = one_point(replicas, choice)
    open_loop = workload.requests_per_s is not None
    asked = (workload.requests_per_s or 0.0) * workload.peak_to_mean / choice.replicas if open_loop else choice.rate
    saturated = asked > choice.highest_rate if open_loop else choice.asked_running > choice.running * (1.0 + 1e-9)
    cap = np.array([[float(replicas.cap[choice.row, 0])]])
    rate = np.array([[min(asked, choice.highest_rate)]])
    highest = np.array([[choice.highest_rate]])
    waits = random_waits(workload, curve, rate, highest, cap) if open_loop else _closed_waits(curve, choice)
    evidence = calibration.evidence_class(replicas.situation.accelerator, workload.weights_precision)
    nan = float("nan")
    served = float(rate[0, 0]) if open_loop else float(steady.requests_per_s[0, 0])
    requests_per_s = served * choice.replicas
    frontend = replicas.frontend_s

    def at(kind: str, percentile: float) -> float:
        if kind == "ttft":
            return float(ttft_at(workload, curve, waits, frontend, percentile)[0, 0])
        if kind == "tpot":
            return float(tpot_at(workload, curve, accepted, percentile)[0, 0])
        return float(e2e_at(workload, curve, waits, frontend, accepted, percentile)[0, 0])

    stats = {
        kind: _latency(calibration, kind, evidence, at(kind, nan), {p: at(kind, p) for p in PERCENTILES})
        for kind in ("ttft", "tpot", "e2e")
    }
    met = all(at(o.metric, o.percentile) <= o.seconds for o in workload.objectives)
    shares = _shares(steady)
    plan = replicas.plans[choice.row]
    pinned = all(value is not None for value in (request.tensor, request.pipeline, request.data))
    return ServingResult(
        plan=ServingPlan(
            tensor=plan[0], pipeline=plan[1], expert=plan[2], data=plan[3],
            max_batch=max(int(replicas.cap[choice.row, 0]), 1),
        ),
        plan_origin="pinned" if pinned else "searched",
        replicas=choice.replicas,
        accelerators_per_replica=int(replicas.size[choice.row, 0]),
        output_tokens_per_s=band(
            calibration, "output_tokens_per_s", evidence, requests_per_s * workload.output_tokens.mean
        ),
        requests_per_s=requests_per_s,
        capacity_requests_per_s_per_replica=choice.highest_rate,
        ttft_s=stats["ttft"], tpot_s=stats["tpot"], e2e_s=stats["e2e"],
        concurrency_per_replica=choice.running,
        kv_cache_tokens=float(replicas.cache_tokens[choice.row, 0]),
        utilization=asked / choice.highest_rate if open_loop else served / choice.highest_rate,
        saturated=bool(saturated),
        time_breakdown=shares,
        memory_breakdown_bytes=_memory(replicas, choice),
        bottleneck=max(shares, key=lambda name: shares[name]),
        evidence_class=evidence,
        assumptions=_assumptions(replicas, calibration, saturated, asked, choice, met),
    )  # fmt: skip


def _closed_waits(curve: LoadCurve, choice: Choice) -> Waits:
    """A closed loop beyond the cap waits for a place: the surplus over the rate."""
    surplus = max(choice.asked_running - choice.running, 0.0)
    waits = no_waits(curve)
    if not surplus:
        return waits
    queue = surplus / curve.rate
    return Waits(admission_s=queue, prefill_s=waits.prefill_s, busy=np.ones_like(curve.rate))


def _assumptions(
    replicas: Replicas,
    calibration: ServingCalibration,
    saturated: bool,
    asked: float,
    choice: Choice,
    met: bool,
) -> dict[str, float | int | str]:
    situation, engine = replicas.situation, replicas.engine
    out: dict[str, float | int | str] = {
        "stack": situation.stack,
        "released_year": situation.released_year,
        "memory_fraction": engine.memory_fraction,
        "reserve_bytes": engine.reserve_bytes,
        "max_sequences_default": engine.max_sequences,
        "chunk_tokens": float(replicas.requests.chunk[choice.row, 0]),
        "weights": situation.precisions.weights,
        "weights_outside_experts": situation.precisions.outside_experts,
        "kv_cache": situation.precisions.kv,
        "matmul_peak_factor": calibration.value("matmul_peak", situation),
        "bandwidth_factor": calibration.value("matmul_bandwidth", situation),
        "step_overhead_s": calibration.value("step_s", situation),
    }
    if saturated:
        out["queue_growth_requests_per_s"] = max(asked - choice.highest_rate, 0.0) * choice.replicas
    if not met:
        out["objectives_met"] = "no"
    return {k: v for k, v in out.items() if not (isinstance(v, float) and not math.isfinite(v))}
