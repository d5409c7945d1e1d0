"""The smallest number of accelerators that one copy of a model has to be cut over."""

from dataclasses import dataclass, replace

import numpy as np

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.problem import memory_arrays, problem_of
from app.engine.training.recompute import recomputation_of
from app.engine.training.refusal import no_legal_plan, out_of_memory
from app.engine.training.space import space_of
from app.engine.workload import TrainingPlan, TrainingPlanRequest, TrainingWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestSplit:
    """The leanest cut of a model that still trains.

    Parameters
    ----------
    accelerators : int
        Tensor times pipeline times context degree.
    plan : TrainingPlan
        One plan that fits with it.
    headroom_bytes : float [byte]
        Left on the fullest accelerator.
    """

    accelerators: int
    plan: TrainingPlan
    headroom_bytes: float


def smallest_split(
    workload: TrainingWorkload, cluster: Cluster, request: TrainingPlanRequest, calibration: TrainingCalibration
) -> SmallestSplit | Infeasible:
    """Smallest model-parallel size at which a workload fits a cluster.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster
    request : TrainingPlanRequest
        Without a pinned sharding the optimizer state is sharded over the data-parallel ranks and the weights are not.
    calibration : TrainingCalibration

    Returns
    -------
    SmallestSplit or Infeasible

    Notes
    -----
    Full sharding of weights (ZeRO-3, FSDP) needs no model parallelism by construction and gathers weights instead;
    it counts only where the caller pins it. Memory decides, time does not.

    References
    ----------
    1. Narayanan et al. 2021, section 3; Rajbhandari et al. 2020, section 5.
    """
    asked = request if request.sharding is not None else replace(request, sharding="zero1")
    problem = problem_of(workload, cluster, asked, calibration)
    if isinstance(problem, Infeasible):
        return problem
    space = space_of(problem.limits, asked)
    if not len(space.plans):
        return no_legal_plan(problem.limits, asked)
    need = recomputation_of([problem], space.plans)
    plans, fits = replace(space.plans, recompute=need.level[0]), need.fits[0]
    if not fits.any():
        return out_of_memory(plans, memory_arrays(problem, plans), cluster)
    kept = plans.take(fits)
    headroom = memory_arrays(problem, kept).headroom
    size = kept.tensor * kept.pipeline * kept.context
    best = int(np.lexsort((-headroom, size))[0])
    return SmallestSplit(accelerators=int(size[best]), plan=kept.plan(best), headroom_bytes=float(headroom[best]))
