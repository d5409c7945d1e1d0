"""Strong and weak scaling of a training job on one kind of machine."""

from dataclasses import dataclass
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Band, Infeasible, TrainingResult
from app.estimates.hardware import Hardware
from app.estimates.physical import step
from app.estimates.physics import quantized
from app.estimates.schemas import Item

LARGEST_CLUSTER = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """Speed at one size.

    Parameters
    ----------
    tokens_per_s_per_accelerator : Band or None [token/s]
    efficiency : float or None
        Speed per accelerator over that at the reference size; None where it cannot run.
    refusal : str or None
    """

    accelerators: int
    global_batch_sequences_scale: float
    tokens_per_s_per_accelerator: Band | None
    efficiency: float | None
    plan: tuple[int, int, int, int] | None
    refusal: str | None

    def as_json(self) -> dict[str, Any]:
        """The shape an answer shows."""
        band = self.tokens_per_s_per_accelerator
        plan = (
            None if self.plan is None else dict(zip(("tensor", "pipeline", "context", "data"), self.plan, strict=True))
        )
        shown: dict[str, Any] = quantized(
            {
                "accelerators": self.accelerators,
                "batch_scale": self.global_batch_sequences_scale,
                "tokens_per_second_per_accelerator": None
                if band is None
                else {"p10": band.p10, "p50": band.p50, "p90": band.p90},
                "efficiency": self.efficiency,
                "plan": plan,
                "refusal": self.refusal,
            }
        )
        return shown


def sizes(hardware: Hardware, largest: int = LARGEST_CLUSTER, step: int = 2) -> list[int]:
    """One server, then by the step up to the largest cluster, which is always one of them."""
    count = hardware.accelerator.accelerators_per_node
    most = min(largest, hardware.largest_count or largest)
    found = []
    while count < most:
        found.append(count)
        count *= step
    return [*found, most]


def curve(
    snapshot: Snapshot,
    item: Item,
    hardware: Hardware,
    counts: list[int],
    at: str,
    *,
    weak: bool,
    first_and_last_only: bool = False,
) -> list[ScalingPoint]:
    """Speed at every size, compared with the smallest that runs.

    Parameters
    ----------
    weak : bool
        The global batch grows with the cluster (weak scaling), else it stays (strong scaling).
    first_and_last_only : bool
        Leaves out what lies between the smallest size that runs and the largest.
    """
    points: list[ScalingPoint] = []
    reference: float | None = None
    for count in counts:
        if first_and_last_only and reference is not None and count != counts[-1]:
            continue
        scale = count / counts[0] if weak else 1.0
        result = step(snapshot, item, hardware, count, scale, at)
        if isinstance(result, Infeasible):
            points.append(_refused(count, scale, result))
            continue
        each = result.tokens_per_s.p50 / count
        reference = reference or each
        points.append(_point(count, scale, result, each / reference))
    return points


def _refused(count: int, scale: float, refusal: Infeasible) -> ScalingPoint:
    return ScalingPoint(
        accelerators=count,
        global_batch_sequences_scale=scale,
        tokens_per_s_per_accelerator=None,
        efficiency=None,
        plan=None,
        refusal=f"{refusal.rule}: {refusal.message}",
    )


def _point(count: int, scale: float, result: TrainingResult, efficiency: float) -> ScalingPoint:
    rate, plan = result.tokens_per_s, result.plan
    return ScalingPoint(
        accelerators=count,
        global_batch_sequences_scale=scale,
        tokens_per_s_per_accelerator=Band(p10=rate.p10 / count, p50=rate.p50 / count, p90=rate.p90 / count),
        efficiency=efficiency,
        plan=(plan.tensor, plan.pipeline, plan.context, plan.data),
        refusal=None,
    )
