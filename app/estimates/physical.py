"""What a job does on a supply, without any price: for claims, scaling curves and sensitivity."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.minimum import SmallestSplit, smallest_split
from app.estimates.hardware import Hardware
from app.estimates.job import TrainingSpec, training_spec
from app.estimates.job_schemas import TrainingJob
from app.estimates.physics import train, training_calibration
from app.estimates.runs import Found
from app.estimates.schemas import Item, PurchaseModel, Supply
from app.estimates.serving_runs import serving_runs
from app.estimates.supply import Selection, select
from app.estimates.training_runs import training_runs

OWNED = PurchaseModel(kind="owned")


@dataclass(frozen=True, slots=True, kw_only=True)
class Physical:
    """Runs of one item, fastest first, and why other machines cannot run it."""

    found: tuple[Found, ...]
    refused: Mapping[str, Infeasible]
    hardware: Mapping[str, Hardware]

    @property
    def best(self) -> dict[str, Any] | None:
        """The fastest run; for serving, the most tokens per accelerator."""
        return self.found[0].complete() if self.found else None

    @property
    def fastest_hours(self) -> float | None:
        """Calendar time of the fastest training run [h]."""
        return float(self.found[0].light["duration_hours"]["p50"]) if self.found else None

    @property
    def fewest(self) -> int | None:
        """Accelerators of the smallest run."""
        return min((int(run.light["accelerators"]) for run in self.found), default=None)

    @property
    def refusal(self) -> Infeasible | None:
        """The least bad refusal."""
        least = sorted(self.refused.values(), key=lambda r: (r.numbers.get("missing_bytes", float("inf")), r.rule))
        return least[0] if least else None


def is_bare(supply: Supply) -> bool:
    """Whether a supply names parts but no seller: then they stand in their usual server with its usual network."""
    named = (supply.providers, supply.regions, supply.purchase_models, supply.offers)
    return supply.accelerators is not None and all(value is None for value in named)


def machines(snapshot: Snapshot, supply: Supply, at: str) -> Selection:
    """The machines of a supply; a bare part in the server it is usually built into."""
    if is_bare(supply):
        supply = supply.model_copy(update={"purchase_models": [OWNED]})
    return select(snapshot, supply, at)


def physical(snapshot: Snapshot, item: Item, at: str) -> Physical:
    """Every run of an item on its supply."""
    selection = machines(snapshot, item.supply, f"{at}/supply")
    run = training_runs if item.job.kind == "training" else serving_runs
    runs, refused = run(snapshot, item, selection, at)
    return Physical(
        found=tuple(sorted(runs, key=partial(_speed, item.job.kind))),
        refused=refused,
        hardware={h.key: h for h in selection.hardware},
    )


def _speed(kind: str, run: Found) -> tuple[float, str]:
    key = str(run.light["key"])
    if kind == "training":
        return run.light["duration_hours"]["p50"], key
    return -run.complete()["performance"]["output_tokens_per_second_per_accelerator"]["p50"], key


def step(
    snapshot: Snapshot, item: Item, hardware: Hardware, accelerators: int, batch_scale: float, at: str
) -> TrainingResult | Infeasible:
    """One step at another size; ``batch_scale`` multiplies the global batch (weak scaling)."""
    spec = _spec(snapshot, item, at)
    batch = max(1, round(spec.workload.global_batch_sequences * batch_scale))
    workload = replace(spec.workload, global_batch_sequences=batch)
    return train(snapshot, workload, hardware, accelerators, spec.plan)


def model_parallel_minimum(
    snapshot: Snapshot, item: Item, hardware: Hardware, accelerators: int, at: str
) -> SmallestSplit | Infeasible:
    """Fewest accelerators that one copy of the model is cut over, on so many of this machine."""
    spec = _spec(snapshot, item, at)
    calibration = training_calibration(snapshot)
    return smallest_split(spec.workload, hardware.cluster(accelerators), spec.plan, calibration)


def _spec(snapshot: Snapshot, item: Item, at: str) -> TrainingSpec:
    job = item.job
    assert isinstance(job, TrainingJob)
    stated = job.tokens is not None or job.dataset is not None
    return training_spec(snapshot, job, f"{at}/job", None if stated else 1.0)
