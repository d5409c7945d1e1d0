"""Parts of a training run as they are stored and shown."""

from dataclasses import asdict
from typing import Any

from app.engine.outcome import Band, TrainingResult
from app.estimates.hardware import Hardware
from app.estimates.job_schemas import TrainingJob
from app.estimates.run_level import RunLevel


def performance_json(job: TrainingJob, result: TrainingResult, level: RunLevel, each: int) -> dict[str, Any]:
    """Performance of a run on ``each`` accelerators (API contract B)."""
    outcome = level.outcome
    rate = band_json(result.tokens_per_s)
    return {
        "tokens_per_second": rate,
        "tokens_per_second_per_accelerator": {q: v / each for q, v in rate.items()},
        "model_flops_utilization": result.model_flops_utilization,
        "step_seconds": band_json(result.step_s),
        "duration_hours": band_json(outcome.duration_hours),
        "run_hours": band_json(outcome.run_hours),
        "goodput": outcome.goodput,
        "accelerator_utilization": outcome.accelerator_utilization,
        "time_breakdown": level.breakdown(result),
        "memory_breakdown_bytes": dict(result.memory_breakdown_bytes),
        "bottleneck": result.bottleneck,
        "plan_origin": result.plan_origin,
        "interval_basis": "caller" if job.efficiency_override else result.evidence_class,
        "tokens": level.tokens,
        "iterations_per_week": outcome.iterations_per_week,
        "interruptions": outcome.interruptions,
    }


def data_json(level: RunLevel) -> dict[str, Any]:
    """Whether data keeps up, and what it takes."""
    data = level.outcome.data
    return {
        "stall_share": data.share,
        "limited_by": data.limited_by,
        "required_read_bytes_per_s": data.required_read_bytes_per_s,
        "required_cores": data.required_cores,
    }


def checkpoint_json(level: RunLevel) -> dict[str, Any]:
    """When and how large checkpoints are."""
    outcome = level.outcome
    return {
        "interval_s": outcome.checkpoint_interval_s,
        "bytes": outcome.checkpoint_bytes,
        "write_s": outcome.checkpoint_write_s,
        "required_write_bytes_per_s": outcome.required_storage_write_bytes_per_s,
    }


def fabric_json(hardware: Hardware) -> dict[str, Any] | None:
    """How a configuration names its network."""
    fabric = hardware.fabric
    return None if fabric is None else asdict(fabric)


def band_json(band: Band) -> dict[str, float]:
    """A band as an answer shows it."""
    return {"p10": band.p10, "p50": band.p50, "p90": band.p90}
