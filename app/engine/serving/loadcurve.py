"""Every plan at a ladder of batch sizes: rate, iteration time and first-token time, and latency at percentiles."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from app.engine.serving.lengths import quantile_ratio, variation_squared
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
from app.engine.workload import Lengths, ServingWorkload

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
    rungs = np.linspace(0.0, 1.0, points)[None, :]
    return curve_at(replicas, np.maximum(replicas.cap**rungs, 1.0))


def curve_at(replicas: Replicas, running: Floats, idle_step_s: Floats | None = None) -> LoadCurve:
    """Evaluate every plan at given batch sizes.

    Parameters
    ----------
    replicas : Replicas
    running : array (plans, points) [request]
        Rising along the points.
    idle_step_s : array (plans, 1) or None [s]
        A pure decode step of one sequence; None takes the first point, which is then one sequence.

    Returns
    -------
    LoadCurve

    References
    ----------
    1. Agrawal et al., "Vidur", 2024.
    """
    plans, points = running.shape
    costs, requests = replicas.costs, replicas.requests
    if plans > 1:  # one plan broadcasts over its points
        rows = np.repeat(np.arange(plans), points)
        costs, requests = take(costs, rows), take(requests, rows)
    steady = steady_state(costs, requests, running.reshape(-1, 1))
    shape = (plans, points)
    step = steady.decode_s.reshape(shape)
    return LoadCurve(
        running=running,
        rate=steady.requests_per_s.reshape(shape),
        iteration_s=steady.iteration_s.reshape(shape),
        first_token_s=steady.first_token_s.reshape(shape),
        work_s=steady.prefill_s.reshape(shape),
        step_s=step,
        idle_step_s=step[:, :1] if idle_step_s is None else idle_step_s,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """What a set of percentiles means for lengths and waits; arrays ``(percentiles,)``, the mean where NaN was asked.

    Parameters
    ----------
    prompt_excess, output_excess : array [1]
        Length at the percentile over the mean length, less one.
    normal : array [1]
        Standard normal quantile.
    survival : array [1]
        Share of requests beyond the percentile; NaN for the mean.
    """

    prompt_excess: Floats
    output_excess: Floats
    normal: Floats
    survival: Floats


@lru_cache(maxsize=1024)
def quantiles_of(prompt: Lengths, output: Lengths, percentiles: tuple[float, ...]) -> Quantiles:
    """Quantiles of lengths and of the normal distribution at some percentiles [%]; NaN asks for the mean.

    Parameters
    ----------
    prompt : Lengths
    output : Lengths
    percentiles : tuple[float, ...]

    Returns
    -------
    Quantiles

    References
    ----------
    1. Abramowitz and Stegun, section 26.2.
    """
    mean = [math.isnan(p) for p in percentiles]

    def each(value: Callable[[float], float]) -> Floats:
        return np.array([0.0 if m else value(p) for p, m in zip(percentiles, mean, strict=True)])

    return Quantiles(
        prompt_excess=each(lambda p: quantile_ratio(prompt, p) - 1.0),
        output_excess=each(lambda p: quantile_ratio(output, p) - 1.0),
        normal=each(normal_quantile),
        survival=np.array([1.0 - p / 100.0 for p in percentiles]),
    )


def quantiles_for(workload: ServingWorkload, percentiles: tuple[float, ...]) -> Quantiles:
    """Quantiles of a workload's lengths at some percentiles.

    Parameters
    ----------
    workload : ServingWorkload
    percentiles : tuple of float [%]

    Returns
    -------
    Quantiles

    References
    ----------
    1. :func:`quantiles_of`.
    """
    return quantiles_of(workload.input_tokens, workload.output_tokens, percentiles)


def ttft_at(curve: LoadCurve, waits: Waits, frontend_s: float, at: Quantiles) -> Floats:
    """Time to first token at some percentiles [s].

    Parameters
    ----------
    curve : LoadCurve
    waits : Waits
    frontend_s : float [s]
    at : Quantiles
        One percentile for a curve of many points, or several for a curve of one point.

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
    own = curve.first_token_s * at.prompt_excess
    queue = wait * (tail_factor(at.survival, waits.busy) - 1.0)
    return np.asarray(np.maximum(mean + signed_quadrature(own, queue), frontend_s + curve.step_s))


def tpot_at(workload: ServingWorkload, curve: LoadCurve, accepted: float, at: Quantiles) -> Floats:
    """Time per output token of a request at some percentiles [s].

    Parameters
    ----------
    workload : ServingWorkload
    curve : LoadCurve
    accepted : float [token]
    at : Quantiles

    Returns
    -------
    Floats

    Notes
    -----
    Two causes of spread: the number of requests in the engine (Poisson, standard deviation ``sqrt(n)``), and how many
    prefills fall into a request's own short or long output.

    References
    ----------
    1. Kingman, "Poisson Processes", 1993. 2. Agrawal et al., "Sarathi-Serve", 2024 (generation stalls).
    """
    crowd = (curve.iteration_s - curve.idle_step_s) / np.sqrt(np.maximum(curve.running, 1.0))
    steps = max(workload.output_tokens.mean / accepted, 1.0)
    stall = np.maximum(curve.iteration_s - curve.step_s, 0.0) * curve.work_s / steps
    spread = at.normal * np.sqrt(crowd * crowd + stall)
    return np.asarray(np.maximum(curve.iteration_s + spread, curve.step_s) / accepted)


def e2e_at(
    workload: ServingWorkload, curve: LoadCurve, waits: Waits, frontend_s: float, accepted: float, at: Quantiles
) -> Floats:
    """End-to-end time of a request at some percentiles [s].

    Parameters
    ----------
    workload : ServingWorkload
    curve : LoadCurve
    waits : Waits
    frontend_s : float [s]
    accepted : float [token]
    at : Quantiles

    Returns
    -------
    Floats

    References
    ----------
    1. Little 1961. 2. Kleinrock 1975.
    """
    first = frontend_s + 0.5 * curve.step_s + curve.first_token_s + waits.admission_s + waits.prefill_s
    body = max(workload.output_tokens.mean - 1.0, 0.0) * curve.iteration_s / accepted
    queue = ttft_at(curve, waits, frontend_s, at) - first
    return np.asarray(np.maximum(first + body + signed_quadrature(body * at.output_excess, queue), curve.step_s))


def signed_quadrature(a: Floats, b: Floats) -> Floats:
    """Sum of two deviations of independent causes, keeping their direction.

    Parameters
    ----------
    a : Floats
    b : Floats

    Returns
    -------
    Floats

    References
    ----------
    1. Variances of independent causes add.
    """
    square = a * np.abs(a) + b * np.abs(b)
    return np.asarray(np.sign(square) * np.sqrt(np.abs(square)))
