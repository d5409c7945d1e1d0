"""Intervals of figures and of their ratios: how much of the model's error two predictions share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.law import log_spreads, quantiles
from app.engine.outcome import Band

# Correlation of the log errors of two predictions of one model by one source, by what the two share. Measured on rows
# the parameters were not fitted to (training: leave-one-pair-out) and on the serving rows; ``python -m
# benchmarks.ratio_errors`` prints them again. Two parts: 0.23 to 0.28 in training, 0.31 to 0.33 in serving.
BETWEEN_PARTS = {"training": 0.25, "inference": 0.32}
# One part, two number formats: 0.46 in training; none in serving, where the software differs with the format.
BETWEEN_FORMATS = {"training": 0.45, "inference": 0.0}
# One part and format at two sizes or under two conditions: 0.85 and 0.62.
BETWEEN_SIZES = {"training": 0.80, "inference": 0.60}
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
        down, up = log_spreads(self.value)
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
        0 where one of them has no model error, or one is of training and the other of serving.
    """
    if a is None or b is None or a.kind != b.kind:
        return 0.0
    if a.answer == b.answer:
        return SAME_ANSWER
    if a.accelerator != b.accelerator:
        return BETWEEN_PARTS[a.kind]
    if a.precision != b.precision:
        return BETWEEN_FORMATS[a.kind]
    return BETWEEN_SIZES[a.kind]


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
    levels = (np.arange(400, dtype=np.float64) + 0.5) / 400.0
    spread = quantiles(band, levels)
    mixed = np.sort((np.asarray(sorted(draws))[:, None] * spread[None, :]).ravel())
    p10, p50, p90 = (float(v) for v in np.quantile(mixed, (0.1, 0.5, 0.9)))
    return Band(p10=p10, p50=p50, p90=p90)
