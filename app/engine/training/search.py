"""The training facade: the fastest plan that fits, or why there is none."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.plans import PlanArrays
from app.engine.training.problem import Problem, memory_arrays, problem_of, times_of, with_recompute
from app.engine.training.refusal import contradiction, no_legal_plan, out_of_memory
from app.engine.training.result import result_of
from app.engine.training.space import Columns, plans_of, shardings_of
from app.engine.training.step import StepTimes
from app.engine.workload import TrainingPlanRequest, TrainingWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Every plan of a problem that fits, with its step time; ``best`` is the fastest.

    References
    ----------
    1. Isaev et al. 2023 (exhaustive search).
    """

    plans: PlanArrays
    times: StepTimes
    considered: int

    @property
    def best(self) -> int:
        """Index of the fastest plan."""
        return int(np.argmin(self.times.total))


def rank_plans(problem: Problem) -> Ranking | Infeasible:
    """All legal plans that fit, timed.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    Ranking or Infeasible

    References
    ----------
    1. Isaev et al. 2023; Zheng et al. 2022 (Alpa) for the two-level space.
    """
    if refused := contradiction(problem.limits, problem.request):
        return refused
    ranking = _rank(problem)
    if problem.limits.pipelined or isinstance(ranking, Ranking):
        return ranking
    return _rank(replace(problem, limits=replace(problem.limits, pipelined=True)))


def _rank(problem: Problem) -> Ranking | Infeasible:
    columns = shardings_of(problem.limits, problem.request)
    plans, parent = plans_of(problem.limits, problem.request, columns)
    if not len(plans):
        return no_legal_plan(problem.limits, problem.request)
    plans, fits = with_recompute(problem, plans)
    if not fits.any():
        memory = memory_arrays(problem, plans)
        return out_of_memory(plans, memory, problem.cluster)
    kept = plans.take(fits)
    used, inverse = np.unique(parent[fits], return_inverse=True)
    shards = sharding_plans(columns, used, float(kept.sequence_parallel.max()))
    pr = problem
    unique = layer_times(pr.architecture, shards, pr.job.sequence, pr.job.document, pr.hardware, pr.coefficients)
    gathered = LayerTimes(**{f.name: np.asarray(getattr(unique, f.name))[inverse] for f in fields(LayerTimes)})
    return Ranking(plans=kept, times=times_of(problem, kept, gathered), considered=len(plans))


def sharding_plans(columns: Columns, index: NDArray[np.intp], parallel: float) -> PlanArrays:
    """Shardings as plans of one stage and one replica: all that the time of a layer depends on.

    Parameters
    ----------
    columns : mapping of str to array
    index : array of int
        Which of them.
    parallel : float [1]
        1 where sequence parallelism accompanies tensor parallelism.

    Returns
    -------
    PlanArrays

    References
    ----------
    1. Narayanan et al. 2021, section 2.3.
    """
    ones = np.ones(index.size)
    given = {name: columns[name][index] for name in SHARDING_FIELDS}
    others = {f.name: ones for f in fields(PlanArrays) if f.name not in given}
    others["sequence_parallel"] = np.where(given["tensor"] > 1.0, parallel, 0.0)
    return PlanArrays(**given, **others)


# what the time of a layer depends on
SHARDING_FIELDS = ("tensor", "context", "expert", "expert_tensor", "micro_batch")


def search_training(
    workload: TrainingWorkload, cluster: Cluster, request: TrainingPlanRequest, calibration: TrainingCalibration
) -> TrainingResult | Infeasible:
    """The fastest plan that fits, with the caller's pinned fields kept.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster
    request : TrainingPlanRequest
        Fields left None are searched.
    calibration : TrainingCalibration

    Returns
    -------
    TrainingResult or Infeasible

    Notes
    -----
    A plan that does not fit is never returned.

    References
    ----------
    1. Narayanan et al. 2021; Isaev et al. 2023.
    """
    problem = problem_of(workload, cluster, request, calibration)
    return problem if isinstance(problem, Infeasible) else search_problem(problem)


def search_problem(problem: Problem) -> TrainingResult | Infeasible:
    """The fastest plan of a problem, as a result.

    Parameters
    ----------
    problem : Problem

    Returns
    -------
    TrainingResult or Infeasible

    References
    ----------
    1. Narayanan et al. 2021; Isaev et al. 2023.
    """
    ranking = rank_plans(problem)
    if isinstance(ranking, Infeasible):
        return ranking
    index = np.array([ranking.best])
    times = StepTimes(**{f.name: getattr(ranking.times, f.name)[index] for f in fields(StepTimes)})
    return finish(problem, ranking.plans.take(index), times, ranking.considered)


def finish(problem: Problem, plan: PlanArrays, times: StepTimes, considered: int) -> TrainingResult:
    """The result of one timed plan of a problem.

    Parameters
    ----------
    problem : Problem
    plan : PlanArrays, shape (1,)
    times : StepTimes, shape (1,) [s]
    considered : int
        Legal plans that were compared.

    Returns
    -------
    TrainingResult

    References
    ----------
    1. Vovk et al. 2005 (bands); Chowdhery et al. 2022 (utilisation).
    """
    origin = "pinned" if all(getattr(problem.request, name) is not None for name in PLAN_DEGREES) else "searched"
    return result_of(
        workload=problem.workload,
        cluster=problem.cluster,
        setting=problem.setting,
        calibration=problem.calibration,
        coefficients=problem.coefficients,
        hardware=problem.hardware,
        plan=plan,
        times=times,
        memory=memory_arrays(problem, plan),
        origin=origin,
        considered=considered,
    )


# a plan counts as pinned when its degrees and micro-batch are
PLAN_DEGREES = ("tensor", "pipeline", "micro_batch_sequences")
