"""Grouped cross-validation: residuals of rows whose whole group the fit did not see."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.fit import fit
from benchmarks.training.packed import Packed
from benchmarks.training.rows import Row

Array = NDArray[np.float64]

# groups left out together; every group whole in one fold
PAIR_FOLDS, SOURCE_FOLDS, CHIP_FOLDS = 10, 10, 13


def pair_of(row: Row) -> str:
    """Chip and model."""
    return f"{row.cluster.accelerator.id}|{row.family}"


def source_of(row: Row) -> str:
    """Title of the source."""
    return row.title


def chip_of(row: Row) -> str:
    """Accelerator."""
    return row.cluster.accelerator.id


def vendor_of(row: Row) -> str:
    """Vendor, or for NVIDIA the generation: nobody can leave NVIDIA out and keep a calibration."""
    part = row.cluster.accelerator
    return part.vendor if part.vendor != "NVIDIA" else part.architecture


def folds(groups: Sequence[str], count: int) -> NDArray[np.intp]:
    """Fold of each row: groups by falling size, each to the fold with the fewest rows so far."""
    names, sizes = np.unique(np.array(groups), return_counts=True)
    order = sorted(range(names.size), key=lambda i: (-int(sizes[i]), str(names[i])))
    filled = [0] * count
    where: dict[str, int] = {}
    for i in order:
        target = filled.index(min(filled))
        where[str(names[i])] = target
        filled[target] += int(sizes[i])
    return np.array([where[g] for g in groups], dtype=np.intp)


def out_of_sample(
    packed: Packed,
    rows: Sequence[Row],
    log_measured: Array,
    weights: Array,
    group: Callable[[Row], str],
    count: int,
    start: Array,
) -> Array:
    """Log of measured over predicted, each row predicted by a fit without its group."""
    fold = folds([group(row) for row in rows], count)
    out = np.zeros(len(rows))
    for index in range(count):
        train, test = np.nonzero(fold != index)[0], np.nonzero(fold == index)[0]
        if test.size:
            effects = fit(packed.take(train), log_measured[train], weights[train], start)
            out[test] = log_measured[test] - packed.take(test).log_rates(effects)
    return out
