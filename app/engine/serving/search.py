"""Facade: the best serving plan of a workload on one accelerator type, or on many."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from app.engine.hardware import Accelerator, Fabric
from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.answer import answer
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.loadcurve import LoadCurve, load_curve, quantiles_for, random_waits
from app.engine.serving.operators import Floats
from app.engine.serving.pinned import is_pinned, pinned_load
from app.engine.serving.queueing import is_percentile
from app.engine.serving.replica import Replicas, check_workload, prepare
from app.engine.serving.selection import choose, figure_at, no_waits, objectives_hold
from app.engine.serving.speculation import accepted_tokens
from app.engine.workload import LatencyObjective, ServingPlanRequest, ServingWorkload


def search_serving(
    workload: ServingWorkload, accelerator: Accelerator, fabric: Fabric | None, request: ServingPlanRequest,
    calibration: ServingCalibration, accelerators: int | None = None,
) -> ServingResult | Infeasible:  # fmt: skip
    """Best serving of a workload on one accelerator type.

    Parameters
    ----------
    workload : ServingWorkload
        Offline, closed loop (``concurrency``) or open loop (``requests_per_s``).
    accelerator : Accelerator
    fabric : Fabric or None
        Network between nodes; None takes the part's usual one.
    request : ServingPlanRequest
        Pinned plan fields; None = searched.
    calibration : ServingCalibration
    accelerators : int or None
        Accelerators at hand; None sizes the fleet.

    Returns
    -------
    ServingResult or Infeasible
        Saturation is a result; a model that does not fit, a context beyond the model's, or an objective below what the
        hardware can do at a single request is not.

    Notes
    -----
    Every legal plan is evaluated at a ladder of batches; the chosen one again at exactly its load.

    References
    ----------
    1. Zhong et al., "DistServe", 2024. 2. Agrawal et al., "Vidur", 2024.
    """
    problem = check_workload(workload) or _check_objectives(workload) or _check_fleet(accelerators)
    if problem is not None:
        return problem
    if request.prefill_replicas is not None and request.decode_replicas is not None:
        from app.engine.serving.disaggregated import search_disaggregated

        return search_disaggregated(workload, accelerator, fabric, request, calibration)
    replicas = prepare(workload, accelerator, fabric, request, calibration, accelerators)
    if isinstance(replicas, Infeasible):
        return replicas
    accepted = accepted_tokens(workload.speculative_tokens, workload.speculative_acceptance)
    if accelerators is not None and is_pinned(workload, replicas, accelerators):
        pinned, point = pinned_load(workload, replicas, accelerators)
        return answer(workload, replicas, pinned, request, calibration, accepted, point)
    curve = load_curve(replicas)
    if workload.objectives:
        floor = _floor(workload, replicas, curve, accepted)
        if floor is not None:
            worst, refused = floor
            held = _held(workload, worst, accelerator, fabric, request, calibration, accelerators)
            return replace(refused, nearest={**refused.nearest, f"{worst.metric}_s": held})
    choice = choose(workload, replicas, curve, accepted, accelerators)
    return answer(workload, replicas, choice, request, calibration, accepted)


def search_serving_many(
    workload: ServingWorkload, hardware: Sequence[tuple[Accelerator, Fabric | None, int | None]],
    request: ServingPlanRequest, calibration: ServingCalibration,
) -> list[ServingResult | Infeasible]:  # fmt: skip
    """The same over several accelerator types.

    Parameters
    ----------
    workload : ServingWorkload
    hardware : sequence of (Accelerator, Fabric or None, accelerators or None)
    request : ServingPlanRequest
    calibration : ServingCalibration

    Returns
    -------
    list of ServingResult or Infeasible
        In the order of ``hardware``.

    References
    ----------
    1. :func:`search_serving`.
    """
    return [
        search_serving(workload, accelerator, fabric, request, calibration, count)
        for accelerator, fabric, count in hardware
    ]


def _check_objectives(workload: ServingWorkload) -> Infeasible | None:
    for objective in workload.objectives:
        if objective.metric not in ("ttft", "tpot", "e2e") or not is_percentile(objective.percentile):
            return Infeasible(
                rule="objective",
                message=f"an objective names ttft, tpot or e2e and a percentile between 0 and 100, got "
                f"{objective.metric} at {objective.percentile}",
                numbers={"percentile": objective.percentile},
                nearest={"metric": "ttft", "percentile": 95.0},
            )
    return None


def _check_fleet(accelerators: int | None) -> Infeasible | None:
    if accelerators is not None and accelerators < 1:
        return Infeasible(
            rule="accelerators", message=f"a fleet needs at least one accelerator, got {accelerators}",
            numbers={"accelerators": float(accelerators)}, nearest={"accelerators": 1},
        )  # fmt: skip
    return None


# what a single request takes leaves no room for others; so much more is tried until the load is served within it
ROOM = (1.0, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0)


@lru_cache(maxsize=4096)
def _held(
    workload: ServingWorkload, least: LatencyObjective, accelerator: Accelerator, fabric: Fabric | None,
    request: ServingPlanRequest, calibration: ServingCalibration, accelerators: int | None,
) -> float:  # fmt: skip
    """The tightest of a few objectives that the load is served within; ``least`` holds for a single request."""
    for room in ROOM[:-1]:
        eased = replace(workload, objectives=(replace(least, seconds=least.seconds * room),))
        outcome = search_serving(eased, accelerator, fabric, request, calibration, accelerators)
        if isinstance(outcome, ServingResult) and not outcome.saturated and "objectives_met" not in outcome.assumptions:
            return least.seconds * room
    return least.seconds * ROOM[-1]


def _floor(
    workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, accepted: float
) -> tuple[LatencyObjective, Infeasible] | None:
    """Say which bytes over which bandwidth bound an objective that no plan holds even for a single request.

    The objective comes back with what a single request takes.
    """
    highest = curve.rate.max(axis=1, keepdims=True)
    alone = curve.rate * 0.0
    waits = random_waits(workload, curve, alone, highest, replicas.cap) if workload.requests_per_s else no_waits(curve)
    held = objectives_hold(workload, curve, waits, replicas.frontend_s, accepted)[:, 0]
    if held.any():
        return None
    worst = workload.objectives[0]
    for objective in workload.objectives:
        single = _single(workload, replicas, curve, accepted, objective.metric, objective.percentile)
        if single.min() > objective.seconds:
            worst = objective
            break
    single = _single(workload, replicas, curve, accepted, worst.metric, worst.percentile)
    row = int(np.argmin(single))
    o = replicas.operators
    chip = replicas.situation.accelerator
    weights = float(o.weights_resident_bytes[row, 0] * o.pipeline[row, 0])
    bound = weights / chip.memory_bandwidth_bytes_per_s
    tensor, pipeline, _, data = replicas.plans[row]
    refused = Infeasible(
        rule="objective",
        message=f"{worst.metric} of {worst.seconds * 1e3:g} ms at p{worst.percentile:g} is below what "
        f"{chip.id} does for "
        f"a single request: the best plan (tensor {tensor}, pipeline {pipeline}, data {data}) takes "
        f"{single[row] * 1e3:.1f} ms; reading {weights / 1e9:.2f} GB of weights, stage after stage, at "
        f"{chip.memory_bandwidth_bytes_per_s / 1e12:.2f} TB/s alone bounds a full weight pass at {bound * 1e3:.2f} ms",
        numbers={
            "asked_s": worst.seconds, "best_s": float(single[row]), "weights_bytes": weights,
            "memory_bandwidth_bytes_per_s": chip.memory_bandwidth_bytes_per_s, "weight_pass_s": bound,
        },
        nearest={f"{worst.metric}_s": float(single[row]), "tensor": tensor},
    )  # fmt: skip
    return replace(worst, seconds=float(single[row])), refused


def _single(
    workload: ServingWorkload, replicas: Replicas, curve: LoadCurve, accepted: float, metric: str, percentile: float
) -> Floats:
    at = quantiles_for(workload, (percentile,))
    return figure_at(metric, workload, curve, no_waits(curve), replicas.frontend_s, accepted, at)[:, 0]
