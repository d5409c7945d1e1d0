"""Waiting of requests that arrive at random: admission to the engine, and prefill of others."""

import math
from statistics import NormalDist

import numpy as np

from app.engine.serving.operators import Floats

# utilisations are held below this in the waiting formulas, which diverge at 1
HIGHEST_UTILIZATION = 0.999


def admission_wait_s(utilization: Floats, servers: Floats, service_s: Floats, variation_squared: float) -> Floats:
    """Mean wait for a free place among ``servers`` running requests [s].

    Parameters
    ----------
    utilization : array [1]
        Arrival rate over the highest rate.
    servers : array [request]
        Requests the engine runs at most.
    service_s : array [s]
        Time a request stays in the full engine.
    variation_squared : float [1]
        Squared coefficient of variation of the service time.

    Returns
    -------
    array [s]

    Notes
    -----
    M/G/c, heavy-traffic form; within a few percent above 70 % utilisation, small below.

    References
    ----------
    1. Sakasegawa, "An Approximation Formula L_q = alpha rho^beta / (1 - rho)", 1977.
    2. Allen, "Probability, Statistics and Queueing Theory", 1990 (Allen-Cunneen).
    """
    rho = np.minimum(utilization, HIGHEST_UTILIZATION)
    power = np.sqrt(2.0 * (servers + 1.0)) - 1.0
    return np.asarray(rho**power / (servers * (1.0 - rho)) * service_s * 0.5 * (1.0 + variation_squared))


def prefill_wait_s(rate: Floats, work_s: Floats, variation_squared: float) -> Floats:
    """Mean wait for the prefill work of requests that arrived before [s].

    Parameters
    ----------
    rate : array [request/s]
    work_s : array [s]
        Engine time of one prefill.
    variation_squared : float [1]
        Of the prompt length.

    Returns
    -------
    array [s]

    References
    ----------
    1. Pollaczek-Khinchine formula of the M/G/1 queue; Zhong et al., "DistServe", 2024, section 3.
    """
    rho = np.minimum(rate * work_s, HIGHEST_UTILIZATION)
    return np.asarray(rho * work_s * 0.5 * (1.0 + variation_squared) / (1.0 - rho))


def tail_factor(survival: Floats, busy: Floats) -> Floats:
    """Wait at a percentile over the mean wait, for an exponential tail behind the chance of no wait [1].

    Parameters
    ----------
    survival : array [1]
        Share of requests that wait longer; NaN for the mean.
    busy : array [1]
        Probability that a request waits at all.

    Returns
    -------
    array [1]

    References
    ----------
    1. Kleinrock, "Queueing Systems", volume 1, 1975 (M/M/c waiting-time distribution).
    """
    share = np.clip(busy, 1e-9, 1.0)
    return np.asarray(np.where(np.isnan(survival), 1.0, np.maximum(np.log(share / survival), 0.0) / share))


def normal_quantile(percentile: float) -> float:
    """Standard normal quantile [1].

    Parameters
    ----------
    percentile : float [%]

    Returns
    -------
    float

    References
    ----------
    1. Abramowitz and Stegun, section 26.2.
    """
    return NormalDist().inv_cdf(min(max(percentile / 100.0, 1e-9), 1.0 - 1e-9))


def is_percentile(value: float) -> bool:
    """Whether a percentile lies strictly between 0 and 100.

    Parameters
    ----------
    value : float [%]

    Returns
    -------
    bool

    References
    ----------
    1. Definition of a percentile.
    """
    return math.isfinite(value) and 0.0 < value < 100.0
