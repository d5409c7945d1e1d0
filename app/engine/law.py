"""The probability law behind a band: lognormal with its own spread to either side of the middle."""

import math

import numpy as np
from numpy.typing import NDArray

from app.engine.outcome import Band

Array = NDArray[np.float64]

# 10th and 90th percentile of a normal law lie so many standard deviations from its middle.
NORMAL_P90 = 1.2815515655446004

# Coefficients of a rational approximation of the inverse normal distribution, relative error below 1.15e-9 (Acklam
# 2003): numerator and denominator of the middle part, of the tails, and where the tails begin.
_MIDDLE_TOP = (
    -39.69683028665376, 220.9460984245205, -275.9285104469687, 138.3577518672690, -30.66479806614716, 2.506628277459239,
)  # fmt: skip
_MIDDLE_BOTTOM = (
    -54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0,
)  # fmt: skip
_TAIL_TOP = (
    -7.784894002430293e-3, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968,
    2.938163982698783,
)  # fmt: skip
_TAIL_BOTTOM = (7.784695709041462e-3, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)
_TAIL = 0.02425


def normal_quantile(levels: Array) -> Array:
    """Inverse of the normal distribution.

    Parameters
    ----------
    levels : array [1]
        Between 0 and 1, exclusive.

    Returns
    -------
    array [standard deviation]

    References
    ----------
    1. Acklam, "An algorithm for computing the inverse normal cumulative distribution function", 2003.
    """
    p = np.asarray(levels, dtype=np.float64)
    nearest = np.minimum(p, 1.0 - p)
    q = np.sqrt(-2.0 * np.log(nearest))
    tail = np.polyval(_TAIL_TOP, q) / np.polyval(_TAIL_BOTTOM, q)
    centre = p - 0.5
    r = centre * centre
    middle = np.polyval(_MIDDLE_TOP, r) * centre / np.polyval(_MIDDLE_BOTTOM, r)
    result: Array = np.where(nearest < _TAIL, np.where(p < 0.5, tail, -tail), middle)
    return result


def log_spreads(band: Band) -> tuple[float, float]:
    """Distance of the 10th and the 90th percentile from the middle.

    Parameters
    ----------
    band : Band

    Returns
    -------
    (float, float) [log ratio]
        Lower and upper; infinite where the 10th percentile is zero.

    References
    ----------
    1. Definition of the lognormal law.
    """
    down = math.log(band.p50 / band.p10) if band.p10 > 0.0 else math.inf
    return down, math.log(band.p90 / band.p50) if band.p50 > 0.0 else math.inf


def log_deviation(levels: Array, down: float, up: float) -> Array:
    """Log ratio to the middle at levels of a two-sided law.

    Parameters
    ----------
    levels : array [1]
        Between 0 and 1, exclusive.
    down, up : float [log ratio]
        Distance of the 10th and 90th percentile from the middle.

    Returns
    -------
    array [log ratio]

    References
    ----------
    1. Two-piece normal law: Wallis, "The Two-Piece Normal, Binormal, or Double Gaussian Distribution", 2014.
    """
    z = normal_quantile(levels) / NORMAL_P90
    result: Array = np.where(z >= 0.0, z * up, z * down)
    return result


def quantiles(band: Band, levels: Array) -> Array:
    """Quantiles of the law of a band.

    Parameters
    ----------
    band : Band
    levels : array [1]
        Between 0 and 1, exclusive.

    Returns
    -------
    array [any]
        In the band's unit.

    References
    ----------
    1. Wallis 2014.
    """
    down, up = log_spreads(band)
    result: Array = band.p50 * np.exp(log_deviation(levels, down, up))
    return result


def chance_below(band: Band, value: float) -> float:
    """Probability that a figure is below a value.

    Parameters
    ----------
    band : Band
    value : float [any]
        In the band's unit.

    Returns
    -------
    float [1]
        A point (p10 = p90) is below or not.

    References
    ----------
    1. Wallis 2014.
    """
    if band.p10 == band.p90:
        return 1.0 if band.p50 < value else 0.0
    if value <= 0.0:
        return 0.0
    down, up = log_spreads(band)
    side = up if value >= band.p50 else down
    if side <= 0.0:
        return 1.0 if value >= band.p50 else 0.0
    z = NORMAL_P90 * math.log(value / band.p50) / side
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
