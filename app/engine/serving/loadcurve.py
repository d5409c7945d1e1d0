"""Every plan at a ladder of batch sizes: rate, iteration time and first-token time, and latency at percentiles."""

from dataclasses import dataclass

import numpy as np

from app.engine.serving.lengths import log_spread, quantile_ratio, variation_squared
from app.engine.serving.operators import Floats
from app.engine.serving.queueing import (
    HIGHEST_UTILIZATION,
    admission_wait_s,
    normal_quantile,
    prefill_wait_s,
    tail_factor,
)
from app.engine.serving.regimes import steady_state
from app.engine.serving.replica import Replicas, take
from app.engine.workload import ServingWorkload

# batch sizes per plan between one request and the cap, evenly in the logarithm
POINTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """Steady states by plan and batch; arrays ``(plans, points)``.

    Parameters
    ----------
    running : array [request]
    rate : array [request/s]
    iteration_s, first_token_s, work_s, step_s : array [s]
        Between two steps of a sequence; from admission to first token; prefill work; a pure decode step.
    idle_step_s : array (plans, 1) [s]
        A pure decode step of one sequence.
    """

    running: Floats
    rate: Floats
    iteration_s: Floats
    first_token_s: Floats
    work_s: Floats
    step_s: Floats
    idle_step_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Mean waits and the chance of one, of the same shape as the curve [s], [1]."""

    admission_s: Floats
    prefill_s: Floats
    busy: Floats


def load_curve(replicas: Replicas, points: int = POINTS) -> LoadCurve:
    """Evaluate every plan at a ladder of batch sizes.

    Parameters
    ----------
    replicas : Replicas
    points : int

    Returns
    -------
    LoadCurve

    References
    ----------
    1. Agrawal et al., "Vidur", 2024 (capacity search over load).
    """
    plans = len(replicas.plans)
    rungs = np.linspace(0.0, 1.0, points)[None, :]
    running = np.maximum(replicas.cap**rungs, 1.0)
    rows = np.repeat(np.arange(plans), points)
    steady = steady_state(
        take(replicas.operators, rows),
        take(replicas.rates, rows),
        take(replicas.requests, rows),
        running.reshape(-1, 1),
    )
    shape = (plans, points)
    return LoadCurve(
        running=running,
        rate=steady.requests_per_s.reshape(shape),
        iteration_s=steady.iteration_s.reshape(shape),
        first_token_s=steady.first_token_s.reshape(shape),
        work_s=steady.prefill_s.reshape(shape),
        step_s=steady.decode_s.reshape(shape),
        idle_step_s=steady.decode_s.reshape(shape)[:, :1],
    )


def random_waits(workload: ServingWorkload, curve: LoadCurve, rate: Floats, highest: Floats, cap: Floats) -> Waits:
    """Waits of requests that arrive at random at ``rate`` in a replica whose highest rate is ``highest``.

    Parameters
    ----------
    workload : ServingWorkload
    curve : LoadCurve
    rate : array [request/s]
    highest : array [request/s]
    cap : array [request]

    Returns
    -------
    Waits

    References
    ----------
    1. Sakasegawa 1977; Pollaczek-Khinchine.
    """
    utilization = rate / highest
    spread_out = variation_squared(workload.output_tokens)
    spread_in = variation_squared(workload.input_tokens)
    return Waits(
        admission_s=admission_wait_s(utilization, cap, cap / highest, spread_out),
        prefill_s=prefill_wait_s(rate, curve.work_s, spread_in),
        busy=np.clip(np.maximum(rate * curve.work_s, utilization ** np.sqrt(cap)), 0.0, HIGHEST_UTILIZATION),
    )


def ttft_at(workload: ServingWorkload, curve: LoadCurve, waits: Waits, frontend_s: float, percentile: float) -> Floats:
    """Time to first token at a percentile [s]; the mean for ``percentile`` NaN.

    Parameters
    ----------
    workload : ServingWorkload
    curve : LoadCurve
    waits : Waits
    frontend_s : float [s]
    percentile : float [%]

    Returns
    -------
    array [s]

    Notes
    -----
    The prompt's own prefill scales with its length; waits have exponential tails. Both tails are added in quadrature
    around the mean, as for independent causes.

    References
    ----------
    1. Kleinrock 1975. 2. Zhong et al., "DistServe", 2024.
    """
    wait = waits.admission_s + waits.prefill_s
    mean = frontend_s + 0.5 * curve.step_s + curve.first_token_s + wait
    if np.isnan(percentile):
        return mean
    own = curve.first_token_s * (quantile_ratio(workload.input_tokens, percentile) - 1.0)
    queue = wait * (tail_factor(percentile, waits.busy) - 1.0)
    return np.asarray(np.maximum(mean + _signed_quadrature(own, queue), frontend_s + curve.step_s))


def tpot_at(workload: ServingWorkload, curve: LoadCurve, accepted: float, percentile: float) -> Floats:
    """Time per output token of a request at a percentile [s]; the mean for ``percentile`` NaN.

    Notes
    -----
    Two causes of spread: the number of requests in the engine (Poisson, standard deviation ``sqrt(n)``), and how many
    prefills fall into a request's own short or long output.

    References
    ----------
    1. Kingman, "Poisson Processes", 1993. 2. Agrawal et al., "Sarathi-Serve", 2024 (generation stalls).
    """
    mean = curve.iteration_s / accepted
    if np.isnan(percentile):
        return mean
    z = normal_quantile(percentile)
    slope = (curve.iteration_s - curve.idle_step_s) / np.maximum(curve.running, 1.0)
    crowd = slope * np.sqrt(curve.running)
    steps = np.maximum(workload.output_tokens.mean / accepted, 1.0)
    stall = np.sqrt(np.maximum(curve.iteration_s - curve.step_s, 0.0) * curve.work_s / steps)
    return np.asarray(np.maximum(mean + z * np.sqrt(crowd * crowd + stall * stall) / accepted, curve.step_s / accepted))


def e2e_at(
    workload: ServingWorkload, curve: LoadCurve, waits: Waits, frontend_s: float, accepted: float, percentile: float
) -> Floats:
    """End-to-end time of a request at a percentile [s]; the mean for ``percentile`` NaN.

    References
    ----------
    1. Little 1961. 2. Kleinrock 1975.
    """
    nan = float("nan")
    first = ttft_at(workload, curve, waits, frontend_s, nan)
    tokens = np.maximum(workload.output_tokens.mean - 1.0, 0.0)
    body = tokens * tpot_at(workload, curve, accepted, nan)
    if np.isnan(percentile):
        return np.asarray(first + body)
    own = (
        body * (quantile_ratio(workload.output_tokens, percentile) - 1.0) if log_spread(workload.output_tokens) else 0.0
    )
    queue = ttft_at(workload, curve, waits, frontend_s, percentile) - first
    return np.asarray(np.maximum(first + body + _signed_quadrature(np.asarray(own), queue), first * 0.0))


def _signed_quadrature(a: Floats, b: Floats) -> Floats:
    """Sum of two deviations of independent causes, keeping their direction."""
    square = np.sign(a) * a * a + np.sign(b) * b * b
    return np.asarray(np.sign(square) * np.sqrt(np.abs(square)))
