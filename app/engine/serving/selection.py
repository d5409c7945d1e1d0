"""Which plan, and how many replicas: offline, closed loop and open loop."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.serving.loadcurve import (
    LoadCurve,
    Quantiles,
    Waits,
    curve_at,
    e2e_at,
    quantiles_for,
    random_waits,
    tpot_at,
    ttft_at,
)
from app.engine.serving.operators import Floats
from app.engine.serving.replica import Replicas, subset
from app.engine.workload import ServingWorkload

Flags = NDArray[np.bool_]

# batches tried between two rungs of the ladder once the objectives break between them
REFINED_POINTS = 6
# open-loop traffic is planned to this share of the highest rate, so that queues stay short between bursts;
# Google, "Site Reliability Engineering", 2016, chapter 18 (capacity planning with headroom)
PLANNED_UTILIZATION = 0.85


# points evaluated between two rungs at the most, and the relative error of the rate that needs no further one
SHARPENINGS, CLOSE_ENOUGH = 3, 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen plan: its row, replicas, requests in each, and whether the objectives hold."""

    row: int
    replicas: int
    running: float
    asked_running: float
    rate: float
    highest_rate: float
    idle_step_s: float
    objectives_met: bool


def no_waits(curve: LoadCurve) -> Waits:
    """Waits of a closed loop below the cap: none beyond the iteration under way.

    Parameters
    ----------
    curve : LoadCurve

    Returns
    -------
    Waits

    References
    ----------
    1. Little's law: a closed loop below the cap has no queue.
    """
    zero = np.zeros_like(curve.rate)
    return Waits(admission_s=zero, prefill_s=zero, busy=zero)


def figure_at(
    metric: str, workload: ServingWorkload, curve: LoadCurve, waits: Waits, frontend_s: float, accepted: float,
    at: Quantiles,
) -> Floats:  # fmt: skip
    """``ttft``, ``tpot`` or ``e2e`` at some percentiles [s].

    Parameters
    ----------
    metric : str
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
    1. :mod:`app.engine.serving.loadcurve`.
    """
    if metric == "ttft":
        return ttft_at(curve, waits, frontend_s, at)
    if metric == "tpot":
        return tpot_at(workload, curve, accepted, at)
    return e2e_at(workload, curve, waits, frontend_s, accepted, at)


def objectives_hold(
    workload: ServingWorkload, curve: LoadCurve, waits: Waits, frontend_s: float, accepted: float
) -> Flags:
    """Whether all objectives hold, by plan and batch, as a boolean array.

    Parameters
    ----------
    workload : ServingWorkload
    curve : LoadCurve
    waits : Waits
    frontend_s : float [s]
    accepted : float [token]

    Returns
    -------
    Flags

    References
    ----------
    1. Zhong et al., "DistServe", 2024 (goodput under TTFT and TPOT objectives).
    """
    held = np.ones_like(curve.rate, dtype=bool)
    for objective in workload.objectives:
        at = quantiles_for(workload, (objective.percentile,))
        value = figure_at(objective.metric, workload, curve, waits, frontend_s, accepted, at)
        held &= value <= objective.seconds
    return held


def interpolate(x: Floats, xs: Floats, ys: Floats) -> Floats:
    """Value of ``ys`` over ``xs`` at ``x``, row by row, linear between the rungs and held at the ends.

    Parameters
    ----------
    x : Floats
    xs : Floats
    ys : Floats

    Returns
    -------
    Floats

    References
    ----------
    1. NumPy ``interp``.
    """
    return np.array([np.interp(x[i], xs[i], ys[i]) for i in range(len(xs))])


