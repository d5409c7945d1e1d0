"""The training facade: the fastest plan that fits, or why there is none."""

from dataclasses import dataclass, fields, replace

import numpy as np

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.bounded import Fastest, fastest_of
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.plans import PlanArrays
from app.engine.training.problem import Problem, memory_arrays, problem_of, times_of
from app.engine.training.recompute import recomputation_of
from app.engine.training.refusal import contradiction, no_legal_plan, out_of_memory
from app.engine.training.result import result_of
from app.engine.training.space import sharding_plans, space_of
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
    """All legal plans that fit, timed: the search without its bounds.

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
    limits, request = problem.limits, problem.request
    if refused := contradiction(limits, request):
        return refused
    ranking = _rank(problem)
    if limits.pipelined or isinstance(ranking, Ranking):
        return ranking
    return _rank(replace(problem, limits=replace(limits, pipelined=True)))


def _rank(problem: Problem) -> Ranking | Infeasible:
    space = space_of(problem.limits, problem.request)
    if not len(space.plans):
        return no_legal_plan(problem.limits, problem.request)
    need = recomputation_of([problem], space.plans)
    plans, fits = replace(space.plans, recompute=need.level[0]), need.fits[0]
    if not fits.any():
        return out_of_memory(plans, memory_arrays(problem, plans), problem.cluster)
    kept = plans.take(fits)
    used, place = np.unique(space.parent[fits], return_inverse=True)
    shards = sharding_plans(space.shardings, used, float(kept.sequence_parallel.max()))
    pr = problem
    unique = layer_times(pr.architecture, shards, pr.job.sequence, pr.job.document, pr.hardware, pr.coefficients)
    gathered = LayerTimes(**{f.name: np.asarray(getattr(unique, f.name))[place] for f in fields(LayerTimes)})
    return Ranking(plans=kept, times=times_of(problem, kept, gathered), considered=len(plans))


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
    return finish(problem, fastest_of([problem])[0])


def finish(problem: Problem, found: Fastest | Infeasible) -> TrainingResult | Infeasible:
    """The result of the fastest plan of a problem.

    Parameters
    ----------
    problem : Problem
    found : Fastest or Infeasible

    Returns
    -------
    TrainingResult or Infeasible

    References
    ----------
    1. Vovk et al. 2005 (bands); Chowdhery et al. 2022 (utilisation).
    """
    if isinstance(found, Infeasible):
        return found
    origin = "pinned" if all(getattr(problem.request, name) is not None for name in PLAN_DEGREES) else "searched"
    return result_of(
        workload=problem.workload,
        cluster=problem.cluster,
        setting=problem.setting,
        calibration=problem.calibration,
        coefficients=problem.coefficients,
        hardware=problem.hardware,
        plan=found.plan,
        times=found.times,
        memory=found.memory,
        origin=origin,
        considered=found.considered,
    )


# a plan counts as pinned when its degrees and micro-batch are
PLAN_DEGREES = ("tensor", "pipeline", "micro_batch_sequences")
