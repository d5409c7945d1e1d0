"""The law of a band against SciPy's normal law."""

import numpy as np
import pytest
from scipy import stats

from app.engine.law import chance_below, normal_quantile, quantiles
from app.engine.outcome import Band


def test_quantiles_are_those_of_the_normal_law() -> None:
    levels = np.array([1e-6, 0.01, 0.1, 0.5, 0.9, 0.975, 1.0 - 1e-6])
    assert normal_quantile(levels) == pytest.approx(stats.norm.ppf(levels), abs=1e-7)


def test_below_and_quantiles_agree() -> None:
    band = Band(p10=60.0, p50=100.0, p90=120.0)
    levels = np.array([0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95])
    back = [chance_below(band, float(v)) for v in quantiles(band, levels)]
    assert back == pytest.approx(list(levels), abs=1e-6)
