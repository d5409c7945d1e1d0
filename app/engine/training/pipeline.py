"""Pipeline schedules: layers of the fullest stage, bubble, and traffic between stages."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Real = float | Array


def stage_slots(depth: Real, pipeline: Real, virtual: Real) -> tuple[Array, Array]:
    """Layer slots of the fullest stage, and whether the head takes one of them.

    Parameters
    ----------
    depth : float or array
        Layers.
    pipeline, virtual : float or array

    Returns
    -------
    (array, array)
        Slots of the fullest stage; 1 where layers do not divide and embedding and loss fill the odd slots.

    Notes
    -----
    Where ``pipeline * virtual`` does not divide the layers (61, 94, 126 layers), chunks are rounded up and the
    stages with the embedding and the loss hold fewer layers.

    References
    ----------
    1. Narayanan et al. 2021, section 2.2; Grattafiori et al. 2024 (Llama 3, section 3.3.2: one layer less at the ends).
    """
    chunks = pipeline * virtual
    per_chunk = np.ceil(depth / chunks - 1e-9)
    return np.asarray(per_chunk * virtual), np.asarray((per_chunk * chunks > depth + 0.5).astype(np.float64))


def schedule_time(
    layer_s: Real, head_s: Real, depth: Real, pipeline: Real, virtual: Real, batches: Real
) -> tuple[Array, Array, Array]:
    """Time of all micro-batches through an interleaved 1F1B pipeline.

    Parameters
    ----------
    layer_s, head_s : float or array [s]
        One layer, and the head with its loss, forward and backward of one micro-batch.
    depth, pipeline, virtual, batches : float or array
        Layers, stages, chunks a stage, micro-batches.

    Returns
    -------
    (array, array, array) [s]
        Work of the mean stage; waiting for the fullest stage; bubble.

    References
    ----------
    1. Narayanan et al. 2021, section 2.2: bubble (p - 1)/(m v) of the ideal time.
    """
    slots, odd = stage_slots(depth, pipeline, virtual)
    # an odd last stage trades layers for the head: it is the pace only if the head outweighs a free slot
    fullest = np.where(
        odd > 0.0, np.maximum(slots * layer_s, (slots - 1.0) * layer_s + head_s), slots * layer_s + head_s
    )
    mean = (depth * layer_s + head_s) / pipeline
    fullest = np.maximum(fullest, mean)
    return (
        np.asarray(batches * mean),
        np.asarray(batches * (fullest - mean)),
        np.asarray((pipeline - 1.0) / virtual * mean),
    )
