"""One workload on one cluster, reduced to numbers, and what those numbers say of any plan: seconds and bytes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible
from app.engine.training.architecture import Architecture, architecture_of, column
from app.engine.training.calibration import Coefficients, TrainingCalibration
from app.engine.training.hardware_arrays import Hardware, hardware_of
from app.engine.training.job import formats_of, job_of
from app.engine.training.layer import LayerTimes, layer_times
from app.engine.training.memory import Formats, MemoryArrays, memory_of
from app.engine.training.plans import PlanArrays
from app.engine.training.refusal import no_peak
from app.engine.training.setting import Setting, setting_of
from app.engine.training.space import WIDE_TENSOR_DEGREES, Limits
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
    return problems_of(workload, [cluster], request, calibration)[0]


def problems_of(
    workload: TrainingWorkload,
    clusters: Sequence[Cluster],
    request: TrainingPlanRequest,
    calibration: TrainingCalibration,
) -> list[Problem | Infeasible]:
    """Reduce a workload on several clusters to numbers; what depends on the workload alone is reduced once.

    Parameters
    ----------
    workload : TrainingWorkload
    clusters : sequence of Cluster
    request : TrainingPlanRequest
    calibration : TrainingCalibration

    Returns
    -------
    list of Problem or Infeasible

    References
    ----------
    1. Narayanan et al. 2021.
    """
    architecture = architecture_of(workload.transformer, workload.mtp_layers)
    columns, job = column(architecture), job_of(workload)
    mixers = [group.mixer for group in workload.transformer.groups]
    heads = [m.heads for m in mixers if isinstance(m, SoftmaxAttention | LatentAttention)] or [0]
    pairs = [m.kv_heads for m in mixers if isinstance(m, SoftmaxAttention)] or [0]
    experts = [int(s) for s, e in zip(architecture.stored, architecture.expert, strict=True) if e > 0.0] or [0]
    divisors = (int(np.gcd.reduce(heads)), int(np.gcd.reduce(pairs)), experts[0])
    formats: dict[str, Formats] = {}
    problems: list[Problem | Infeasible] = []
    for cluster in clusters:
        hardware = hardware_of(cluster, workload.precision)
        if hardware is None:
            problems.append(no_peak(workload, cluster))
            continue
        setting = setting_of(workload, cluster.accelerator)
        if setting.family not in formats:
            formats[setting.family] = formats_of(workload, architecture, setting.family)
        problems.append(
            Problem(
                workload=workload,
                cluster=cluster,
                request=request,
                architecture=columns,
                hardware=hardware,
                job=job,
                formats=formats[setting.family],
                setting=setting,
                coefficients=calibration.coefficients(setting),
                limits=_limits(workload, architecture, divisors, hardware, setting),
                calibration=calibration,
            )
        )
    return problems


def _limits(
    workload: TrainingWorkload,
    architecture: Architecture,
    divisors: tuple[int, int, int],
    hardware: Hardware,
    setting: Setting,
) -> Limits:
    heads, key_value_heads, experts = divisors
    return Limits(
        accelerators=int(hardware.accelerators),
        depth=int(architecture.depth),
        heads=heads,
        experts=experts,
        global_batch=workload.global_batch_sequences,
        sequence=workload.sequence_length,
        key_value_heads=key_value_heads,
        widest_tensor=next((t for t in reversed(WIDE_TENSOR_DEGREES) if t <= hardware.domain), 0),
        sequence_parallel=setting.sequence_parallel,
        context_parallel=setting.context_parallel,
        interleaved=setting.family not in ("deepspeed", "neuron"),
        pipelined=setting.family not in ("xla", "xla_gpu"),
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
