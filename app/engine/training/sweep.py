"""One workload on many clusters: a coarse pass over all of them at once, then the survivors' neighbourhood exactly."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.calibration import Coefficients, TrainingCalibration
from app.engine.training.hardware_arrays import Hardware
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.memory import Formats
from app.engine.training.plans import PlanArrays, concatenate
from app.engine.training.problem import Problem, problem_of, times_of, with_recompute
from app.engine.training.refusal import contradiction
from app.engine.training.search import finish, search_problem, sharding_plans
from app.engine.training.space import Columns, Limits, plans_of, shardings_of
from app.engine.training.step import StepTimes
from app.engine.workload import TrainingPlanRequest, TrainingWorkload

# what the coarse pass decides
DEGREES = ("tensor", "pipeline", "context", "expert", "expert_tensor", "data")

Index = NDArray[np.intp]


def search_training_many(
    workload: TrainingWorkload,
    clusters: Sequence[Cluster],
    request: TrainingPlanRequest,
    calibration: TrainingCalibration,
) -> list[TrainingResult | Infeasible]:
    """The fastest plan on each of several clusters, in their order.

    Parameters
    ----------
    workload : TrainingWorkload
    clusters : sequence of Cluster
    request : TrainingPlanRequest
    calibration : TrainingCalibration

    Returns
    -------
    list of TrainingResult or Infeasible

    Notes
    -----
    The coarse pass tries fewer micro-batches and pipeline chunks; the second pass tries all of them at the degrees
    that won. A cluster on which nothing coarse fits is searched in full, so a refusal is never the coarse pass's.

    References
    ----------
    1. Isaev et al. 2023 (Calculon): search by exhaustion; Zheng et al. 2022 (Alpa): degrees first, schedule second.
    """
    problems = [problem_of(workload, cluster, request, calibration) for cluster in clusters]
    answers: list[TrainingResult | Infeasible | None] = [p if isinstance(p, Infeasible) else None for p in problems]
    groups: dict[Limits, list[int]] = {}
    for index, problem in enumerate(problems):
        if isinstance(problem, Problem):
            # of the domain only matters here whether the job outgrows it
            outgrown = problem.limits.accelerators > problem.limits.domain
            key = replace(problem.limits, domain=2 if outgrown else problem.limits.accelerators, coarse=True)
            groups.setdefault(key, []).append(index)
    for limits, members in groups.items():
        chosen = [problems[i] for i in members]
        for i, answer in zip(members, _sweep([p for p in chosen if isinstance(p, Problem)], limits), strict=True):
            answers[i] = answer
    return [answer for answer in answers if answer is not None]


def _sweep(problems: Sequence[Problem], limits: Limits) -> list[TrainingResult | Infeasible]:
    request = problems[0].request
    if refused := contradiction(limits, request):
        return [refused] * len(problems)
    columns = shardings_of(limits, request)
    plans, parent = plans_of(limits, request, columns)
    if not len(plans):
        return [search_problem(problem) for problem in problems]
    owner = np.repeat(np.arange(len(problems)), len(plans))
    layers = _coarse_layers(problems, columns, parent)
    first, _, best, found = _fastest(problems, concatenate([plans] * len(problems)), owner, layers)
    lucky = np.nonzero(found)[0]
    degrees = [tuple(getattr(first, name)[best[i]] for name in DEGREES) for i in lucky]
    spaces = {key: _neighbours(limits, request, key) for key in sorted(set(degrees))}
    answers = {i: _unlucky(problem) for i, problem in enumerate(problems) if not found[i]}
    if lucky.size:
        near = [spaces[key] for key in degrees]
        owner = np.repeat(lucky, [len(p) for p in near])
        refined, times, best, _ = _fastest(problems, concatenate(near), owner, None)
        for i, space in zip(lucky, near, strict=True):
            index = best[i : i + 1]
            one = StepTimes(**{f.name: getattr(times, f.name)[index] for f in fields(StepTimes)})
            answers[int(i)] = finish(problems[int(i)], refined.take(index), one, len(plans) + len(space))
    return [answers[i] for i in range(len(problems))]


def _unlucky(problem: Problem) -> TrainingResult | Infeasible:
    """Where nothing coarse fits: if not even the leanest plans do, that is the answer; otherwise search in full."""
    request = problem.request
    lean = replace(
        request,
        micro_batch_sequences=request.micro_batch_sequences or 1,
        recompute=request.recompute or "full",
    )
    answer = search_problem(replace(problem, request=lean))
    return answer if isinstance(answer, Infeasible) else search_problem(problem)


def _coarse_layers(problems: Sequence[Problem], columns: Columns, parent: Index) -> LayerTimes:
    """Layer times of every sharding on every cluster, laid out as the plans are."""
    size = columns["tensor"].size
    owner = np.repeat(np.arange(len(problems)), size)
    mixed = _mixed(problems, owner)
    shards = sharding_plans(columns, np.arange(size), float(problems[0].limits.sequence_parallel))
    times = layer_times(
        mixed.architecture,
        concatenate([shards] * len(problems)),
        mixed.job.sequence,
        mixed.job.document,
        mixed.hardware,
        mixed.coefficients,
    )
    place = (np.arange(len(problems))[:, None] * size + parent[None, :]).ravel()
    return LayerTimes(**{f.name: np.asarray(getattr(times, f.name))[place] for f in fields(LayerTimes)})


def _mixed(problems: Sequence[Problem], owner: Index) -> Problem:
    """The problems as one, with the numbers of its owner's cluster for each plan."""
    return replace(
        problems[0],
        hardware=Hardware(**_spread(Hardware, [p.hardware for p in problems], owner)),
        coefficients=Coefficients(**_spread(Coefficients, [p.coefficients for p in problems], owner)),
        formats=Formats(**_spread(Formats, [p.formats for p in problems], owner)),
    )


