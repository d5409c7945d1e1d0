"""Put a timed plan into the words of the outcome: bands, breakdowns, bottleneck, assumptions."""

from dataclasses import fields

from app.engine.flops import forward_flops
from app.engine.hardware import Cluster
from app.engine.interval import band_around, inverse_band
from app.engine.outcome import TrainingResult
from app.engine.training.calibration import Coefficients, TrainingCalibration
from app.engine.training.hardware_arrays import Hardware
from app.engine.training.memory import MemoryArrays
from app.engine.training.plans import PlanArrays
from app.engine.training.rollout import generation_time
from app.engine.training.setting import Setting
from app.engine.training.step import StepTimes
from app.engine.workload import TrainingWorkload

MEMORY_PARTS = ("weights", "gradients", "optimizer", "activations", "logits", "buffers", "reserve", "headroom")
# methods that train adapters beside frozen weights (Hu et al. 2021; Dettmers et al. 2023)
ADAPTER_METHODS = ("lora", "qlora")


def result_of(
    *,
    workload: TrainingWorkload,
    cluster: Cluster,
    setting: Setting,
    calibration: TrainingCalibration,
    coefficients: Coefficients,
    hardware: Hardware,
    plan: PlanArrays,
    times: StepTimes,
    memory: MemoryArrays,
    origin: str,
    considered: int,
) -> TrainingResult:
    """The result of one timed plan.

    Parameters
    ----------
    workload, cluster, setting, calibration, coefficients, hardware
        The problem.
    plan : PlanArrays, shape (1,)
    times : StepTimes, shape (1,)
    memory : MemoryArrays, shape (1,)
    origin : str
        ``pinned`` or ``searched``.
    considered : int
        Legal plans that were compared.

    Returns
    -------
    TrainingResult

    References
    ----------
    1. Chowdhery et al. 2022 (PaLM), appendix B (model FLOPs utilisation); Vovk et al. 2005 (bands).
    """
    seconds = {f.name: float(getattr(times, f.name)[0]) for f in fields(StepTimes)}
    if workload.method == "grpo" and workload.rollout is not None:
        seconds["generation"] = generation_time(workload, workload.rollout, hardware)
    step = sum(seconds.values())
    tokens = float(workload.global_batch_sequences) * workload.sequence_length
    evidence = calibration.evidence_class(setting, cluster.accelerator.id)
    low, centre, high = calibration.residuals.get(evidence, calibration.residuals["datasheet"])
    rate = band_around(tokens / step, low, high, centre)
    flops = _model_flops_per_token(workload)
    breakdown = {name: value / step for name, value in seconds.items() if value > 0.0}
    return TrainingResult(
        plan=plan.plan(0),
        plan_origin=origin,
        tokens_per_s=rate,
        step_s=inverse_band(rate, tokens),
        model_flops_utilization=rate.p50 * flops / (cluster.accelerators * float(hardware.flops_per_s)),
        model_flops_per_token=flops,
        time_breakdown=breakdown,
        memory_breakdown_bytes={name: float(getattr(memory, name)[0]) for name in MEMORY_PARTS},
        bottleneck=max(breakdown, key=lambda name: breakdown[name]),
        evidence_class=evidence,
        assumptions={
            "precision": workload.precision,
            "software_released_year": setting.year,
            "software_family": setting.family,
            "fused_attention": str(setting.fused_attention).lower(),
            "moe_routing": setting.routing,
            "matmul_share_of_isolated_kernel": float(coefficients.matmul_share),
            "attention_share_of_peak": float(coefficients.attention_share),
            "layers_recomputed_in_full": float(min(max(float(plan.recompute[0]) - 1.0, 0.0), 1.0)),
            "plans_considered": considered,
            "calibrated_on": calibration.fitted_on,
        },
    )


def _model_flops_per_token(workload: TrainingWorkload) -> float:
    """Forward and backward, without recomputation; frozen weights (adapters) need no weight gradient: 4N for 6N."""
    forward = forward_flops(workload.transformer, workload.sequence_length, mtp_layers=workload.mtp_layers)
    passes = 2.0 if workload.method in ADAPTER_METHODS else 3.0
    return passes * (forward.layer_matmuls + forward.head) + 3.0 * (forward.attention_core + forward.recurrence)
