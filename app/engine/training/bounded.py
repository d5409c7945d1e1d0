"""The fastest plan on each of several machines: a bound for every plan, the exact time only where it can win."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.engine.outcome import Infeasible
from app.engine.training.architecture import ATTENTION_FIELDS, OPERATOR_FIELDS
from app.engine.training.calibration import Coefficients
from app.engine.training.hardware_arrays import Hardware
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.memory import MemoryArrays
from app.engine.training.pipeline import stage_slots
from app.engine.training.plans import PlanArrays
from app.engine.training.problem import Problem, memory_arrays, times_of
from app.engine.training.recompute import Recomputation, recomputation_of
from app.engine.training.refusal import contradiction, no_legal_plan, out_of_memory
from app.engine.training.space import Space, sharding_plans, space_of
from app.engine.training.step import StepTimes, head_time, micro_batch_terms, micro_batches

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Index = NDArray[np.intp]

# plans of lowest bound that are timed first, to have a time the others must beat; fewer plans in all than FEW are timed
# outright
FIRST, FEW = 32, 2048
HARDWARE_FIELDS = tuple(f.name for f in fields(Hardware))
COEFFICIENT_FIELDS = tuple(f.name for f in fields(Coefficients))
# bounds are taken in single precision, whose errors stay below this share of them (a few hundred roundings of 6e-8)
ROUNDING = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class Fastest:
    """The fastest plan of one problem.

    Parameters
    ----------
    plan : PlanArrays, shape (1,)
    times : StepTimes, shape (1,) [s]
    memory : MemoryArrays, shape (1,) [byte]
    considered : int
        Legal plans it was chosen from.

    References
    ----------
    1. Isaev et al. 2023.
    """

    plan: PlanArrays
    times: StepTimes
    memory: MemoryArrays
    considered: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """Plans of a space that fit somewhere, their shardings, and what they recompute on which machine."""

    problems: Sequence[Problem]
    plans: PlanArrays
    place: Index
    shards: PlanArrays
    level: Array
    fits: NDArray[np.bool_]


def fastest_of(problems: Sequence[Problem]) -> list[Fastest | Infeasible]:
    """The fastest plan that fits of each problem, or why there is none.

    Parameters
    ----------
    problems : sequence of Problem
        Of one workload and one request, on different machines.

    Returns
    -------
    list of Fastest or Infeasible

    Notes
    -----
    The answer is that of timing every plan: a plan is left out only where a lower bound of its time is above the time
    of another plan that fits. A stack without pipelines is given them where nothing fits otherwise.

    References
    ----------
    1. Land and Doig, "An Automatic Method of Solving Discrete Programming Problems", 1960 (branch and bound).
    2. Isaev et al. 2023 (Calculon): search by exhaustion.
    """
    answers: dict[int, Fastest | Infeasible] = {}
    groups: dict[object, list[int]] = {}
    for index, p in enumerate(problems):
        # hybrid sharding counts the members of the domain, so that memory depends on the machine
        domain = p.hardware.domain if p.request.sharding == "hybrid" else None
        groups.setdefault((p.limits, p.formats, p.setting.fused_attention, domain), []).append(index)
    for members in groups.values():
        answers |= dict(zip(members, _group([problems[i] for i in members]), strict=True))
    again = [i for i, p in enumerate(problems) if isinstance(answers[i], Infeasible) and not p.limits.pipelined]
    if again:
        piped = [replace(problems[i], limits=replace(problems[i].limits, pipelined=True)) for i in again]
        answers |= dict(zip(again, fastest_of(piped), strict=True))
    return [answers[i] for i in range(len(problems))]


def _group(problems: Sequence[Problem]) -> list[Fastest | Infeasible]:
    limits, request = problems[0].limits, problems[0].request
    if refused := contradiction(limits, request):
        return [refused] * len(problems)
    space = space_of(limits, request)
    if not len(space.plans):
        return [no_legal_plan(limits, request)] * len(problems)
    need = recomputation_of(problems, space.plans)
    answers: list[Fastest | Infeasible | None] = [None] * len(problems)
    able = []
    fitting = np.asarray(need.fits.any(axis=1))
    for i, some in enumerate(fitting[need.memory]):
        if some:
            able.append(i)
        else:
            answers[i] = _lacking(problems[i], space, need, int(need.memory[i]))
    if able:
        rows = need.memory[able]
        found = _search([problems[i] for i in able], space, need.level[rows], need.fits[rows])
        for i, one in zip(able, found, strict=True):
            answers[i] = one
    return [answer for answer in answers if answer is not None]


def _lacking(problem: Problem, space: Space, need: Recomputation, memory: int) -> Infeasible:
    leanest = np.array([int(np.argmax(need.headroom[memory]))])
    plan = replace(space.plans.take(leanest), recompute=need.level[memory, leanest])
    return out_of_memory(plan, memory_arrays(problem, plan), problem.cluster)


def _search(problems: Sequence[Problem], space: Space, level: Array, fits: NDArray[np.bool_]) -> list[Fastest]:
    some = np.nonzero(fits.any(axis=0))[0]
    used, place = np.unique(space.parent[some], return_inverse=True)
    candidates = _Candidates(
        problems=problems,
        plans=space.plans.take(some),
        place=place,
        shards=sharding_plans(space.shardings, used, float(space.plans.sequence_parallel.max())),
        level=level[:, some],
        fits=fits[:, some],
    )
    mask = candidates.fits
    if mask.sum() > FEW and mask.shape[1] > FIRST:
        mask = _promising(candidates)
    owner, index = np.nonzero(mask)
    plans, times = _exact(candidates, owner, index)
    winners = _first_of_each(owner, times.total)
    best, mixed = plans.take(winners), _mixed(problems, owner[winners])
    memory = memory_arrays(mixed, best)
    return [
        Fastest(
            plan=best.take(np.array([i])),
            times=StepTimes(**{f.name: getattr(times, f.name)[w : w + 1] for f in fields(StepTimes)}),
            memory=MemoryArrays(**{f.name: getattr(memory, f.name)[i : i + 1] for f in fields(MemoryArrays)}),
            considered=len(space.plans),
        )
        for i, w in enumerate(winners)
    ]


def _promising(candidates: _Candidates) -> NDArray[np.bool_]:
    """Plans whose bound is no higher than the time of the best of those with the lowest bounds."""
    bound = np.where(candidates.fits, _bounds(candidates), np.inf)
    lowest = np.argpartition(bound, FIRST, axis=1)[:, :FIRST]
    owner, column = np.nonzero(np.take_along_axis(candidates.fits, lowest, axis=1))
    _, times = _exact(candidates, owner, lowest[owner, column])
    total = times.total
    beaten = total[_first_of_each(owner, total)]
    return np.asarray(candidates.fits & (bound <= beaten[:, None] * (1.0 + ROUNDING)))


def _first_of_each(owner: Index, seconds: Array) -> Index:
    """Index of the least time of each owner, the first of equals."""
    order = np.lexsort((seconds, owner))
    return order[np.nonzero(np.diff(owner[order], prepend=-1))[0]]


def _bounds(candidates: _Candidates) -> Single:
    """Lower bounds of step times: computation, bubble and the fullest stage, without what no layer's time tells."""
    wide, p = _side_by_side(candidates.problems), candidates.plans
    a, job, hw, c = wide.architecture, wide.job, wide.hardware, wide.coefficients
    shards = PlanArrays(**_single(candidates.shards))
    layers = layer_times(a, shards, job.sequence, job.document, hw, c)
    levels: Any = np.array([0.0, 1.0, 2.0], dtype=np.float32).reshape(3, 1, 1)
    terms = micro_batch_terms(a, replace(shards, recompute=levels), layers, job, hw, c)
    stack = np.asarray(sum(terms.values()))
    work = stack - terms["host"]
    place, level = candidates.place, candidates.level.astype(np.float32)
    # work grows in proportion to the layers recomputed in full; launches hidden behind it only make that grow less
    more = (work[2] - work[1])[:, place] * np.maximum(level - 1.0, 0.0)
    some = np.maximum(stack[1][:, place], work[1][:, place] + more)
    every = np.where(level > 0.0, some, stack[0][:, place])
    head = np.broadcast_to(head_time(layers, job), stack.shape[1:])[:, place]
    batches, fill = micro_batches(p, job), (p.pipeline - 1.0) / p.virtual / p.pipeline
    slots, odd = stage_slots(a.depth, p.pipeline, p.virtual)
    bound = every * (batches * slots / a.depth + fill).astype(np.float32)
    bound += head * (batches * (1.0 - odd) + fill).astype(np.float32)
    doublings = np.maximum(np.log2(candidates.problems[0].limits.accelerators / 8.0), 0.0)
    return np.asarray(c.step_fixed_s + (1.0 + c.scale_loss * float(doublings)) * bound, dtype=np.float32)


