"""The plan a row ran: stated fields pinned, others searched, inferred ones given up where they cannot have been."""

from dataclasses import replace

from app.engine.outcome import Infeasible
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.problem import Problem, problem_of
from app.engine.training.search import Ranking, rank_plans
from app.engine.workload import TrainingPlanRequest
from benchmarks.training.rows import Row

# a run that is known to have run is timed even where our memory model says it lacks up to this share
MEMORY_DOUBT = 1.5


def rank_row(row: Row, calibration: TrainingCalibration) -> tuple[Problem, Ranking, str] | Infeasible:
    """Problem, timed plans and a note on what had to be given up; or why there is no plan."""
    first: Infeasible | None = None
    for request, note in (
        (row.request, ""),
        (replace(row.request, sharding=None), "sharding was inferred, and given up"),
        (replace(row.request, sharding=None, micro_batch_sequences=None), "micro-batch and sharding given up"),
        (
            replace(row.request, sharding=None, micro_batch_sequences=None, tensor=None, expert=None),
            "tensor and expert degree, micro-batch and sharding given up",
        ),
        (TrainingPlanRequest(), "the stated layout contradicts the counts, and was given up"),
    ):
        problem = problem_of(row.workload, row.cluster, request, calibration)
        ranking = problem if isinstance(problem, Infeasible) else rank_plans(problem)
        if not isinstance(ranking, Infeasible) and not isinstance(problem, Infeasible):
            return problem, ranking, note
        first = first or (ranking if isinstance(ranking, Infeasible) else None)
        if first is None or first.rule == "no_peak":
            break
        # what lacks memory only with what was stated is timed below; a layout that cannot be is given up step by step
        if first.rule == "memory" and request.sharding is None:
            break
    if first is not None and first.rule == "memory":
        part = row.cluster.accelerator
        roomy = replace(row.cluster, accelerator=replace(part, memory_bytes=part.memory_bytes * MEMORY_DOUBT))
        problem = problem_of(row.workload, roomy, replace(row.request, sharding=None), calibration)
        ranking = problem if isinstance(problem, Infeasible) else rank_plans(problem)
        if not isinstance(ranking, Infeasible) and not isinstance(problem, Infeasible):
            return problem, ranking, f"our memory model refuses it: {first.message}"
    if first is None:
        raise AssertionError("a row without a plan has a reason")
    return first
