"""Laws that hold for any job, chip and plan (engine design, section 4)."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.catalog.shipped import shipped_accelerators
from app.engine.hardware import Accelerator, Cluster, DensePeaks, Fabric
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.architecture import architecture_of, column
from app.engine.training.plans import PlanArrays, arrays_of
from app.engine.training.problem import Problem, memory_arrays, problem_of, times_of
from app.engine.training.search import rank_plans, search_training
from app.engine.training.sweep import search_training_many
from app.engine.workload import TrainingPlan, TrainingPlanRequest, TrainingWorkload
from tests.engine.training.builders import accelerator, calibration, cluster, result, workload

FAMILIES = ("llama3-8b", "llama3-70b", "qwen3-30b-a3b", "deepseek-v3", "nemotron3-nano-30b")
PARTS = ("a100-sxm4-80", "h100-sxm5-80", "b200-sxm-180", "gb300-288", "mi300x", "tpu-v5p", "gaudi3", "trainium2")
FREE = TrainingPlanRequest()

families = st.sampled_from(FAMILIES)
parts = st.sampled_from(PARTS)
counts = st.sampled_from([8, 32, 64, 256, 1024])
factors = st.floats(1.01, 4.0)
quick = settings(max_examples=25, deadline=None)


def problem(job: TrainingWorkload, machine: Cluster, request: TrainingPlanRequest = FREE) -> Problem:
    found = problem_of(job, machine, request, calibration())
    assert isinstance(found, Problem)
    return found


def plan(**changes: object) -> TrainingPlan:
    fields: dict[str, object] = {
        "tensor": 1,
        "pipeline": 1,
        "virtual_pipeline": 1,
        "context": 1,
        "expert": 1,
        "expert_tensor": 1,
        "data": 8,
        "sharding": "zero3",
        "micro_batch_sequences": 1,
        "recompute": "none",
        "sequence_parallel": True,
        "overlap": True,
        "cpu_offload": False,
    }
    return TrainingPlan(**(fields | changes))  # type: ignore[arg-type]


def some_plans(job: TrainingWorkload, machine: Cluster) -> PlanArrays | None:
    ranking = rank_plans(problem(job, machine))
    if isinstance(ranking, Infeasible):
        return None
    order = np.linspace(0, len(ranking.plans) - 1, 12).astype(np.intp)
    return ranking.plans.take(order)


def faster(part: Accelerator, name: str, factor: float) -> Accelerator:
    match name:
        case "memory":
            return replace(part, memory_bandwidth_bytes_per_s=part.memory_bandwidth_bytes_per_s * factor)
        case "link":
            link = part.scale_up_bytes_per_s_per_accelerator
            return replace(part, scale_up_bytes_per_s_per_accelerator=link * factor if link else None)
        case _:
            peaks = {f: getattr(part.dense_peaks, f) for f in DensePeaks.__dataclass_fields__}
            return replace(part, dense_peaks=DensePeaks(**{k: v * factor if v else None for k, v in peaks.items()}))


@quick
@given(family=families, key=parts, count=counts, name=st.sampled_from(["memory", "link"]), factor=factors)
def test_more_bandwidth_is_never_slower(family: str, key: str, count: int, name: str, factor: float) -> None:
    job, part = workload(family, global_batch_sequences=1024), accelerator(key)
    plans = some_plans(job, cluster(count, part))
    if plans is None:
        return
    before = times_of(problem(job, cluster(count, part)), plans).total
    after = times_of(problem(job, cluster(count, faster(part, name, factor))), plans).total
    assert np.all(after <= before * (1.0 + 1e-9))


@quick
@given(family=families, key=parts, count=counts, factor=factors)
def test_more_peak_is_never_slower(family: str, key: str, count: int, factor: float) -> None:
    job, part = workload(family, global_batch_sequences=1024), accelerator(key)
    plans = some_plans(job, cluster(count, part))
    if plans is None:
        return
    better = faster(part, "peak", factor)
    before = times_of(problem(job, cluster(count, part)), plans).total
    after = times_of(problem(job, cluster(count, better)), plans).total
    assert np.all(after <= before * (1.0 + 1e-9))


@quick
@given(family=families, count=counts, factor=factors)
def test_faster_network_is_never_slower(family: str, count: int, factor: float) -> None:
    job = workload(family, global_batch_sequences=1024)
    slow = cluster(count, fabric=Fabric(kind="roce", bytes_per_s_per_accelerator=5e9))
    fast = cluster(count, fabric=Fabric(kind="roce", bytes_per_s_per_accelerator=5e9 * factor))
    plans = some_plans(job, slow)
    if plans is None:
        return
    assert np.all(times_of(problem(job, fast), plans).total <= times_of(problem(job, slow), plans).total * (1 + 1e-9))


@quick
@given(family=families, count=counts)
def test_oversubscription_is_never_faster(family: str, count: int) -> None:
    job = workload(family, global_batch_sequences=1024)
    flat, thin = (
        cluster(count, fabric=Fabric(kind="infiniband", bytes_per_s_per_accelerator=5e10, oversubscription=o))
        for o in (1.0, 4.0)
    )
    plans = some_plans(job, flat)
    if plans is None:
        return
    assert np.all(times_of(problem(job, thin), plans).total >= times_of(problem(job, flat), plans).total)


@quick
@given(family=families, key=parts, micro=st.sampled_from([1, 2, 4]), sequence=st.sampled_from([2048, 4096, 8192]))
def test_memory_grows_with_micro_batch_and_sequence(family: str, key: str, micro: int, sequence: int) -> None:
    machine = cluster(8, accelerator(key))

    def used(length: int, batch: int) -> float:
        job = workload(family, sequence_length=length, global_batch_sequences=256)
        one = arrays_of([plan(micro_batch_sequences=batch)])
        return float(memory_arrays(problem(job, machine), one).used[0])

    assert used(sequence, micro) < used(sequence, 2 * micro)
    assert used(sequence, micro) < used(2 * sequence, micro)


@quick
@given(family=families, name=st.sampled_from(["tensor", "pipeline", "expert"]))
def test_sharding_more_never_raises_weights(family: str, name: str) -> None:
    job, machine = workload(family, global_batch_sequences=1024), cluster(64)
    if name == "expert" and not architecture_of(job.transformer).moe_depth:
        return
    weights = []
    for degree in (1, 2, 4, 8):
        data = 64 // (degree if name != "expert" else 1)
        one = arrays_of([plan(**{name: degree}, data=data, sharding="zero1")])
        weights.append(float(memory_arrays(problem(job, machine), one).weights[0]))
    assert weights == sorted(weights, reverse=True)


@quick
@given(family=families, key=parts, count=counts)
def test_a_result_fits_adds_up_and_stays_below_the_peak(family: str, key: str, count: int) -> None:
    job = workload(family, global_batch_sequences=1024)
    found = search_training(job, cluster(count, accelerator(key)), FREE, calibration())
    if isinstance(found, Infeasible):
        assert found.rule in ("memory", "divisibility", "batch", "no_peak")
        assert found.nearest
        return
    p = found.plan
    assert p.tensor * p.pipeline * p.context * p.data == count
    assert found.memory_breakdown_bytes["headroom"] >= 0.0
    assert sum(found.time_breakdown.values()) == pytest.approx(1.0)
    assert found.bottleneck == max(found.time_breakdown, key=lambda name: found.time_breakdown[name])
    assert 0.0 < found.model_flops_utilization < 1.0
    rate, step = found.tokens_per_s, found.step_s
    assert rate.p10 <= rate.p50 <= rate.p90
    tokens = job.global_batch_sequences * job.sequence_length
    assert rate.p50 * step.p50 == pytest.approx(tokens)
    assert rate.p10 * step.p90 == pytest.approx(tokens)


@quick
@given(family=families, key=parts, count=counts)
def test_same_inputs_same_answer(family: str, key: str, count: int) -> None:
    job, machine = workload(family, global_batch_sequences=1024), cluster(count, accelerator(key))
    assert search_training(job, machine, FREE, calibration()) == search_training(job, machine, FREE, calibration())


@quick
@given(family=families, count=counts)
def test_a_pinned_plan_is_never_faster_than_the_searched_one(family: str, count: int) -> None:
    job, machine = workload(family, global_batch_sequences=1024), cluster(count)
    free = search_training(job, machine, FREE, calibration())
    pinned = search_training(job, machine, TrainingPlanRequest(tensor=2, micro_batch_sequences=1), calibration())
    if isinstance(free, TrainingResult) and isinstance(pinned, TrainingResult):
        assert pinned.tokens_per_s.p50 <= free.tokens_per_s.p50 * (1.0 + 1e-9)


def test_twice_the_sequences_at_fixed_replicas_take_about_twice_the_step() -> None:
    """Micro-batches add up: the step is linear in them but for fill, drain and the optimizer."""
    machine = cluster(64)
    pinned = {"tensor": 4, "pipeline": 1, "micro_batch_sequences": 1}
    one = result(workload("llama3-8b", global_batch_sequences=512), machine, **pinned)
    two = result(workload("llama3-8b", global_batch_sequences=1024), machine, **pinned)
    assert 1.8 < two.step_s.p50 / one.step_s.p50 <= 2.0


@pytest.mark.parametrize(
    ("family", "sequence", "batch"), [("llama3-70b", 8192, 512), ("deepseek-v3", 4096, 4096), ("llama3-8b", 2048, 1280)]
)
def test_the_bounded_search_is_the_exhaustive_one(family: str, sequence: int, batch: int) -> None:
    """On every accelerator of the catalog at once: the same plan and the same time as timing every plan alone."""
    job = workload(family, sequence_length=sequence, global_batch_sequences=batch)
    machines = [cluster(256, part) for part in shipped_accelerators().values()]
    together = search_training_many(job, machines, FREE, calibration())
    outcomes = 0
    for machine, swept in zip(machines, together, strict=True):
        assert swept == search_training(job, machine, FREE, calibration())
        whole = problem_of(job, machine, FREE, calibration())
        ranking = whole if isinstance(whole, Infeasible) else rank_plans(whole)
        if isinstance(ranking, Infeasible):
            assert swept == ranking
        else:
            assert isinstance(swept, TrainingResult)
            assert swept.plan == ranking.plans.plan(ranking.best)
            tokens = job.global_batch_sequences * job.sequence_length
            assert sum(swept.time_breakdown.values()) == pytest.approx(1.0)
            assert swept.assumptions["plans_considered"] == ranking.considered
            assert swept.step_s.p50 * swept.tokens_per_s.p50 == pytest.approx(tokens)
            outcomes += 1
    assert outcomes > 10


PINS = st.fixed_dictionaries(
    {},
    optional={
        "tensor": st.sampled_from([1, 2, 3, 4, 6, 8]),
        "pipeline": st.sampled_from([1, 2, 3, 4, 8, 16]),
        "virtual_pipeline": st.integers(1, 12),
        "context": st.sampled_from([1, 2, 4, 8]),
        "expert": st.sampled_from([1, 2, 8, 16]),
        "micro_batch_sequences": st.sampled_from([1, 2, 3, 4, 6, 12]),
        "recompute": st.sampled_from(["none", "selective", "full"]),
        "sharding": st.sampled_from(["none", "zero1"]),
        "sequence_parallel": st.booleans(),
        "overlap": st.booleans(),
    },
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    family=st.sampled_from(["llama3-8b", "llama3-70b", "gpt3-175b", "mixtral-8x7b", "deepseek-v3"]),
    count=st.sampled_from([8, 72, 144, 256]),
    batch=st.sampled_from([9, 96, 252, 1024]),
    sequence=st.sampled_from([2048, 8192]),
    method=st.sampled_from(["pretrain", "lora"]),
    pins=PINS,
)
def test_no_pinned_plan_beats_the_search(
    family: str, count: int, batch: int, sequence: int, method: str, pins: dict[str, Any]
) -> None:
    job = workload(family, sequence_length=sequence, global_batch_sequences=batch, method=method)
    machine = cluster(count)
    pinned = search_training(job, machine, TrainingPlanRequest(**pins), calibration())
    # micro-batches that do not divide the batch are taken where pins leave no others; stacks refuse them
    if isinstance(pinned, TrainingResult) and batch % (pinned.plan.data * pinned.plan.micro_batch_sequences) == 0:
        free = search_training(job, machine, FREE, calibration())
        assert isinstance(free, TrainingResult)
        assert pinned.tokens_per_s.p50 <= free.tokens_per_s.p50 * (1.0 + 1e-9)


def test_many_plans_at_once_equal_each_alone() -> None:
    job, machine = workload("deepseek-v3", sequence_length=4096, global_batch_sequences=4096), cluster(1024)
    plans = some_plans(job, machine)
    assert plans is not None
    whole = problem(job, machine)
    together = times_of(whole, plans).total
    alone = [float(times_of(whole, plans.take(np.array([i]))).total[0]) for i in range(len(plans))]
    assert together == pytest.approx(alone)
    assert column(architecture_of(job.transformer)).k.ndim == 2
