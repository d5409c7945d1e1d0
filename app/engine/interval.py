"""Uncertainty: bands from out-of-sample residuals, so that coverage is a promise that can be tested."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.engine.outcome import Band

# evidence classes from the closest to the most distant
EVIDENCE_CLASSES = ("calibrated", "transferred", "datasheet")


def conformal_quantiles(
    log_residuals: NDArray[np.float64], weights: NDArray[np.float64], levels: Sequence[float] = (0.1, 0.5, 0.9)
) -> tuple[float, ...]:
    """Weighted quantiles of log(measured / predicted), with the finite-sample correction of conformal prediction.

    Parameters
    ----------
    log_residuals, weights : array, shape (rows,)
        Residuals from folds that did not see the row; weight of each row.
    levels : sequence of float

    Returns
    -------
    tuple of float
        One quantile per level, on the log scale.

    Notes
    -----
    The correction places one further row, of mean weight, at each end: a level beyond the data returns the extreme
    residual. Needs exchangeable rows; rows of one source are not, hence the weights.

    References
    ----------
    1. Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005.
    2. Tibshirani et al., "Conformal Prediction Under Covariate Shift", 2019 (weighted quantiles).
    """
    if log_residuals.size == 0:
        raise ValueError("conformal quantiles need at least one residual")
    order = np.argsort(log_residuals, kind="stable")
    residuals, mass = log_residuals[order], weights[order]
    extra = mass.mean()
    centre = (np.cumsum(mass) - 0.5 * mass + extra) / (mass.sum() + 2.0 * extra)
    return tuple(float(np.interp(level, centre, residuals)) for level in levels)


def band_around(value: float, low: float, high: float, centre: float = 0.0) -> Band:
    """Band of a positive figure from quantiles of its log residual.

    Parameters
    ----------
    value : float [any]
        The model's figure, any unit.
    low, high : float [log ratio]
        10th and 90th percentile of log(measured / predicted).
    centre : float [log ratio]
        Median of the same, 0 where the model is taken as unbiased.

    Returns
    -------
    Band

    References
    ----------
    1. Vovk et al. 2005.
    """
    middle = min(max(centre, low), high)
    return Band(p10=value * float(np.exp(low)), p50=value * float(np.exp(middle)), p90=value * float(np.exp(high)))


def inverse_band(band: Band, numerator: float) -> Band:
    """Band of ``numerator / figure`` (step time from throughput): the ends change places.

    Parameters
    ----------
    band : Band
    numerator : float [any]

    Returns
    -------
    Band

    References
    ----------
    1. Quantiles of a decreasing function of a variable.
    """
    return Band(p10=numerator / band.p90, p50=numerator / band.p50, p90=numerator / band.p10)