def running_for(rate: Floats, running: Floats, rates: Floats) -> Floats:
    """Requests in a replica that make a rate, row by row, held at the ends.

    Parameters
    ----------
    rate : array (plans,) [request/s]
    running : array (plans, points) [request]
        Rising along the points.
    rates : array (plans, points) [request/s]

    Returns
    -------
    array (plans,) [request]

    Notes
    -----
    Between two points the cycle of a request, not the rate, is taken as linear in the batch: an iteration lasts a fixed
    part and a part that grows with its sequences.

    References
    ----------
    1. Little 1961: requests in flight = rate x cycle.
    """
    rising = np.maximum.accumulate(rates, axis=1)
    rows = np.arange(len(rate))
    high = np.minimum((rising < rate[:, None]).sum(axis=1), running.shape[1] - 1)
    low = np.maximum(high - 1, 0)
    few, many = running[rows, low], running[rows, high]
    short, long = few / rates[rows, low], many / rates[rows, high]
    slope = (long - short) / np.maximum(many - few, 1e-12)
    found = rate * (short - slope * few) / np.maximum(1.0 - rate * slope, 1e-12)
    return np.asarray(np.clip(found, few, many))


def rate_at(running: Floats, curve: LoadCurve) -> Floats:
    """Rate of each plan with a number of requests in it; below one, the share of the time that there is one.

    Parameters
    ----------
    running : array (plans,) [request]
    curve : LoadCurve

    Returns
    -------
    array (plans,) [request/s]

    References
    ----------
    1. Little 1961.
    """
    return interpolate(running, curve.running, curve.rate) * np.minimum(running, 1.0)


def _running_at(replicas: Replicas, curve: LoadCurve, row: int, rate: float) -> float:
    """Requests in a replica of one plan at a rate; points evaluated between the rungs sharpen what they say."""
    lowest = float(curve.rate[row, 0])
    if rate <= lowest:
        return max(float(curve.running[row, 0]) * rate / lowest, 1e-6)
    asked, one = np.array([rate]), subset(replicas, np.array([row]))
    running, rates = curve.running[row : row + 1], curve.rate[row : row + 1]
    found = running_for(asked, running, rates)
    for _ in range(SHARPENINGS):
        made = curve_at(one, found[:, None], curve.idle_step_s[row : row + 1]).rate[:, 0]
        if abs(made[0] / rate - 1.0) < CLOSE_ENOUGH:
            break
        at = int(np.searchsorted(running[0], found[0]))
        running, rates = np.insert(running, at, found, axis=1), np.insert(rates, at, made, axis=1)
        found = running_for(asked, running, rates)
    return float(found[0])


