"""From the chosen plan at its load to the result: latency statistics, breakdowns, intervals."""

import math

import numpy as np

from app.engine.interval import band_around
from app.engine.outcome import Band, Latency, ServingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.loadcurve import LoadCurve, Waits, quantiles_for, random_waits
from app.engine.serving.operators import Floats
from app.engine.serving.regimes import Steady, steady_state
from app.engine.serving.replica import Replicas, take
from app.engine.serving.selection import Choice, figure_at, no_waits
from app.engine.workload import ServingPlan, ServingPlanRequest, ServingWorkload

# the mean, then the reported percentiles
PERCENTILES = (math.nan, 50.0, 95.0, 99.0)
# width where the calibration file holds no residuals of a class
NO_RESIDUALS = (-0.7, 0.7)


def band(calibration: ServingCalibration, metric: str, evidence: str, value: float) -> Band:
    """Interval of a figure by metric and evidence class.

    Parameters
    ----------
    calibration : ServingCalibration
    metric : str
    evidence : str
    value : float [any]

    Returns
    -------
    Band

    References
    ----------
    1. Vovk et al. 2005 (conformal prediction).
    """
    low, high = calibration.residuals.get(metric, {}).get(evidence, NO_RESIDUALS)
    return band_around(value, min(low, 0.0), max(high, 0.0))


def one_point(replicas: Replicas, choice: Choice) -> tuple[LoadCurve, Steady]:
    """The chosen plan at exactly its load, as a curve of one plan and one point.

    Parameters
    ----------
    replicas : Replicas
    choice : Choice

    Returns
    -------
    tuple[LoadCurve, Steady]

    References
    ----------
    1. :func:`app.engine.serving.regimes.steady_state`.
    """
    costs, q = replicas.costs, replicas.requests
    if len(replicas.plans) > 1:
        costs, q = take(costs, [choice.row]), take(q, [choice.row])
    running = np.array([[max(choice.running, 1.0)]])
    steady = steady_state(costs, q, running)
    curve = LoadCurve(
        running=running, rate=steady.requests_per_s, iteration_s=steady.iteration_s,
        first_token_s=steady.first_token_s, work_s=steady.prefill_s, step_s=steady.decode_s,
        idle_step_s=np.array([[choice.idle_step_s]]),
    )  # fmt: skip
    return curve, steady


def _latency(calibration: ServingCalibration, metric: str, evidence: str, values: Floats) -> Latency:
    mean, p50, p95, p99 = (float(v) for v in values[: len(PERCENTILES)])
    return Latency(mean=band(calibration, metric, evidence, mean), p50=p50, p95=max(p95, p50), p99=max(p99, p95, p50))


def _shares(steady: Steady) -> dict[str, float]:
    """Shares of engine time by cause, decode and prefill iterations weighted by the time they take."""
    decode, mixed = steady.times.of(0), steady.times.of(1)
    whole, added = sum(decode.values()), sum(mixed.values()) - sum(decode.values())
    prefill = float(1.0 - steady.decode_s[0, 0] / steady.iteration_s[0, 0])
    out = {
        name: value / whole * (1.0 - prefill) + max(mixed[name] - value, 0.0) / max(added, 1e-30) * prefill
        for name, value in decode.items()
    }
    total = sum(out.values())
    return {name: value / total for name, value in out.items()}


def _memory(replicas: Replicas, choice: Choice) -> dict[str, float]:
    """Bytes of the fullest accelerator by owner; they add to its memory."""
    row, m = choice.row, replicas.memory
    held = min(replicas.sequence_bytes[row, 0] * max(choice.running, 1.0), m.cache[row, 0])
    parts = {
        "weights": float(m.weights[row, 0]),
        "cache": float(held),
        "workspace": float(m.workspace[row, 0]),
        "reserve": float(m.reserve[row, 0]),
    }
    parts["headroom"] = m.total - sum(parts.values())
    return parts


def answer(
    workload: ServingWorkload, replicas: Replicas, choice: Choice, request: ServingPlanRequest,
    calibration: ServingCalibration, accepted: float, point: tuple[LoadCurve, Steady] | None = None,
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
    point : tuple of (LoadCurve, Steady) or None
        The plan at its load, where it is known already.

    Returns
    -------
    ServingResult

    References
    ----------
    1. Little 1961; Kleinrock 1975.
    """
    curve, steady = point or one_point(replicas, choice)
    open_loop = workload.requests_per_s is not None
    asked = (workload.requests_per_s or 0.0) * workload.peak_to_mean / choice.replicas if open_loop else choice.rate
    saturated = asked > choice.highest_rate if open_loop else choice.asked_running > choice.running * (1.0 + 1e-9)
    cap = np.array([[float(replicas.cap[choice.row, 0])]])
    rate = np.array([[min(asked, choice.highest_rate)]])
    highest = np.array([[choice.highest_rate]])
    waits = random_waits(workload, curve, rate, highest, cap) if open_loop else _closed_waits(curve, choice)
    evidence = calibration.evidence_class(replicas.situation.accelerator, workload.weights_precision)
    frontend = replicas.frontend_s

    asked_at = tuple(o.percentile for o in workload.objectives)
    at = quantiles_for(workload, (*PERCENTILES, *asked_at))
    figures = {
        kind: figure_at(kind, workload, curve, waits, frontend, accepted, at)[0] for kind in ("ttft", "tpot", "e2e")
    }
    met = all(figures[o.metric][len(PERCENTILES) + i] <= o.seconds for i, o in enumerate(workload.objectives))
    stats = {kind: _latency(calibration, kind, evidence, values) for kind, values in figures.items()}
    if open_loop:
        served = float(rate[0, 0])
    else:  # fewer users than replicas: one is busy only while it has one; and nobody asks again before the answer is in
        most = math.inf if workload.offline else choice.asked_running / stats["e2e"].mean.p50
        served = min(float(steady.requests_per_s[0, 0]) * min(choice.running, 1.0), most)
    requests_per_s = served * choice.replicas
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
        concurrency_per_replica=in_flight(served, stats["e2e"]) if open_loop else choice.asked_running,
        kv_cache_tokens=float(replicas.cache_tokens[choice.row, 0]),
        utilization=asked / choice.highest_rate if open_loop else served / choice.highest_rate,
        saturated=bool(saturated),
        time_breakdown=shares,
        memory_breakdown_bytes=_memory(replicas, choice),
        bottleneck=max(shares, key=lambda name: shares[name]),
        evidence_class=evidence,
        assumptions={
            **_assumptions(replicas, calibration, saturated, asked, choice, met),
            "prefill_time_share": prefill_share(steady),
        },
    )  # fmt: skip


def in_flight(requests_per_s: float, e2e: Latency) -> float:
    """Requests that wait or are served, on average.

    Parameters
    ----------
    requests_per_s : float [request/s]
    e2e : Latency [s]

    Returns
    -------
    float [request]

    References
    ----------
    1. Little, "A Proof for the Queuing Formula L = lambda W", 1961.
    """
    return requests_per_s * e2e.mean.p50


def prefill_share(steady: Steady) -> float:
    """Share of a replica's busy time that goes into prompts; the rest produces output tokens.

    Parameters
    ----------
    steady : Steady, shape (1, 1)

    Returns
    -------
    float [1]

    References
    ----------
    1. Little 1961: requests a second times the seconds of prompt work in each.
    """
    return float(min(1.0, steady.requests_per_s[0, 0] * steady.prefill_s[0, 0]))


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
