"""Time of one kernel: launch, then the slower of arithmetic and memory traffic. Shares are smooth curves of the shape.

Every function takes floats or NumPy arrays alike and broadcasts them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Real = float | NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCurve:
    """Share of the dense peak a matmul of m x k by k x n reaches, for one generation and number format.

    Parameters
    ----------
    max_share : float
        Share of the dense peak of an endless matmul.
    half_m, half_n, half_k : float
        Size at which that dimension alone halves the share.
    launch_s : float [s]
        Fixed time of one kernel (launch, quantisation of a small operand).
    memory_share : float
        Share of the memory bandwidth a streaming operand reaches.

    References
    ----------
    1. Williams et al., "Roofline: An Insightful Visual Performance Model", CACM 2009.
    2. Measured GEMM times of aiconfigurator-core 0.12.0 (Apache-2.0, NVIDIA), ten accelerators.
    """

    max_share: float
    half_m: float
    half_n: float
    half_k: float
    launch_s: float
    memory_share: float

    def __post_init__(self) -> None:
        if not self.max_share > 0.0 or not 0.0 < self.memory_share <= 1.0:
            raise ValueError(f"a matmul curve needs positive shares, got {self.max_share} and {self.memory_share}")
        if min(self.half_m, self.half_n, self.half_k, self.launch_s) < 0.0:
            raise ValueError("half sizes and launch time of a matmul curve cannot be negative")


def saturation(size: Real, half: Real) -> Real:
    """Share of its limit that a quantity reaches at ``size``: one half at ``half``, one at infinity.

    Parameters
    ----------
    size, half : float or array
        Same unit.

    Returns
    -------
    float or array

    References
    ----------
    1. Hockney and Jesshope, "Parallel Computers 2", 1988 (the half-performance length n_1/2).
    """
    return size / (size + half)


def matmul_share(m: Real, n: Real, k: Real, *, max_share: Real, half_m: Real, half_n: Real, half_k: Real) -> Real:
    """Share of the dense peak reached by an m x k by k x n matmul.

    Parameters
    ----------
    m, n, k : float or array
    max_share, half_m, half_n, half_k : float or array
        As in :class:`MatmulCurve`.

    Returns
    -------
    float or array

    Notes
    -----
    Fits measured times of m, n, k >= 512 with a median error of 4 to 7 % on A100 to GB300.

    References
    ----------
    1. Hockney and Jesshope 1988; measured GEMM times of aiconfigurator-core 0.12.0.
    """
    return max_share * (m * n * k) / ((m + half_m) * (n + half_n) * (k + half_k))


def roofline_time(compute_s: Real, memory_s: Real, launch_s: Real = 0.0) -> Real:
    """Time of a kernel from its arithmetic and its memory time, which overlap but not perfectly.

    Parameters
    ----------
    compute_s, memory_s, launch_s : float or array [s]

    Returns
    -------
    float or array [s]
        ``launch + (compute^4 + memory^4)^(1/4)``: the maximum, rounded off where both are equal.

    References
    ----------
    1. Williams et al. 2009.
    """
    compute_squared, memory_squared = compute_s * compute_s, memory_s * memory_s
    return launch_s + np.sqrt(np.sqrt(compute_squared * compute_squared + memory_squared * memory_squared))


def memory_time(moved_bytes: Real, *, memory_bytes_per_s: Real, memory_share: Real, launch_s: Real = 0.0) -> Real:
    """Time of a kernel that only moves bytes (norms, activations, optimizer, decode attention).

    Parameters
    ----------
    moved_bytes : float or array [byte]
    memory_bytes_per_s : float or array [byte/s]
    memory_share : float or array
        Share of the bandwidth reached.
    launch_s : float or array [s]

    Returns
    -------
    float or array [s]

    References
    ----------
    1. Williams et al. 2009.
    """
    return launch_s + moved_bytes / (memory_bytes_per_s * memory_share)


def attended_tokens(sequence: Real, window: Real, causal_share: float = 0.5) -> Real:
    """Mean number of keys a query meets in one sequence.

    Parameters
    ----------
    sequence : float or array [token]
    window : float or array [token]
        Sliding window; infinite (or at least ``sequence``) for full attention.
    causal_share : float [1]
        Share of the square that is computed: one half for causal, one for the full square (a source's convention).

    Returns
    -------
    float or array [token]

    References
    ----------
    1. Beltagy et al., "Longformer", 2020; PaLM appendix B (Chowdhery et al. 2022) for the full-square convention.
    """
    span = np.minimum(sequence, window)
    return span - span * span / sequence * (1.0 - causal_share)


def distinct_experts(tokens: Real, experts: Real, active: Real) -> Real:
    """Expected number of experts that at least one of ``tokens`` visits under uniform routing.

    Parameters
    ----------
    tokens, experts, active : float or array

    Returns
    -------
    float or array

    References
    ----------
    1. Occupancy problem: E (1 - (1 - k/E)^n), Feller, "An Introduction to Probability Theory", volume 1.
    """
    return experts * -np.expm1(tokens * np.log1p(-np.minimum(active / experts, 1.0 - 1e-12)))
