"""Sobol numbers and Sobol indices: a fixed sequence, so that the same question has the same answer."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bits = NDArray[np.uint32]

BITS = 32
# Degree, coefficients and initial direction numbers of dimensions 2 to 12: S. Joe and F. Y. Kuo, "Constructing Sobol
# sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30, 2008, table new-joe-kuo-6.
_DIRECTIONS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
    (5, 11, (1, 1, 5, 1, 1)),
    (5, 13, (1, 1, 1, 3, 11)),
)
MOST_DIMENSIONS = len(_DIRECTIONS) + 1


def _direction_numbers(dimension: int) -> list[int]:
    """The 32 direction numbers of a dimension, counted from zero."""
    if dimension == 0:
        return [1 << (BITS - 1 - i) for i in range(BITS)]
    degree, coefficients, initial = _DIRECTIONS[dimension - 1]
    numbers = [m << (BITS - 1 - i) for i, m in enumerate(initial)]
    for i in range(degree, BITS):
        value = numbers[i - degree] ^ (numbers[i - degree] >> degree)
        for k in range(1, degree):
            if (coefficients >> (degree - 1 - k)) & 1:
                value ^= numbers[i - k]
        numbers.append(value)
    return numbers


def sobol_points(count: int, dimensions: int) -> Array:
    """The first points of the sequence, each shifted by half a step so that none is zero or one.

    Parameters
    ----------
    count : int
        A power of two keeps the sequence balanced.
    dimensions : int
        At most ``MOST_DIMENSIONS``.

    Returns
    -------
    array, shape (count, dimensions)
        Strictly between 0 and 1.
    """
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ValueError(f"the direction table holds 1 to {MOST_DIMENSIONS} dimensions, not {dimensions}")
    index = np.arange(count, dtype=np.uint32)
    gray: Bits = index ^ (index >> np.uint32(1))
    points = np.empty((count, dimensions))
    for dimension in range(dimensions):
        bits: Bits = np.zeros(count, dtype=np.uint32)
        for place, number in enumerate(_direction_numbers(dimension)[: max(1, int(count - 1).bit_length())]):
            chosen = (gray >> np.uint32(place)) & np.uint32(1)
            bits ^= chosen * np.uint32(number)
        points[:, dimension] = bits.astype(np.float64) / 2.0**BITS + 0.5 / count
    return points


def sobol_indices(
    total: Callable[[Mapping[str, Array]], Array], names: list[str], samples: int
) -> tuple[dict[str, tuple[float, float]], Array]:
    """First-order and total indices of every input, and the sampled totals.

    Parameters
    ----------
    total : callable
        Vectorised figure of inputs at levels between 0 and 1.
    samples : int
        Rows of each of the two base matrices.

    Returns
    -------
    (dict of str to (float, float), array)
        Share of the variance that an input explains alone, and with all its interactions; zeros without variance.

    References
    ----------
    1. Saltelli et al., "Variance based sensitivity analysis of model output", Computer Physics Communications 2010
       (first order). 2. Jansen, "Analysis of variance designs for model output", 1999 (total).
    """
    k = len(names)
    points = sobol_points(samples, 2 * k)
    a, b = points[:, :k], points[:, k:]
    at_a, at_b = total(_named(names, a)), total(_named(names, b))
    both = np.concatenate([at_a, at_b])
    variance = float(both.var())
    found: dict[str, tuple[float, float]] = {}
    for i, name in enumerate(names):
        mixed = a.copy()
        mixed[:, i] = b[:, i]
        at_mixed = total(_named(names, mixed))
        if variance <= 0.0:
            found[name] = (0.0, 0.0)
            continue
        first = float(np.mean(at_b * (at_mixed - at_a))) / variance
        every = 0.5 * float(np.mean((at_a - at_mixed) ** 2)) / variance
        found[name] = (min(1.0, max(0.0, first)), max(0.0, every))
    return found, both


def _named(names: list[str], columns: Array) -> dict[str, Array]:
    return {name: columns[:, i] for i, name in enumerate(names)}
