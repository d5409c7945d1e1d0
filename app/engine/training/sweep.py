"""One workload on many clusters at once."""

from collections.abc import Sequence

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.bounded import fastest_of
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.problem import Problem, problems_of
from app.engine.training.search import finish
from app.engine.workload import TrainingPlanRequest, TrainingWorkload


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
        Each what :func:`app.engine.training.search.search_training` gives for its cluster.

    References
    ----------
    1. Isaev et al. 2023 (Calculon): search by exhaustion; Zheng et al. 2022 (Alpa): degrees first, schedule second.
    """
    problems = problems_of(workload, clusters, request, calibration)
    posed = [p for p in problems if isinstance(p, Problem)]
    found = iter(zip(posed, fastest_of(posed), strict=True))
    return [finish(*next(found)) if isinstance(p, Problem) else p for p in problems]
