"""The plan nearest to one that cannot run, found by asking: whatever is said to do has been computed."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from app.engine.workload import TrainingPlanRequest, TrainingWorkload

# pinned fields in the order they are given up, from what costs least to change
GIVEN_UP = (
    "recompute",
    "virtual_pipeline",
    "micro_batch_sequences",
    "sharding",
    "expert_tensor",
    "expert",
    "context",
    "data",
    "pipeline",
    "tensor",
)
# rules that another plan or a larger cluster can keep
RULES = ("memory", "divisibility", "batch", "contradiction")
# a cluster is doubled at most this often
DOUBLINGS = 12


def nearest_plan(
    workload: TrainingWorkload,
    cluster: Cluster,
    request: TrainingPlanRequest,
    calibration: TrainingCalibration,
) -> dict[str, int | str]:
    """What to change of a request that cannot run so that it can.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster
    request : TrainingPlanRequest
    calibration : TrainingCalibration

    Returns
    -------
    mapping of str to int or str
        Plan fields and their values, and ``accelerators`` where as many as there are do not do; empty where nothing
        tried does. With these changes the request has a plan.

    Notes
    -----
    One field is given up, then several, on the cluster as it is; then the cluster is doubled.

    References
    ----------
    1. Chinneck, "Feasibility and Infeasibility in Optimization", 2008 (nearest feasible by relaxing constraints).
    """
    for doubling in range(DOUBLINGS + 1):
        count = cluster.accelerators * 2**doubling
        for freed in _freed(request):
            asked = replace(request, **dict.fromkeys(freed))
            found = search_training(workload, replace(cluster, accelerators=count), asked, calibration)
            if isinstance(found, TrainingResult):
                changes = {name: getattr(found.plan, name) for name in freed}
                changes = {name: value for name, value in changes.items() if value != getattr(request, name)}
                return changes | ({"accelerators": count} if doubling else {})
    return {}


def _freed(request: TrainingPlanRequest) -> Iterator[tuple[str, ...]]:
    pinned = [name for name in GIVEN_UP if getattr(request, name) is not None]
    yield ()
    yield from ((name,) for name in pinned)
    yield from (tuple(pinned[:several]) for several in range(2, len(pinned) + 1))


def with_nearest(
    refused: Infeasible,
    workload: TrainingWorkload,
    cluster: Cluster,
    request: TrainingPlanRequest,
    calibration: TrainingCalibration,
) -> Infeasible:
    """A refusal with the nearest plan in place of an estimate of it.

    Parameters
    ----------
    refused : Infeasible
        Of this request; what lacks a number format stays as it is.
    workload : TrainingWorkload
    cluster : Cluster
    request : TrainingPlanRequest
    calibration : TrainingCalibration

    Returns
    -------
    Infeasible

    References
    ----------
    1. Chinneck 2008.
    """
    if refused.rule not in RULES:
        return refused
    # what the violated rule itself suggests is nearest, where it runs
    suggested: dict[str, Any] = dict(refused.nearest)
    is_plan = bool(suggested) and set(suggested) <= set(GIVEN_UP)
    asked = replace(request, **suggested) if is_plan else request
    if is_plan and isinstance(search_training(workload, cluster, asked, calibration), TrainingResult):
        return refused
    return replace(refused, nearest=nearest_plan(workload, cluster, request, calibration))
