"""Why a training plan is refused, with the numbers and the nearest plan that would do."""

import numpy as np

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible
from app.engine.training.memory import MemoryArrays
from app.engine.training.plans import PlanArrays
from app.engine.training.space import SLOTS_BEYOND_DEPTH, Limits
from app.engine.workload import TrainingPlanRequest, TrainingWorkload

GIB = 2.0**30


def no_peak(workload: TrainingWorkload, cluster: Cluster) -> Infeasible:
    """The accelerator has no unit for the precision.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster

    Returns
    -------
    Infeasible

    References
    ----------
    1. Vendor datasheets (dense peaks by format).
    """
    part = cluster.accelerator
    known = [f for f in ("bf16", "fp16", "fp8", "int8", "fp4") if getattr(part.dense_peaks, f) is not None]
    return Infeasible(
        rule="no_peak",
        message=f"{part.name} has no known dense peak for {workload.precision}; it has {', '.join(known) or 'none'}.",
        numbers={},
        nearest={"precision": known[0]} if known else {},
    )


def contradiction(limits: Limits, request: TrainingPlanRequest) -> Infeasible | None:
    """A pinned degree that the architecture cannot be divided by, whatever the cluster.

    Parameters
    ----------
    limits : Limits
    request : TrainingPlanRequest

    Returns
    -------
    Infeasible or None

    References
    ----------
    1. Narayanan et al. 2021, section 2 (what each degree divides); Megatron-Core argument checks.
    """
    for name, whole, what in (
        ("tensor", limits.heads, "attention heads"),
        ("expert", limits.experts, "experts"),
    ):
        degree = getattr(request, name) or 1
        if degree > 1 and name == "expert" and not whole:
            message = f"An expert degree of {degree} is pinned, but the model has no experts."
            return _refuse("contradiction", message, {"expert": degree}, {"expert": 1})
        if whole and whole % degree:
            nearest = max(d for d in range(1, degree) if whole % d == 0)
            message = f"The pinned {name} degree {degree} does not divide {whole} {what}; {nearest} does."
            return _refuse("divisibility", message, {name: degree, what.replace(" ", "_"): whole}, {name: nearest})
    if (request.pipeline or 1) > limits.depth:
        message = f"{request.pipeline} pipeline stages are pinned, the model has {limits.depth} layers."
        return _refuse("divisibility", message, {"layers": limits.depth}, {"pipeline": limits.depth})
    return _without_effect(limits, request)


def _without_effect(limits: Limits, request: TrainingPlanRequest) -> Infeasible | None:
    """Degrees that nothing of the job can be cut by."""
    stages, chunks, context = request.pipeline or 1, request.virtual_pipeline or 1, request.context or 1
    if (request.expert_tensor or 1) > 1 and not limits.experts:
        message = f"An expert-tensor degree of {request.expert_tensor} is pinned, but the model has no experts."
        return _refuse("contradiction", message, {"expert_tensor": request.expert_tensor or 1}, {"expert_tensor": 1})
    if chunks > 1 and stages * chunks > limits.depth + SLOTS_BEYOND_DEPTH:
        most = max((limits.depth + SLOTS_BEYOND_DEPTH) // stages, 1)
        message = (
            f"{stages} stages of {chunks} chunks are pinned, the model has {limits.depth} layers; {most} chunks do."
        )
        return _refuse("divisibility", message, {"layers": limits.depth}, {"virtual_pipeline": most})
    if limits.sequence % context:
        nearest = max(d for d in range(1, context) if limits.sequence % d == 0)
        message = f"The pinned context degree {context} does not divide {limits.sequence} tokens; {nearest} does."
        return _refuse("divisibility", message, {"sequence_length": limits.sequence}, {"context": nearest})
    return None


def no_legal_plan(limits: Limits, request: TrainingPlanRequest) -> Infeasible:
    """No combination of degrees divides the accelerators, heads, experts and batch.

    Parameters
    ----------
    limits : Limits
    request : TrainingPlanRequest

    Returns
    -------
    Infeasible

    References
    ----------
    1. Narayanan et al. 2021, section 3 (divisibility of the parallel dimensions).
    """
    n = limits.accelerators
    degrees = {name: getattr(request, name) or 1 for name in ("tensor", "pipeline", "context", "data")}
    product = int(np.prod(list(degrees.values())))
    micro = request.micro_batch_sequences or 1
    if n % product or (request.data and product != n and all(getattr(request, k) for k in degrees)):
        message = f"The pinned degrees multiply to {product}, which does not make up {n} accelerators."
        return _refuse("divisibility", message, {"product": product, "accelerators": n}, {"accelerators": product})
    replicas = request.data or max(n // product, 1)
    if replicas * micro > limits.global_batch:
        message = (
            f"{replicas} data-parallel ranks with micro-batches of {micro} need a global batch of at least "
            f"{replicas * micro} sequences, the job has {limits.global_batch}."
        )
        return _refuse(
            "batch",
            message,
            {"data": replicas, "global_batch_sequences": limits.global_batch},
            {"global_batch_sequences": replicas * micro},
        )
    expert = (request.expert or 1) * (request.expert_tensor or 1)
    message = (
        f"No plan divides {n} accelerators, {limits.heads} attention heads, {limits.experts} experts and a global "
        f"batch of {limits.global_batch} sequences under the pinned fields (expert degree {expert})."
    )
    return _refuse("divisibility", message, {"accelerators": n}, {})


def _refuse(rule: str, message: str, numbers: dict[str, float], nearest: dict[str, float | int | str]) -> Infeasible:
    return Infeasible(rule=rule, message=message, numbers=numbers, nearest=nearest)


def out_of_memory(plans: PlanArrays, memory: MemoryArrays, cluster: Cluster) -> Infeasible:
    """No legal plan fits: says what the leanest one lacks and about how many accelerators would hold it.

    Parameters
    ----------
    plans : PlanArrays
    memory : MemoryArrays
    cluster : Cluster

    Returns
    -------
    Infeasible

    References
    ----------
    1. Rajbhandari et al. 2020, section 3; Korthikanti et al. 2022.
    """
    index = int(np.argmax(memory.headroom))
    missing = float(-memory.headroom[index])
    used, available = float(memory.used[index]), float(memory.available[index])
    # everything but the reserve divides over more accelerators at best, so this is a lower bound
    divisible = used - float(memory.reserve[index])
    room = available - float(memory.reserve[index])
    factor = int(2 ** np.ceil(np.log2(max(divisible / room, 1.0 + 1e-9))))
    more = cluster.accelerators * factor
    plan = plans.plan(index)
    message = (
        f"The leanest plan (tensor {plan.tensor}, pipeline {plan.pipeline}, context {plan.context}, sharding "
        f"{plan.sharding}, recompute {plan.recompute}) needs {used / GIB:.1f} GiB per {cluster.accelerator.name}, "
        f"{available / GIB:.1f} GiB are usable: {missing / GIB:.1f} GiB are missing."
    )
    return Infeasible(
        rule="memory",
        message=message,
        numbers={"missing_bytes": missing, "needed_bytes": used, "available_bytes": available},
        nearest={"accelerators": more, "sharding": "zero3", "recompute": "full"},
    )
