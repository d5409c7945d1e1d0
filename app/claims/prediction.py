"""Intervals of figures and of their ratios: how much of the model's error two predictions share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.outcome import Band

# 10th and 90th percentile of a normal law lie so many standard deviations from its middle.
NORMAL_P90 = 1.2815515655446004

# Correlation of the log errors of two predictions of one model by one source, by what the two share. Measured on rows
# the parameters were not fitted to (training: leave-one-pair-out) and on the serving rows; ``python -m
# benchmarks.ratio_errors`` prints them again. Two parts: 0.26 to 0.37 (training), 0.33 to 0.36 (serving).
BETWEEN_PARTS = 0.30
# One part, two number formats: 0.39 to 0.49 in training; none in serving, where the software differs with the format.
BETWEEN_FORMATS = {"training": 0.40, "inference": 0.0}
# One part and format at two sizes or under two conditions: 0.67 to 0.77 (training), 0.63 (serving).
BETWEEN_SIZES = 0.65
# The same engine answer on both sides: the same error, whatever it is.
SAME_ANSWER = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What an engine figure was predicted for; decides how much error it shares with another.

    Parameters
    ----------
    answer : tuple
        Everything the engine's step answer depends on; equal answers carry equal errors.
    """

    kind: str
    accelerator: str
    precision: str
    answer: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A predicted or known figure.

    Parameters
    ----------
    value : Band [the metric's unit]
    basis : str
        ``calibrated``, ``transferred``, ``datasheet`` (engine), ``catalog`` (a fact) or ``arithmetic``.
    origin : Origin or None
        None for facts: they carry no model error.
    step : (float, float) or None [log ratio]
        The lower and upper part of the spread that comes from the engine's step; what is left comes from how the
        system is run (failures, restarts, how well the software is tuned). None = all of it is the engine's.
    """

    value: Band
    basis: str
    origin: Origin | None = None
    step: tuple[float, float] | None = None

    def spreads(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Lower and upper log spread: the engine's part, and the rest."""
        band = self.value
        down, up = _log(band.p50, band.p10), _log(band.p90, band.p50)
        if self.step is None:
            return (down, up), (0.0, 0.0)
        step = (min(down, self.step[0]), min(up, self.step[1]))
        return step, (_rest(down, step[0]), _rest(up, step[1]))


def exactly(value: float, basis: str) -> Figure:
    """A figure without model error."""
    return Figure(value=Band(p10=value, p50=value, p90=value), basis=basis)


def shared_error(a: Origin | None, b: Origin | None) -> float:
    """Correlation of the log errors of two figures.

    Returns
    -------
    float [1]
        0 where one of them has no model error.
    """
    if a is None or b is None:
        return 0.0
    if a.answer == b.answer:
        return SAME_ANSWER
    if a.accelerator != b.accelerator:
        return BETWEEN_PARTS
    if a.precision != b.precision:
        return BETWEEN_FORMATS.get(a.kind, 0.0)
    return BETWEEN_SIZES


def ratio_band(top: Figure, bottom: Figure) -> Band:
    """Band of ``top / bottom`` with the shared part of the error cancelled.

    Notes
    -----
    On the log scale the variance of a difference is ``a^2 + b^2 - 2 r a b``. The upper end of a ratio pairs the upper
    side of the numerator with the lower side of the denominator. Where both figures rest on one engine answer, their
    percentiles go together and are divided one by one. Who runs the system runs both sides: the part of the spread
    that is not the engine's is the same on both, so only its difference is left.
    """
    a, b = top.value, bottom.value
    if a.p50 <= 0.0 or b.p50 <= 0.0:
        raise ValueError("a ratio needs two positive figures")
    r = shared_error(top.origin, bottom.origin)
    middle = a.p50 / b.p50
    if r == SAME_ANSWER and b.p10 > 0.0:
        together = sorted((a.p10 / b.p10, middle, a.p90 / b.p90))
        return Band(p10=together[0], p50=together[1], p90=together[2])
    (a_down, a_up), (a_low, a_high) = top.spreads()
    (b_down, b_up), (b_low, b_high) = bottom.spreads()
    up = math.hypot(_apart(a_up, b_down, r), a_high - b_high)
    down = math.hypot(_apart(a_down, b_up, r), a_low - b_low)
    return Band(p10=middle * math.exp(-down), p50=middle, p90=middle * math.exp(up))


def _log(top: float, bottom: float) -> float:
    return math.log(top / bottom) if bottom > 0.0 else math.inf


def _rest(whole: float, part: float) -> float:
    return math.sqrt(max(0.0, whole * whole - part * part))


def _apart(a: float, b: float, r: float) -> float:
    return math.sqrt(max(0.0, a * a + b * b - 2.0 * r * a * b))


def times(band: Band, factor: float) -> Band:
    """A band scaled by a known positive factor."""
    return Band(p10=band.p10 * factor, p50=band.p50 * factor, p90=band.p90 * factor)


def over_known_draws(band: Band, draws: Sequence[float]) -> Band:
    """Band of a figure times one of several equally likely known factors (prices of several sellers).

    Parameters
    ----------
    band : Band
        The uncertain part, lognormal with its own spread to either side.
    draws : sequence of float
        Positive factors, one per seller.

    Notes
    -----
    Quantiles of the mixture over a fixed grid of levels; nothing is drawn at random.
    """
    if len(draws) == 1:
        return times(band, draws[0])
    levels = (np.arange(400) + 0.5) / 400.0
    spread = quantiles(band, levels)
    mixed = np.sort((np.asarray(sorted(draws))[:, None] * spread[None, :]).ravel())
    p10, p50, p90 = (float(v) for v in np.quantile(mixed, (0.1, 0.5, 0.9)))
    return Band(p10=p10, p50=p50, p90=p90)


def quantiles(band: Band, levels: np.ndarray) -> np.ndarray:
    """Quantiles of a two-sided lognormal law that has the band's percentiles.

    Parameters
    ----------
    levels : array [1]
        Between 0 and 1, exclusive.
    """
    z = normal_quantile(levels)
    up, down = _log(band.p90, band.p50) / NORMAL_P90, _log(band.p50, band.p10) / NORMAL_P90
    exponent: np.ndarray = np.where(z >= 0.0, z * up, z * down)
    result: np.ndarray = band.p50 * np.exp(exponent)
    return result


# Rational approximation of the inverse normal distribution, relative error below 1.15e-9: P. J. Acklam, "An algorithm
# for computing the inverse normal cumulative distribution function", 2003.
_A = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.3577518672690,
    -30.66479806614716,
    2.506628277459239,
)
_B = (-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1.0)
_C = (
    -7.784894002430293e-3,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
_D = (7.784695709041462e-3, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1.0)
_TAIL = 0.02425


def normal_quantile(levels: np.ndarray) -> np.ndarray:
    """Inverse of the normal distribution.

    Parameters
    ----------
    levels : array [1]
        Between 0 and 1, exclusive.
    """
    p = np.asarray(levels, dtype=np.float64)
    nearest = np.minimum(p, 1.0 - p)
    q = np.sqrt(-2.0 * np.log(nearest))
    tail = np.polyval(_C, q) / np.polyval(_D, q)
    centre = p - 0.5
    r = centre * centre
    middle = np.polyval(_A, r) * centre / np.polyval(_B, r)
    result: np.ndarray = np.where(nearest < _TAIL, np.where(p < 0.5, tail, -tail), middle)
    return result


def below(band: Band, value: float) -> float:
    """Probability that the figure is below a value.

    Returns
    -------
    float [1]
        A point (p10 = p90) is below or not.
    """
    if band.p10 == band.p90:
        return 1.0 if band.p50 < value else 0.0
    if value <= 0.0:
        return 0.0
    side = band.p90 / band.p50 if value >= band.p50 else band.p50 / max(band.p10, 1e-300)
    if side <= 1.0:
        return 1.0 if value >= band.p50 else 0.0
    z = NORMAL_P90 * math.log(value / band.p50) / math.log(side)
    return 0.5 * (1.0 + math.erf(z / math.sqrt(2.0)))
