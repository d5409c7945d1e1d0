"""Statistics of request lengths: mean, spread, quantiles and the longest to plan for."""

import math
from statistics import NormalDist

from app.engine.workload import Lengths

# spread assumed where only the mean is known; production traces have coefficients of variation near 1
# (Azure LLM inference traces, Patel et al., "Splitwise", 2024)
ASSUMED_VARIATION = 1.0
# 95th percentile of the standard normal distribution
NORMAL_95 = 1.6448536269514722


def log_spread(lengths: Lengths) -> float:
    """Standard deviation of the log length of a log-normal with the given mean and p95 [1].

    Parameters
    ----------
    lengths : Lengths

    Returns
    -------
    float

    Notes
    -----
    ``p95 = mean exp(1.645 s - s^2/2)``; the smaller root. A p95 beyond what any log-normal with that mean reaches takes
    the widest one.

    References
    ----------
    1. Patel et al., "Splitwise", 2024 (long-tailed prompt and output lengths).
    """
    if lengths.histogram:
        mean = sum(length * share for length, share in lengths.histogram)
        square = sum(length * length * share for length, share in lengths.histogram)
        return math.sqrt(max(math.log(square / (mean * mean)), 0.0))
    if lengths.p95 is None:
        return math.sqrt(math.log(1.0 + ASSUMED_VARIATION**2))
    ratio = math.log(max(lengths.p95 / lengths.mean, 1.0))
    inside = NORMAL_95 * NORMAL_95 - 2.0 * ratio
    return NORMAL_95 - math.sqrt(inside) if inside > 0.0 else NORMAL_95


def variation_squared(lengths: Lengths) -> float:
    """Squared coefficient of variation of the length [1].

    Parameters
    ----------
    lengths : Lengths

    Returns
    -------
    float

    References
    ----------
    1. Moments of the log-normal distribution.
    """
    return math.expm1(log_spread(lengths) ** 2)


def quantile_ratio(lengths: Lengths, percentile: float) -> float:
    """Length at a percentile over the mean length [1].

    Parameters
    ----------
    lengths : Lengths
    percentile : float [%]

    Returns
    -------
    float

    References
    ----------
    1. Quantiles of the log-normal distribution.
    """
    if lengths.histogram:
        mean = sum(length * share for length, share in lengths.histogram)
        below, top = 0.0, 0.0
        for length, share in sorted(lengths.histogram):
            below, top = below + share, length
            if below >= percentile / 100.0:
                break
        return top / mean
    spread = log_spread(lengths)
    return math.exp(NormalDist().inv_cdf(percentile / 100.0) * spread - spread * spread / 2.0)


def longest(lengths: Lengths) -> float:
    """Longest length that plans must hold [token]: the histogram's end, else the stated p95, else the mean.

    Parameters
    ----------
    lengths : Lengths

    Returns
    -------
    float

    References
    ----------
    1. vLLM documentation, ``max_model_len``.
    """
    if lengths.histogram:
        return max(length for length, _ in lengths.histogram)
    return max(lengths.p95 or 0.0, lengths.mean)
