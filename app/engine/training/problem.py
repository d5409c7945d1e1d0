"""One workload on one cluster, reduced to numbers, and what those numbers say of any plan: seconds and bytes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible
from app.engine.training.architecture import Architecture, architecture_of, column
from app.engine.training.calibration import Coefficients, TrainingCalibration
from app.engine.training.hardware_arrays import Hardware, hardware_of
from app.engine.training.job import formats_of, job_of
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.memory import Formats, MemoryArrays, memory_of
from app.engine.training.plans import RECOMPUTES, PlanArrays
from app.engine.training.refusal import no_peak
from app.engine.training.setting import Setting, setting_of
from app.engine.training.space import Limits
from app.engine.training.step import Job, StepTimes, step_times
from app.engine.transformer import LatentAttention, SoftmaxAttention
from app.engine.workload import TrainingPlanRequest, TrainingWorkload


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One workload on one cluster, reduced to numbers.

    References
    ----------
    1. Narayanan et al. 2021.
    """

    workload: TrainingWorkload
    cluster: Cluster
    request: TrainingPlanRequest
    architecture: Architecture
    hardware: Hardware
    job: Job
    formats: Formats
    setting: Setting
    coefficients: Coefficients
    limits: Limits
    calibration: TrainingCalibration


def problem_of(
    workload: TrainingWorkload, cluster: Cluster, request: TrainingPlanRequest, calibration: TrainingCalibration
) -> Problem | Infeasible:
    """Reduce a workload on a cluster to numbers.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster
    request : TrainingPlanRequest
    calibration : TrainingCalibration

    Returns
    -------
    Problem or Infeasible

    References
    ----------
    1. Narayanan et al. 2021.
    """
    hardware = hardware_of(cluster, workload.precision)
    if hardware is None:
        return no_peak(workload, cluster)
    architecture = architecture_of(workload.transformer, workload.mtp_layers)
    setting = setting_of(workload, cluster.accelerator)
    mixers = [group.mixer for group in workload.transformer.groups]
    heads = [m.heads for m in mixers if isinstance(m, SoftmaxAttention | LatentAttention)] or [0]
    experts = [int(s) for s, e in zip(architecture.stored, architecture.expert, strict=True) if e > 0.0] or [0]
    job = job_of(workload)
    limits = Limits(
        accelerators=cluster.accelerators,
        depth=int(architecture.depth),
        heads=int(np.gcd.reduce(heads)),
        experts=experts[0],
        global_batch=workload.global_batch_sequences,
        sequence=workload.sequence_length,
        domain=int(hardware.domain),
        sequence_parallel=setting.sequence_parallel,
        context_parallel=setting.context_parallel,
        adapters=job.weight_gradients == 0.0,
        interleaved=setting.family not in ("deepspeed", "neuron"),
        pipelined=setting.family not in ("xla", "xla_gpu"),
    )
    return Problem(
        workload=workload,
        cluster=cluster,
        request=request,
        architecture=column(architecture),
        hardware=hardware,
        job=job,
        formats=formats_of(workload, architecture, setting.family),
        setting=setting,
        coefficients=calibration.coefficients(setting),
        limits=limits,
        calibration=calibration,
    )


def times_of(problem: Problem, plans: PlanArrays, layers: LayerTimes | None = None) -> StepTimes:
    """Step times of plans of a problem.

    Parameters
    ----------
    problem : Problem
    plans : PlanArrays, shape (plans,)
    layers : LayerTimes, optional
        Layer times of the same plans, where they are known.

    Returns
    -------
    StepTimes, shape (plans,)

    References
    ----------
    1. Narayanan et al. 2021; Isaev et al. 2023.
    """
    pr = problem
    if layers is None:
        layers = layer_times(pr.architecture, plans, pr.job.sequence, pr.job.document, pr.hardware, pr.coefficients)
    return step_times(pr.architecture, plans, layers, pr.job, pr.hardware, pr.coefficients, pr.formats)


def memory_arrays(problem: Problem, plans: PlanArrays) -> MemoryArrays:
    """Memory of plans of a problem.

    Parameters
    ----------
    problem : Problem
    plans : PlanArrays

    Returns
    -------
    MemoryArrays

    References
    ----------
    1. Korthikanti et al. 2022; Rajbhandari et al. 2020.
    """
    pr = problem
    fused = pr.coefficients.fused_attention
    return memory_of(pr.architecture, plans, pr.job.sequence, pr.job.global_batch, pr.hardware, pr.formats, fused)


def with_recompute(problem: Problem, plans: PlanArrays) -> tuple[PlanArrays, NDArray[np.bool_]]:
    """The least recomputation that lets each plan fit, and whether it fits at all.

    Parameters
    ----------
    problem : Problem
    plans : PlanArrays, shape (plans,)

    Returns
    -------
    (PlanArrays, array of bool)

    References
    ----------
    1. Korthikanti et al. 2022, section 5: selective before full; as few layers in full as needed.
    """
    pinned = problem.request.recompute
    if pinned:
        fixed = replace(plans, recompute=np.full_like(plans.tensor, RECOMPUTES.index(pinned)))
        return fixed, memory_arrays(problem, fixed).headroom >= 0.0
    room = [
        memory_arrays(problem, replace(plans, recompute=np.full_like(plans.tensor, level))).headroom
        for level in (0.0, 1.0, 2.0)
    ]
    # between selective and full, as many layers as are needed: activations shrink in proportion
    # and a billionth more, so that rounding leaves no plan a byte short
    share = np.clip(-room[1] / np.maximum(room[2] - room[1], 1.0) * (1.0 + 1.0e-9), 0.0, 1.0)
    chosen = np.where(room[0] >= 0.0, 0.0, np.where(room[1] >= 0.0, 1.0, 1.0 + share))
    fitting = np.maximum(np.maximum(room[0], room[1]), room[2]) >= 0.0
    return replace(plans, recompute=np.where(fitting, chosen, 2.0)), fitting
