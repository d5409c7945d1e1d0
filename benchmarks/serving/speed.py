"""Speed of the serving engine on this machine: one pinned plan, a fleet under an objective, the whole catalog."""

import time
import timeit
from collections.abc import Callable

from app.catalog.shipped import shipped_accelerators, shipped_models
from app.engine.serving.loadcurve import load_curve
from app.engine.serving.replica import Replicas, prepare
from app.engine.serving.search import search_serving, search_serving_many
from app.engine.workload import LatencyObjective, Lengths, ServingPlanRequest, ServingWorkload
from benchmarks.accuracy.inference import shipped_calibration

# targets of the design, section 3, and of the issue [ms]
TARGETS_MS = {"pinned": 0.3, "fleet": 5.0, "catalog": 80.0}
REPEATS = 5


def _milliseconds(work: Callable[[], object], number: int) -> float:
    work()
    return min(timeit.repeat(work, timer=time.process_time, number=number, repeat=REPEATS)) / number * 1e3


def _workload(model: str, **fields: object) -> ServingWorkload:
    base: dict[str, object] = {
        "transformer": shipped_models()[model],
        "input_tokens": Lengths(mean=1024.0, p95=3000.0),
        "output_tokens": Lengths(mean=256.0, p95=600.0),
        "weights_precision": "fp8",
        "activations_precision": "fp8",
        "kv_precision": "fp8",
    }
    return ServingWorkload(**{**base, **fields})  # type: ignore[arg-type]


def serving_speed() -> list[str]:
    """One line a figure; processor time of one core, best of several, with what depends on the architecture kept."""
    calibration, chips = shipped_calibration(), shipped_accelerators()
    chip = chips["h100-sxm5-80"]
    objective = (LatencyObjective(metric="ttft", seconds=0.5, percentile=95.0),)
    pinned = ServingPlanRequest(tensor=2, pipeline=1, expert=1, data=1)
    free = ServingPlanRequest()
    closed = _workload("llama3-70b", concurrency=64.0)
    one = _milliseconds(lambda: search_serving(closed, chip, None, pinned, calibration, 2), 50)
    lines = [f"serving, one pinned plan: {one:.2f} ms (target {TARGETS_MS['pinned']})"]
    for model in ("llama3-70b", "deepseek-v3"):
        work = _workload(model, requests_per_s=20.0, objectives=objective)
        part = chips["h200-sxm-141"]
        fleet = _milliseconds(lambda w=work, p=part: search_serving(w, p, None, free, calibration), 10)  # type: ignore[misc]
        hardware = [(a, None, None) for a in chips.values()]
        many = _milliseconds(lambda w=work, h=hardware: search_serving_many(w, h, free, calibration), 1)  # type: ignore[misc]
        replicas = prepare(work, part, None, free, calibration, None)
        assert isinstance(replicas, Replicas)
        curve = load_curve(replicas)
        once = _milliseconds(lambda r=replicas: load_curve(r), 10)  # type: ignore[misc]
        lines.append(f"serving, {model}, fleet under an objective: {fleet:.2f} ms (target {TARGETS_MS['fleet']})")
        lines.append(
            f"serving, {model}, {len(hardware)} accelerator types: {many:.1f} ms (target {TARGETS_MS['catalog']})"
        )
        lines.append(f"serving, {model}, plans and batches per second: {curve.rate.size / once * 1e3:,.0f}")
    return lines


if __name__ == "__main__":
    print("\n".join(serving_speed()))
