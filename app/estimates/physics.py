"""The engine, asked once per workload and hardware: answers are remembered per engine version and calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible, ServingResult, TrainingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.fleet import most_concurrency
from app.engine.serving.search import search_serving
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.nearest import with_nearest
from app.engine.training.search import search_training
from app.engine.training.sweep import search_training_many
from app.engine.workload import ServingPlanRequest, ServingWorkload, TrainingPlanRequest, TrainingWorkload
from app.estimates.hardware import Hardware
from app.estimates.remembered import Remembered

# one entry is a few kilobytes; a catalog of fifty machines at four sizes is two hundred entries a job
REMEMBERED = 8_192
SIGNIFICANT_DIGITS = 6
KEPT_REVISIONS = 8

TrainKey = tuple[str, TrainingWorkload, TrainingPlanRequest, str, int]
ServeKey = tuple[str, ServingWorkload, ServingPlanRequest, str, int | None]
_training: Remembered[str, TrainingCalibration] = Remembered(KEPT_REVISIONS)
_serving: Remembered[str, ServingCalibration] = Remembered(KEPT_REVISIONS)
_searched: Remembered[TrainKey, TrainingResult | Infeasible] = Remembered(REMEMBERED)
_swept: Remembered[TrainKey, TrainingResult | Infeasible] = Remembered(REMEMBERED)
_served: Remembered[ServeKey, ServingResult | Infeasible] = Remembered(REMEMBERED)


def train(
    snapshot: Snapshot, workload: TrainingWorkload, hardware: Hardware, accelerators: int, plan: TrainingPlanRequest
) -> TrainingResult | Infeasible:
    """Best plan of a training workload on so many accelerators, every legal plan compared."""
    key = (snapshot.content_sha256, workload, plan, hardware.key, accelerators)
    known = _searched.get(key)
    if known is not None:
        return known
    calibration = training_calibration(snapshot)
    return _searched.put(key, search_training(workload, hardware.cluster(accelerators), plan, calibration))


def sweep(
    snapshot: Snapshot,
    workload: TrainingWorkload,
    machines: Sequence[tuple[Hardware, int]],
    plan: TrainingPlanRequest,
) -> list[TrainingResult | Infeasible]:
    """Best plans on many machines at once, each what :func:`train` gives for its machine."""
    keys = [(snapshot.content_sha256, workload, plan, hardware.key, count) for hardware, count in machines]
    answers = {key: answer for key in keys if (answer := _swept.get(key)) is not None}
    missing = {key: pair for key, pair in zip(keys, machines, strict=True) if key not in answers}
    if missing:
        clusters = [hardware.cluster(count) for hardware, count in missing.values()]
        found = search_training_many(workload, clusters, plan, training_calibration(snapshot))
        fresh = dict(zip(missing, found, strict=True))
        _swept.update(fresh)
        answers.update(fresh)
    return [answers[key] for key in keys]


def nearest(
    snapshot: Snapshot,
    workload: TrainingWorkload,
    hardware: Hardware,
    accelerators: int,
    plan: TrainingPlanRequest,
    refused: Infeasible,
) -> Infeasible:
    """A refusal with the nearest plan that has been found to run."""
    calibration = training_calibration(snapshot)
    return with_nearest(refused, workload, hardware.cluster(accelerators), plan, calibration)


def training_calibration(snapshot: Snapshot) -> TrainingCalibration:
    """The fitted parameters of a catalog revision, read once."""
    known = _training.get(snapshot.content_sha256)
    if known is not None:
        return known
    read = TrainingCalibration.from_mapping(dict(snapshot.calibration["training"]))
    return _training.put(snapshot.content_sha256, read)


def serve(
    snapshot: Snapshot,
    workload: ServingWorkload,
    hardware: Hardware,
    accelerators: int | None,
    plan: ServingPlanRequest,
) -> ServingResult | Infeasible:
    """Best serving of a workload on one kind of machine."""
    key = (snapshot.content_sha256, workload, plan, hardware.key, accelerators)
    known = _served.get(key)
    if known is not None:
        return known
    calibration = _serving_calibration(snapshot)
    found = search_serving(workload, hardware.accelerator, hardware.fabric, plan, calibration, accelerators)
    return _served.put(key, found)


def serve_most(
    snapshot: Snapshot, workload: ServingWorkload, hardware: Hardware, accelerators: int, plan: ServingPlanRequest
) -> ServingResult | Infeasible:
    """Most concurrent requests that so many accelerators serve with every objective held."""
    calibration = _serving_calibration(snapshot)
    return most_concurrency(workload, hardware.accelerator, hardware.fabric, plan, calibration, accelerators)


def _serving_calibration(snapshot: Snapshot) -> ServingCalibration:
    known = _serving.get(snapshot.content_sha256)
    if known is not None:
        return known
    read = ServingCalibration.from_mapping(dict(snapshot.calibration["serving"]))
    return _serving.put(snapshot.content_sha256, read)


def quantized(value: Any) -> Any:
    """Engine figures at six significant digits, containers included: what differs below is floating point."""
    if isinstance(value, bool) or value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    if isinstance(value, Mapping):
        return {str(k): quantized(v) for k, v in value.items()}
    return [quantized(v) for v in value]
