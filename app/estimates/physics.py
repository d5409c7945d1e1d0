"""The engine, asked once per workload and hardware: answers are remembered per engine version and calibration."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible, ServingResult, TrainingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.fleet import most_concurrency
from app.engine.serving.search import search_serving
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from app.engine.training.sweep import search_training_many
from app.engine.workload import ServingPlanRequest, ServingWorkload, TrainingPlanRequest, TrainingWorkload
from app.estimates.hardware import Hardware

# one entry is a few kilobytes; a catalog of fifty machines at four sizes is two hundred entries a job
REMEMBERED = 8_192
SIGNIFICANT_DIGITS = 6
KEPT_REVISIONS = 8

_training: dict[str, TrainingCalibration] = {}
_serving: dict[str, ServingCalibration] = {}


def train(
    snapshot: Snapshot, workload: TrainingWorkload, hardware: Hardware, accelerators: int, plan: TrainingPlanRequest
) -> TrainingResult | Infeasible:
    """Best plan of a training workload on so many accelerators, every legal plan compared."""
    training_calibration(snapshot)
    return _train(snapshot.content_sha256, workload, hardware, accelerators, plan)


def sweep(
    snapshot: Snapshot,
    workload: TrainingWorkload,
    machines: Sequence[tuple[Hardware, int]],
    plan: TrainingPlanRequest,
) -> list[TrainingResult | Infeasible]:
    """Good plans on many machines at once, by the engine's coarse pass and its neighbours.

    Kept apart from :func:`train`: which of the two answers a request depends on the request alone, never on what was
    asked before, so that the same request gives the same bytes in every process.
    """
    calibration = training_calibration(snapshot)
    keys = [(snapshot.content_sha256, workload, plan, hardware.key, count) for hardware, count in machines]
    known = {key: _swept[key] for key in keys if key in _swept}
    missing = {key: pair for key, pair in zip(keys, machines, strict=True) if key not in known}
    if missing:
        clusters = [hardware.cluster(count) for hardware, count in missing.values()]
        found = dict(zip(missing, search_training_many(workload, clusters, plan, calibration), strict=True))
        while len(_swept) + len(found) > REMEMBERED and _swept:
            _swept.pop(next(iter(_swept)), None)
        _swept.update(found)
        known.update(found)
    return [known[key] for key in keys]


SweepKey = tuple[str, TrainingWorkload, TrainingPlanRequest, str, int]
_swept: dict[SweepKey, TrainingResult | Infeasible] = {}


def training_calibration(snapshot: Snapshot) -> TrainingCalibration:
    """The fitted parameters of a catalog revision, read once."""
    key = snapshot.content_sha256
    if key not in _training:
        _forget_oldest(_training)
        _training[key] = TrainingCalibration.from_mapping(dict(snapshot.calibration["training"]))
    return _training[key]


def serve(
    snapshot: Snapshot,
    workload: ServingWorkload,
    hardware: Hardware,
    accelerators: int | None,
    plan: ServingPlanRequest,
) -> ServingResult | Infeasible:
    """Best serving of a workload on one kind of machine."""
    _serving_calibration(snapshot)
    return _serve(snapshot.content_sha256, workload, hardware, accelerators, plan)


def serve_most(
    snapshot: Snapshot, workload: ServingWorkload, hardware: Hardware, accelerators: int, plan: ServingPlanRequest
) -> ServingResult | Infeasible:
    """Most concurrent requests that so many accelerators serve with every objective held."""
    calibration = _serving_calibration(snapshot)
    return most_concurrency(workload, hardware.accelerator, hardware.fabric, plan, calibration, accelerators)


def _serving_calibration(snapshot: Snapshot) -> ServingCalibration:
    key = snapshot.content_sha256
    if key not in _serving:
        _forget_oldest(_serving)
        _serving[key] = ServingCalibration.from_mapping(dict(snapshot.calibration["serving"]))
    return _serving[key]


@lru_cache(maxsize=REMEMBERED)
def _train(
    key: str, workload: TrainingWorkload, hardware: Hardware, accelerators: int, plan: TrainingPlanRequest
) -> TrainingResult | Infeasible:
    return search_training(workload, hardware.cluster(accelerators), plan, _training[key])


@lru_cache(maxsize=REMEMBERED)
def _serve(
    key: str, workload: ServingWorkload, hardware: Hardware, accelerators: int | None, plan: ServingPlanRequest
) -> ServingResult | Infeasible:
    return search_serving(workload, hardware.accelerator, hardware.fabric, plan, _serving[key], accelerators)


def _forget_oldest(calibrations: dict[str, Any]) -> None:
    while len(calibrations) >= KEPT_REVISIONS:
        calibrations.pop(next(iter(calibrations)), None)


def quantized(value: Any) -> Any:
    """Engine figures at six significant digits, containers included: what differs below is floating point."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, Mapping):
        return {str(k): quantized(v) for k, v in value.items()}
    return [quantized(v) for v in value]
