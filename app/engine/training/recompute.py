"""How much each plan has to recompute to fit, on one machine or on many."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.training.plans import RECOMPUTES, PlanArrays
from app.engine.training.problem import Problem, memory_arrays

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """The least recomputation of plans on machines of different memory.

    Parameters
    ----------
    level : array, shape (memories, plans)
        As :class:`app.engine.training.plans.PlanArrays` counts it; full where the plan does not fit.
    fits : array of bool, shape (memories, plans)
    headroom : array, shape (memories, plans) [byte]
        At the most recomputation allowed.
    memory : array of int, shape (machines,)
        Which of the memories each machine has.

    References
    ----------
    1. Korthikanti et al. 2022, section 5.
    """

    level: Array
    fits: NDArray[np.bool_]
    headroom: Array
    memory: NDArray[np.intp]


def recomputation_of(problems: Sequence[Problem], plans: PlanArrays) -> Recomputation:
    """The least recomputation that lets each plan fit each machine, and whether it fits at all.

    Parameters
    ----------
    problems : sequence of Problem
        Of one workload, with the same formats and kernels; their machines differ.
    plans : PlanArrays, shape (plans,)

    Returns
    -------
    Recomputation

    Notes
    -----
    What a plan asks for does not depend on the machine, so it is counted once and held against each memory.

    References
    ----------
    1. Korthikanti et al. 2022, section 5: selective before full; as few layers in full as needed.
    """
    kinds: dict[tuple[float, float], int] = {}
    pairs = [
        (float(h.memory_bytes * h.allocatable_share), float(h.reserve_bytes)) for h in (p.hardware for p in problems)
    ]
    memory = np.array([kinds.setdefault(pair, len(kinds)) for pair in pairs], dtype=np.intp)
    available, reserve = np.array(list(kinds), dtype=np.float64).T[:, :, None]
    pinned = problems[0].request.recompute
    levels = [float(RECOMPUTES.index(pinned))] if pinned else [0.0, 1.0, 2.0]
    # the levels are an axis before the plans: what does not depend on them is counted once
    every = replace(plans, recompute=np.array(levels)[:, None])
    room = [available - (asked + reserve) for asked in memory_arrays(problems[0], every).asked]
    if pinned:
        return Recomputation(
            level=np.full_like(room[0], levels[0]), fits=room[0] >= 0.0, headroom=room[0], memory=memory
        )
    # between selective and full, as many layers as are needed: activations shrink in proportion
    # and a billionth more, so that rounding leaves no plan a byte short
    share = np.clip(-room[1] / np.maximum(room[2] - room[1], 1.0) * (1.0 + 1.0e-9), 0.0, 1.0)
    chosen = np.where(room[0] >= 0.0, 0.0, np.where(room[1] >= 0.0, 1.0, 1.0 + share))
    fits = np.maximum(np.maximum(room[0], room[1]), room[2]) >= 0.0
    return Recomputation(level=np.where(fits, chosen, 2.0), fits=fits, headroom=room[2], memory=memory)
