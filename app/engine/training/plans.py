"""Plans as arrays: one element a plan, so that a plan space is an array axis and not a loop."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from app.engine.workload import TrainingPlan

Array = NDArray[np.float64]

SHARDINGS = ("none", "zero1", "zero2", "zero3", "hybrid")
RECOMPUTES = ("none", "selective", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArrays:
    """Plans, field by field; shape (plans,), all floats so that formulas need no casts.

    Parameters
    ----------
    tensor, pipeline, virtual, context, expert, expert_tensor, data : array
        Degrees; ``tensor * pipeline * context * data`` is the number of accelerators.
    sharding, recompute : array
        Index into ``SHARDINGS`` and ``RECOMPUTES``; 1.25 recomputes a quarter of the layers in full, the others
        selectively.
    micro_batch : array [sequence]
    sequence_parallel, overlap, offload : array
        1 where on.

    References
    ----------
    1. Narayanan et al. 2021; Korthikanti et al. 2022; Rajbhandari et al. 2020; Zhao et al. 2023 (FSDP).
    """

    tensor: Array
    pipeline: Array
    virtual: Array
    context: Array
    expert: Array
    expert_tensor: Array
    data: Array
    sharding: Array
    micro_batch: Array
    recompute: Array
    sequence_parallel: Array
    overlap: Array
    offload: Array

    def __len__(self) -> int:
        return int(self.tensor.size)

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> "PlanArrays":
        """The plans at an index or under a mask."""
        return PlanArrays(**{f.name: getattr(self, f.name)[index] for f in fields(self)})

    def plan(self, index: int) -> TrainingPlan:
        """One plan as a value."""
        return TrainingPlan(
            tensor=int(self.tensor[index]),
            pipeline=int(self.pipeline[index]),
            virtual_pipeline=int(self.virtual[index]),
            context=int(self.context[index]),
            expert=int(self.expert[index]),
            expert_tensor=int(self.expert_tensor[index]),
            data=int(self.data[index]),
            sharding=SHARDINGS[int(self.sharding[index])],
            micro_batch_sequences=int(self.micro_batch[index]),
            recompute=RECOMPUTES[int(np.ceil(self.recompute[index]))],
            sequence_parallel=bool(self.sequence_parallel[index]),
            overlap=bool(self.overlap[index]),
            cpu_offload=bool(self.offload[index]),
        )


def arrays_of(plans: Sequence[TrainingPlan]) -> PlanArrays:
    """Plans side by side as arrays.

    Parameters
    ----------
    plans : sequence of TrainingPlan

    Returns
    -------
    PlanArrays

    References
    ----------
    1. Narayanan et al. 2021 (the parallel dimensions).
    """
    rows = [
        (
            p.tensor,
            p.pipeline,
            p.virtual_pipeline,
            p.context,
            p.expert,
            p.expert_tensor,
            p.data,
            sharding_index(p.sharding),
            p.micro_batch_sequences,
            RECOMPUTES.index(p.recompute),
            p.sequence_parallel,
            p.overlap,
            p.cpu_offload,
        )
        for p in plans
    ]
    columns = np.array(rows, dtype=np.float64).T
    return PlanArrays(**{f.name: columns[i] for i, f in enumerate(fields(PlanArrays))})


def concatenate(parts: Sequence[PlanArrays]) -> PlanArrays:
    """Plan arrays one after the other.

    Parameters
    ----------
    parts : Sequence[PlanArrays]

    Returns
    -------
    PlanArrays

    References
    ----------
    1. Harris et al., "Array programming with NumPy", Nature 2020.
    """
    return PlanArrays(**{f.name: np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(PlanArrays)})


def sharding_index(name: str) -> int:
    """Index of a sharding by any of its names.

    Parameters
    ----------
    name : str
        ``none``, ``zero1``, ``zero2``, ``zero3``, ``fsdp`` or ``hybrid``.

    Returns
    -------
    int

    References
    ----------
    1. Rajbhandari et al. 2020 (ZeRO stages); Zhao et al. 2023 (FSDP, hybrid sharding).
    """
    return SHARDINGS.index("zero3" if name in ("fsdp", "zero3/fsdp") else name)