def _exact(candidates: _Candidates, owner: Index, index: Index) -> tuple[PlanArrays, StepTimes]:
    """Chosen plans, each timed on its owner's machine; every sharding of a machine once."""
    many = len(candidates.shards)
    pairs, back = np.unique(owner * many + candidates.place[index], return_inverse=True)
    mixed, shards = _mixed(candidates.problems, pairs // many), candidates.shards.take(pairs % many)
    job = mixed.job
    unique = layer_times(mixed.architecture, shards, job.sequence, job.document, mixed.hardware, mixed.coefficients)
    layers = LayerTimes(**{f.name: np.asarray(getattr(unique, f.name))[back] for f in fields(LayerTimes)})
    plans = replace(candidates.plans.take(index), recompute=candidates.level[owner, index])
    return plans, times_of(_mixed(candidates.problems, owner), plans, layers)


def _side_by_side(problems: Sequence[Problem]) -> Problem:
    """The problems as one whose machines are an axis before the plans, in single precision."""
    a = problems[0].architecture
    deeper = {name: getattr(a, name)[..., None].astype(np.float32) for name in OPERATOR_FIELDS + ATTENTION_FIELDS}
    mixed = _mixed(problems, np.arange(len(problems))[:, None])
    return replace(
        mixed,
        architecture=replace(a, **deeper),
        hardware=Hardware(**_single(mixed.hardware)),
        coefficients=Coefficients(**_single(mixed.coefficients)),
    )


def _single(numbers: PlanArrays | Hardware | Coefficients) -> dict[str, Any]:
    values = ((f.name, getattr(numbers, f.name)) for f in fields(numbers))
    return {name: v if isinstance(v, float | int) else v.astype(np.float32) for name, v in values}


def _mixed(problems: Sequence[Problem], owner: Index) -> Problem:
    """The problems as one, with the numbers of its owner's machine for each plan."""
    if len(problems) == 1:
        return problems[0]
    return replace(
        problems[0],
        hardware=Hardware(**_spread(HARDWARE_FIELDS, [p.hardware for p in problems], owner)),
        coefficients=Coefficients(**_spread(COEFFICIENT_FIELDS, [p.coefficients for p in problems], owner)),
    )


def _spread(names: Sequence[str], values: Sequence[object], owner: Index) -> dict[str, Any]:
    """Each number as its owner has it; one that all share stays one."""
    table = [[float(getattr(value, name)) for value in values] for name in names]
    differing = [i for i, row in enumerate(table) if row.count(row[0]) < len(row)]
    rows = np.array([table[i] for i in differing], dtype=np.float64)[:, owner] if differing else ()
    found: dict[str, Any] = {name: row[0] for name, row in zip(names, table, strict=True)}
    return found | {names[i]: row for i, row in zip(differing, rows, strict=True)}