def best_under_objectives(
    workload: ServingWorkload,
    replicas: Replicas,
    curve: LoadCurve,
    accepted: float,
    planned_utilization: float = PLANNED_UTILIZATION,
    worth: Callable[[Floats], Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Most requests in one replica of each plan, and its rate, with every objective held (0 where none is).

    Parameters
    ----------
    workload : ServingWorkload
    replicas : Replicas
    curve : LoadCurve
    accepted : float [token]
    planned_utilization : float [1]
    worth : callable or None
        Value of each plan given its highest load, rising with it; plans that cannot win are then not refined.

    Returns
    -------
    tuple[Floats, Floats]

    Notes
    -----
    The ladder is evaluated once, then once more between the last batch that holds and the first that does not.

    References
    ----------
    1. Zhong et al., "DistServe", 2024, section 2.3 (goodput under objectives).
    """
    highest = curve.rate.max(axis=1, keepdims=True)
    if workload.requests_per_s is not None and not workload.objectives:
        target = planned_utilization * highest[:, 0]
        return running_for(target, curve.running, curve.rate), np.maximum(target, curve.rate[:, 0])
    limit = planned_utilization * highest if workload.requests_per_s is not None else np.full_like(highest, np.inf)
    last = _last_held(workload, replicas, curve, accepted, highest, limit)
    rows, at = np.arange(len(last)), np.maximum(last, 0)
    if workload.objectives and (last >= 0).any():
        up = np.minimum(at + 1, curve.running.shape[1] - 1)
        figure = curve.rate if workload.requests_per_s is not None else curve.running
        kept = _survivors(worth, np.where(last >= 0, figure[rows, at], 0.0), np.where(last >= 0, figure[rows, up], 0.0))
        some = subset(replicas, kept)
        low, high = curve.running[kept, at[kept]][:, None], curve.running[kept, up[kept]][:, None]
        steps = np.linspace(0.0, 1.0, REFINED_POINTS)
        fine = curve_at(some, low * (high / low) ** steps, curve.idle_step_s[kept])
        found = np.maximum(_last_held(workload, some, fine, accepted, highest[kept], limit[kept]), 0)
        running, rate = curve.running[rows, at], curve.rate[rows, at]
        running[kept] = fine.running[np.arange(len(kept)), found]
        rate[kept] = fine.rate[np.arange(len(kept)), found]
        return np.where(last >= 0, running, 0.0), np.where(last >= 0, rate, 0.0)
    return np.where(last >= 0, curve.running[rows, at], 0.0), np.where(last >= 0, curve.rate[rows, at], 0.0)


def _survivors(worth: Callable[[Floats], Floats] | None, low: Floats, high: Floats) -> NDArray[np.intp]:
    """Plans whose best case is no worse than the best of the worst cases."""
    if worth is None:
        return np.flatnonzero(high > 0.0)
    return np.flatnonzero((worth(high) >= worth(low).max()) & (high > 0.0))


def _last_held(
    workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, accepted: float, highest: Floats, limit: Floats
) -> NDArray[np.intp]:
    """Index of the last batch up to which every objective and the planned rate hold; -1 where none does."""
    if workload.requests_per_s is not None:
        waits = random_waits(workload, curve, curve.rate, highest, replicas.cap)
        allowed = curve.rate <= limit
        allowed[:, 0] = True
    else:
        waits, allowed = no_waits(curve), np.ones_like(curve.rate, dtype=bool)
    held = objectives_hold(workload, curve, waits, replicas.frontend_s, accepted) & allowed
    return np.asarray(np.logical_and.accumulate(held, axis=1).sum(axis=1) - 1)


def choose(
    workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, accepted: float, accelerators: int | None
) -> Choice:
    """Choose plan and replicas for the workload's regime.

    Parameters
    ----------
    workload : ServingWorkload
    replicas : Replicas
    curve : LoadCurve
    accepted : float [token]
    accelerators : int or None
        The fleet, or None to size it.

    Returns
    -------
    Choice

    Notes
    -----
    Sizing takes the fewest accelerators that hold the objectives, then the highest rate; a given fleet takes the plan
    that carries the load within them and ends a request soonest, or else the one with the highest rate, and says so.

    References
    ----------
    1. Zhong et al. 2024 (goodput per accelerator).
    """
    size = replicas.size[:, 0]
    copies_given = np.floor((accelerators or 0) / size)
    if workload.offline or (workload.requests_per_s is None and workload.concurrency is None):
        return _offline(
            replicas,
            curve,
            copies_given if accelerators else np.full_like(size, workload.minimum_replicas),
            bool(accelerators),
        )
    if workload.requests_per_s is not None:
        need = workload.requests_per_s * workload.peak_to_mean
    else:
        need = float(workload.concurrency or 0.0)

    least = float(workload.minimum_replicas)

    def worth(load: Floats) -> Floats:
        if accelerators is None:
            return np.asarray(-np.maximum(np.ceil(need / np.maximum(load, 1e-12) - 1e-9), least) * size)
        return np.asarray(copies_given * load)

    running, rate = best_under_objectives(workload, replicas, curve, accepted, worth=worth)
    per_replica = rate if workload.requests_per_s is not None else running
    met = per_replica > 0.0
    if accelerators is None:
        copies = np.ceil(need / np.maximum(per_replica, 1e-12) - 1e-9)
        copies = np.maximum(np.where(met, copies, np.inf), least)
        total = copies * size
        order = np.lexsort((-rate / size, total))
        row = int(order[0]) if np.isfinite(total[order[0]]) else _least_bad(curve, met)
        count = int(copies[row]) if np.isfinite(copies[row]) else workload.minimum_replicas
    else:
        usable = copies_given >= (least if (copies_given >= least).any() else 1.0)
        score = np.where(usable, copies_given * per_replica, -1.0)
        enough = score >= need
        capacity = np.where(usable, copies_given * curve.rate.max(axis=1), -1.0)
        row = (
            _fastest(workload, replicas, curve, accepted, enough, need / np.maximum(copies_given, 1.0))
            if enough.any()
            else int(np.argmax(np.where(score.max() > 0.0, score, capacity)))
        )
        count = int(max(copies_given[row], 1.0))
    return _load(workload, replicas, curve, row, count, bool(met[row]))


def _fastest(
    workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, accepted: float, enough: Flags, each: Floats
) -> int:
    """Of the plans that carry ``each`` users or rate a replica, the one that ends requests soonest, waits counted."""
    if workload.requests_per_s is None:
        seconds = each / rate_at(each, curve)
    else:
        point = _at_rates(curve, each)
        highest = curve.rate.max(axis=1, keepdims=True)
        waits = random_waits(workload, point, each[:, None], highest, replicas.cap)
        mean = quantiles_for(workload, (math.nan,))
        seconds = e2e_at(workload, point, waits, replicas.frontend_s, accepted, mean)[:, 0]
    return int(np.argmin(np.where(enough, seconds, np.inf)))


def _at_rates(curve: LoadCurve, rate: Floats) -> LoadCurve:
    """The curve of each plan read off at one rate, as a curve of one point."""
    running = running_for(rate, curve.running, curve.rate)

    def at(values: Floats) -> Floats:
        return interpolate(running, curve.running, values)[:, None]

    return LoadCurve(
        running=running[:, None], rate=rate[:, None], iteration_s=at(curve.iteration_s),
        first_token_s=at(curve.first_token_s), work_s=at(curve.work_s), step_s=at(curve.step_s),
        idle_step_s=curve.idle_step_s,
    )  # fmt: skip


def _least_bad(curve: LoadCurve, met: Flags) -> int:
    """Plan with the shortest single-request iteration, when no plan holds the objectives."""
    return int(np.argmin(np.where(met, -np.inf, curve.iteration_s[:, 0])))


def _offline(replicas: Replicas, curve: LoadCurve, copies: Floats, given: bool) -> Choice:
    best = curve.rate.argmax(axis=1)
    rows = np.arange(len(best))
    rate = curve.rate[rows, best]
    score = np.where(copies >= 1.0, copies * rate, -1.0) if given else rate / replicas.size[:, 0]
    row = int(np.argmax(score))
    running = float(curve.running[row, best[row]])
    return Choice(
        row=row, replicas=int(max(copies[row], 1.0)), running=running, asked_running=running, rate=float(rate[row]),
        highest_rate=float(rate[row]), idle_step_s=float(curve.idle_step_s[row, 0]),
        objectives_met=True,
    )  # fmt: skip


def _load(workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, row: int, count: int, met: bool) -> Choice:
    """Requests in a replica of the chosen plan at the asked load."""
    highest = float(curve.rate[row].max())
    cap = float(replicas.cap[row, 0])
    if workload.requests_per_s is not None:
        each = workload.requests_per_s * workload.peak_to_mean / count
        running = _running_at(replicas, curve, row, each)
        return Choice(
            row=row, replicas=count, running=running, asked_running=running if each <= highest else cap,
            rate=min(each, highest), highest_rate=highest, idle_step_s=float(curve.idle_step_s[row, 0]),
            objectives_met=met,
        )  # fmt: skip
    asked = float(workload.concurrency or 0.0) / count
    running = min(asked, cap)
    return Choice(
        row=row, replicas=count, running=running, asked_running=asked,
        rate=float(np.interp(running, curve.running[row], curve.rate[row])) * min(running, 1.0),
        highest_rate=highest, idle_step_s=float(curve.idle_step_s[row, 0]),
            objectives_met=met,
    )  # fmt: skip
