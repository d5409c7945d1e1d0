"""Specifications as the catalog holds them, with their sources."""

from collections.abc import Mapping
from typing import Any

from app.catalog.snapshot import AcceleratorEntry, Snapshot
from app.claims.errors import missing, refused
from app.claims.metrics import METRICS, Metric
from app.claims.prediction import exactly
from app.claims.readings import Reading, Side
from app.engine.precision import FORMATS
from app.estimates.job_schemas import InferenceJob, TrainingJob
from app.estimates.schemas import Supply


def memory_rows(snapshot: Snapshot, supply: Supply | None) -> tuple[Mapping[str, Any], ...]:
    """Catalog rows of the memory a job has to fit."""
    names = supply.accelerators or [] if supply is not None else []
    found = [snapshot.accelerators[name] for name in names if name in snapshot.accelerators]
    return tuple(
        _row(entry, METRICS["memory_bytes"], "memory_bytes", entry.spec.memory_bytes) for entry in found if entry.spec
    )


def _row(entry: AcceleratorEntry, metric: Metric, field_name: str, value: float | None) -> Mapping[str, Any]:
    return {
        "kind": "catalog",
        "accelerator": entry.id,
        "field": field_name,
        "value": value,
        "unit": metric.unit,
        "confidence": entry.confidence,
        "sources": list(entry.sources),
    }


def entry_of(snapshot: Snapshot, side: Side) -> AcceleratorEntry:
    """The one accelerator a specification is asked of."""
    supply = side.supply
    names = supply.accelerators if supply is not None else None
    if not names or len(names) != 1:
        raise missing(
            f"{side.supply_at}/accelerators",
            "accelerator",
            "A specification belongs to one part: name exactly one accelerator in the supply.",
        )
    entry = snapshot.accelerators.get(names[0])
    if entry is None:
        raise refused(
            f"{side.supply_at}/accelerators/0", "unknown_accelerator", f"The catalog holds no accelerator {names[0]!r}."
        )
    return entry


def asked_precision(side: Side, precision: str | None) -> str:
    """The number format a peak is asked for."""
    job = side.job
    chosen = precision or (job.precision if isinstance(job, TrainingJob) else None)
    if isinstance(job, InferenceJob) and precision is None:
        chosen = job.precision.weights
    return "bf16" if chosen in (None, "auto") else str(chosen)


def specification_value(entry: AcceleratorEntry, metric: Metric, precision: str) -> float | None:
    """A specification from the catalog row; None where no source states it."""
    spec = entry.spec
    if spec is None:
        return None
    if metric.id != "peak_flops":
        value = getattr(spec, metric.id)
        return None if value is None else float(value)
    name = FORMATS[precision].peak if precision in FORMATS else precision
    found: float | None = getattr(spec.dense_peaks, name, None)
    return found


def specification(snapshot: Snapshot, metric: Metric, side: Side, precision: str | None) -> Reading:
    entry = entry_of(snapshot, side)
    wanted = asked_precision(side, precision)
    value = specification_value(entry, metric, wanted)
    row = _row(entry, metric, f"{metric.id}.{wanted}" if metric.id == "peak_flops" else metric.id, value)
    if value is None:
        return Reading(figure=None, why=f"no source states {metric.en} of {entry.name}", evidence=(row,))
    return Reading(figure=exactly(value, "catalog"), evidence=(row,))