def _fastest(
    problems: Sequence[Problem], plans: PlanArrays, owner: Index, layers: LayerTimes | None
) -> tuple[PlanArrays, StepTimes, Index, NDArray[np.bool_]]:
    """Time plans, each on its owner's cluster; the fastest one that fits of each owner, and whether any does."""
    mixed = _mixed(problems, owner)
    plans, fits = with_recompute(mixed, plans)
    times = times_of(mixed, plans, layers)
    seconds = np.where(fits, times.total, np.inf)
    best = np.zeros(len(problems), dtype=np.intp)
    found = np.zeros(len(problems), dtype=bool)
    starts = np.nonzero(np.diff(owner, prepend=-1))[0]
    ends = np.append(starts[1:], owner.size)
    for start, end in zip(starts, ends, strict=True):
        index = start + int(np.argmin(seconds[start:end]))
        best[owner[start]], found[owner[start]] = index, np.isfinite(seconds[index])
    return plans, times, best, found


def _spread(kind: type, values: Sequence[object], owner: Index) -> dict[str, NDArray[np.float64]]:
    return {f.name: np.array([float(getattr(v, f.name)) for v in values])[owner] for f in fields(kind)}


def _neighbours(limits: Limits, request: TrainingPlanRequest, degrees: Sequence[float]) -> PlanArrays:
    """All schedules and micro-batches at the degrees of one plan, and at half and twice its expert degree."""
    tensor, pipeline, context, expert, expert_tensor, data = (int(d) for d in degrees)
    exact = replace(limits, coarse=False)
    parts = []
    for near in sorted({expert, request.expert or expert * 2, request.expert or max(expert // 2, 1)}):
        if limits.experts and limits.experts % near:
            continue
        pinned = replace(
            request,
            tensor=tensor,
            pipeline=pipeline,
            context=context,
            expert=near if limits.experts else None,
            expert_tensor=expert_tensor,
            data=data,
        )
        parts.append(plans_of(exact, pinned, shardings_of(exact, pinned))[0])
        if not limits.experts:
            break
    return concatenate(parts)
