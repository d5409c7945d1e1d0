"""How fast the engine answers: one pinned plan, many candidates, the whole catalog.

``python -m benchmarks.engine_speed`` prints the best of several repeats, in processor time of one core, beside the
targets.
"""

import time
from collections.abc import Callable

import numpy as np

from app.catalog.shipped import read_data, shipped_accelerators, shipped_models
from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.plans import PlanArrays, concatenate
from app.engine.training.problem import Problem, memory_arrays, problem_of, times_of
from app.engine.training.search import rank_plans, search_training
from app.engine.training.sweep import search_training_many
from app.engine.workload import TrainingPlanRequest, TrainingWorkload
from benchmarks.serving.speed import serving_speed

REPEATS = 15
CANDIDATES = 20_000
PINNED = TrainingPlanRequest(
    tensor=4,
    pipeline=8,
    virtual_pipeline=5,
    context=1,
    expert=1,
    expert_tensor=1,
    data=2,
    sharding="zero1",
    micro_batch_sequences=1,
    recompute="selective",
    sequence_parallel=True,
)


def best_of(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """Processor time of the fastest repeat [ms]."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def job(family: str, sequence: int, batch: int, precision: str = "bf16") -> TrainingWorkload:
    """A pretraining job of a shipped model."""
    return TrainingWorkload(
        transformer=shipped_models()[family],
        method="pretrain",
        tokens=1e12,
        sequence_length=sequence,
        global_batch_sequences=batch,
        precision=precision,
    )


def candidates(problem: Problem, count: int) -> PlanArrays:
    """``count`` legal plans of a problem, repeated as needed."""
    ranking = rank_plans(problem)
    if isinstance(ranking, Infeasible):
        raise SystemExit(ranking.message)
    copies = -(-count // len(ranking.plans))
    return concatenate([ranking.plans] * copies).take(np.arange(count))


def main() -> None:
    """Print the table."""
    calibration = TrainingCalibration.from_mapping(read_data("calibration/training.json"))
    parts = shipped_accelerators()
    h100 = parts["h100-sxm5-80"]
    dense, mixture = job("llama3-70b", 8192, 128, "fp8"), job("deepseek-v3", 4096, 4096)
    small, large = (Cluster(accelerator=h100, accelerators=n, fabric=None) for n in (64, 1024))
    problem = problem_of(dense, small, PINNED, calibration)
    wide = problem_of(dense, small, TrainingPlanRequest(), calibration)
    if isinstance(problem, Infeasible) or isinstance(wide, Infeasible):
        raise SystemExit("the benchmark job has no plan")
    one, many = candidates(problem, 1), candidates(wide, CANDIDATES)
    catalog = [Cluster(accelerator=part, accelerators=256, fabric=None) for part in parts.values()]
    rows = [
        ("one plan, time and memory", best_of(lambda: (times_of(problem, one), memory_arrays(problem, one))), "0.3"),
        (
            "one pinned plan, from job to result",
            best_of(lambda: search_training(dense, small, PINNED, calibration)),
            "",
        ),
        (f"{CANDIDATES:,} candidates, step time", best_of(lambda: times_of(wide, many)), "10"),
        (
            "search, 70B on 64 H100",
            best_of(lambda: search_training(dense, small, TrainingPlanRequest(), calibration)),
            "",
        ),
        (
            "search, DeepSeek-V3 on 1,024 H100",
            best_of(lambda: search_training(mixture, large, TrainingPlanRequest(), calibration)),
            "",
        ),
        (
            f"70B over the catalog ({len(catalog)} accelerators)",
            best_of(
                lambda: search_training_many(job("llama3-70b", 8192, 512), catalog, TrainingPlanRequest(), calibration)
            ),
            "50",
        ),
        (
            f"DeepSeek-V3 over the catalog ({len(catalog)} accelerators)",
            best_of(lambda: search_training_many(mixture, catalog, TrainingPlanRequest(), calibration)),
            "50",
        ),
    ]
    print(f"{'training':50s} {'ms':>9s} {'target ms':>10s}")
    for name, milliseconds, target in rows:
        print(f"{name:50s} {milliseconds:9.2f} {target:>10s}")
    print(f"plans per second: {CANDIDATES / rows[2][1] * 1e3:,.0f}")
    print("\n".join(serving_speed()))


if __name__ == "__main__":
    main()
