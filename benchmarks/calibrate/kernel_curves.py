"""Matmul curves by generation and number format from measured kernel times."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from app.catalog.shipped import shipped_accelerators
from app.engine.kernels import matmul_share

KERNELS = Path(__file__).parents[1] / "data" / "kernels.csv"
# rows of the kernels table that show one number format's own kernels; the peak each one is measured against
FORMATS = {"bf16": "bf16", "fp8": "fp8", "nvfp4": "fp4", "int8_sq": "int8"}
# training matmuls are never smaller than this; below it launch time rules
SMALLEST_M, SMALLEST_NK = 512, 1000
# priors of (max share, half m, half n, half k, launch): a large matmul at 80 %, half speed at a few hundred
PRIOR = np.log([0.8, 60.0, 300.0, 200.0, 4.0e-6])
PRIOR_WEIGHT, OUTLIER_SCALE = 0.2, 0.1
# skinny GEMM rows above 140 MB: share of the memory bandwidth, 0.72 to 0.88 on HBM parts
MEMORY_SHARE = 0.8


def _rows() -> dict[tuple[str, str], dict[tuple[str, float, float, float], float]]:
    best: dict[tuple[str, str], dict[tuple[str, float, float, float], float]] = {}
    accelerators = shipped_accelerators()
    with KERNELS.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["op"] != "gemm" or row["system"] not in accelerators or row["dtype"] not in FORMATS:
                continue
            m, n, k = float(row["m"]), float(row["n"]), float(row["k"])
            if m < SMALLEST_M or min(n, k) < SMALLEST_NK:
                continue
            part = accelerators[row["system"]]
            # workstation parts of a generation have other memory and power: not what training runs on
            if part.memory_bandwidth_bytes_per_s < 1.9e12:
                continue
            table = best.setdefault((part.architecture, FORMATS[row["dtype"]]), {})
            key = (part.id, m, n, k)
            table[key] = min(table.get(key, np.inf), float(row["latency_us"]) * 1e-6)
    return best


def fit_curves() -> dict[str, dict[str, float | int]]:
    """Curves by ``generation/format``, with the number of kernels behind each and the median error of the fit."""
    curves: dict[str, dict[str, float | int]] = {}
    accelerators = shipped_accelerators()
    for (generation, name), table in sorted(_rows().items()):
        parts = [accelerators[key[0]] for key in table]
        peak = np.array([getattr(part.dense_peaks, name) for part in parts], dtype=np.float64)
        m, n, k = np.array([key[1:] for key in table], dtype=np.float64).T
        seconds = np.array(list(table.values()))
        curves[f"{generation}/{name}"] = _fit(peak, m, n, k, seconds)
    for name, source in (
        ("bf16", "Hopper/bf16"),
        ("int8", "Ampere/int8"),
        ("fp8", "Hopper/fp8"),
        ("fp4", "Blackwell/fp4"),
    ):
        curves[f"default/{name}"] = curves[source] | {"rows": 0}
    return curves


def _fit(
    peak: NDArray[np.float64],
    m: NDArray[np.float64],
    n: NDArray[np.float64],
    k: NDArray[np.float64],
    seconds: NDArray[np.float64],
) -> dict[str, float | int]:
    def error(log: NDArray[np.float64]) -> NDArray[np.float64]:
        top, half_m, half_n, half_k, launch = np.exp(log)
        share = matmul_share(m, n, k, max_share=top, half_m=half_m, half_n=half_n, half_k=half_k)
        return np.asarray(np.log((launch + 2.0 * m * n * k / (peak * share)) / seconds))

    def residual(log: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([error(log), PRIOR_WEIGHT * (log - PRIOR)])

    found = least_squares(residual, PRIOR, loss="soft_l1", f_scale=OUTLIER_SCALE)
    names = ("max_share", "half_m", "half_n", "half_k", "launch_s")
    values = {key: float(f"{value:.5g}") for key, value in zip(names, np.exp(found.x), strict=True)}
    return values | {
        "memory_share": MEMORY_SHARE,
        "rows": int(seconds.size),
        "median_error": float(f"{np.median(np.abs(error(found.x))):.3g}"),
    }
