"""Laws every prediction obeys, over chips, models and formats."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from app.engine.outcome import Infeasible
from app.engine.serving.answer import one_point
from app.engine.serving.calibration import Situation
from app.engine.serving.loadcurve import load_curve
from app.engine.serving.operators import PlanArrays, Precisions, build_operators, checkpoint_precisions
from app.engine.serving.plans import routed_experts
from app.engine.serving.rates import HIGHEST_SHARE, resolve_rates
from app.engine.serving.replica import Replicas, prepare
from app.engine.serving.search import search_serving
from app.engine.serving.selection import PLANNED_UTILIZATION, choose
from app.engine.serving.step import step_seconds
from app.engine.workload import LatencyObjective, Lengths, ServingPlanRequest, Software
from tests.engine.serving.test_search import CALIBRATION, CHIPS, H100, chat, solved

PARTS = ("h100-sxm5-80", "b200-sxm-180", "mi300x", "l40s", "gaudi3", "tpu-v6e", "rtx-5090")
MODELS = ("llama3-8b", "llama3-70b", "gpt-oss-120b", "deepseek-v3", "nemotron3-super-120b")


def replicas_of(part: str, model: str) -> Replicas | None:
    found = prepare(chat(model, concurrency=8.0), CHIPS[part], None, ServingPlanRequest(), CALIBRATION, None)
    return None if isinstance(found, Infeasible) else found


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("model", MODELS)
def test_every_plan_fits_and_every_rate_is_finite(part: str, model: str) -> None:
    replicas = replicas_of(part, model)
    if replicas is None:
        return
    held = replicas.memory.weights + replicas.memory.workspace + replicas.memory.reserve
    assert (held <= replicas.memory.total).all()
    curve = load_curve(replicas)
    assert np.isfinite(curve.rate).all()
    assert (curve.rate > 0.0).all()
    assert (curve.iteration_s >= curve.step_s * (1.0 - 1e-12)).all()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("model", MODELS)
def test_work_never_exceeds_the_dense_peak(part: str, model: str) -> None:
    replicas = replicas_of(part, model)
    if replicas is None:
        return
    chip = CHIPS[part]
    peaks = chip.dense_peaks
    peak = max(value for value in (peaks.bf16, peaks.fp16, peaks.fp8, peaks.fp4) if value is not None)
    curve = load_curve(replicas)
    o = replicas.operators
    flops = (2.0 * o.copies * o.inner * o.outer * (1.0 - o.head)).sum(axis=1, keepdims=True) / o.data
    assert (curve.rate * (1024.0 + 256.0) * flops / o.pipeline <= peak * (1.0 + 1e-9)).all()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5, 0.7, 0.85])
def test_the_batch_of_an_open_loop_makes_the_rate_asked_for(part: str, model: str, share: float) -> None:
    replicas = replicas_of(part, model)
    if replicas is None:
        return
    curve = load_curve(replicas)
    work = chat(model, requests_per_s=share * float(curve.rate.max()))
    choice = choose(work, replicas, curve, 1.0, int(replicas.size.max()))
    made, _ = one_point(replicas, choice)
    asked = share * float(curve.rate.max()) / choice.replicas
    assert made.rate[0, 0] * min(choice.running, 1.0) == pytest.approx(min(asked, choice.highest_rate), rel=0.01)


@pytest.mark.parametrize("accelerators", [2, 8, 16])
@pytest.mark.parametrize(
    "load", [{"requests_per_s": 2.0}, {"requests_per_s": 5.0}, {"concurrency": 3.0}, {"concurrency": 40.0}]
)
@pytest.mark.parametrize("tensor", [None, 1])
def test_a_given_fleet_ends_requests_as_soon_as_any_plan_that_carries_them(
    accelerators: int, load: dict[str, float], tensor: int | None
) -> None:
    work = chat("llama3-70b", **load)

    def seconds(plan: ServingPlanRequest) -> float:
        found = search_serving(work, H100, None, plan, CALIBRATION, accelerators)
        unfit = isinstance(found, Infeasible) or found.saturated or found.utilization > PLANNED_UTILIZATION
        return math.inf if isinstance(found, Infeasible) or unfit else found.e2e_s.mean.p50

    pinned = {
        (width, pipeline): seconds(ServingPlanRequest(tensor=width, pipeline=pipeline, expert=1, data=1))
        for width in ((1, 2, 4, 8) if tensor is None else (tensor,))
        for pipeline in (1, 2, 4)
    }
    assert seconds(ServingPlanRequest(tensor=tensor)) <= min(pinned.values()) * 1.03, pinned


@pytest.mark.parametrize("rate", [0.5, 4.0, 400.0])
@pytest.mark.parametrize(
    "plan", [ServingPlanRequest(), ServingPlanRequest(tensor=2, prefill_replicas=1, decode_replicas=3)]
)
def test_requests_in_flight_are_rate_times_time(rate: float, plan: ServingPlanRequest) -> None:
    found = solved(search_serving(chat("llama3-70b", requests_per_s=rate), H100, None, plan, CALIBRATION, 8))
    assert found.saturated == (rate > 100.0)
    in_flight = found.replicas * found.concurrency_per_replica
    assert in_flight == pytest.approx(found.requests_per_s * found.e2e_s.mean.p50)


@pytest.mark.parametrize("users", [1.0, 64.0, 5000.0])
@pytest.mark.parametrize(
    "plan", [ServingPlanRequest(), ServingPlanRequest(tensor=2, prefill_replicas=1, decode_replicas=3)]
)
def test_users_of_a_closed_loop_are_all_in_flight(users: float, plan: ServingPlanRequest) -> None:
    found = solved(search_serving(chat("llama3-70b", concurrency=users), H100, None, plan, CALIBRATION, 8))
    assert found.replicas * found.concurrency_per_replica == pytest.approx(users)
    assert found.requests_per_s * found.e2e_s.mean.p50 == pytest.approx(users, rel=0.1)


@pytest.mark.parametrize("stack", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("output", [1.0, 2.0, 50.0, 1000.0])
@pytest.mark.parametrize("users", [1.0, 8.0, 200.0])
def test_users_never_ask_before_they_are_answered(users: float, output: float, stack: str) -> None:
    work = chat("llama3-8b", concurrency=users, output_tokens=Lengths(mean=output), software=Software(stack=stack))
    found = solved(search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION, 8))
    assert found.requests_per_s * found.e2e_s.mean.p50 <= users * (1.0 + 1e-9)


@pytest.mark.parametrize("stack", ["vllm", "sglang", "tensorrt-llm", "deepspeed", "optimum-habana"])
@pytest.mark.parametrize("weights", ["bf16", "fp8", "int4", "mxfp4"])
def test_no_rate_passes_what_kernels_reach_of_the_datasheet(stack: str, weights: str) -> None:
    for part, model in itertools.product(PARTS, ("llama3-70b", "mixtral-8x7b", "deepseek-v3")):
        chip, transformer = CHIPS[part], chat(model).transformer
        precisions = checkpoint_precisions(transformer, weights, weights, "bf16")
        for year in (2023.5, 2026.5):
            situation = Situation(
                accelerator=chip, precisions=precisions, stack=stack, released_year=year,
                experts=routed_experts(transformer),
            )  # fmt: skip
            one = np.ones(1)
            plan = PlanArrays(tensor=one, pipeline=one, expert=one, data=one)
            found = resolve_rates(CALIBRATION, situation, build_operators(transformer, precisions, plan), None)
            for rate in (found.bandwidth, found.moe_bandwidth, found.cache_bandwidth):
                assert (rate <= HIGHEST_SHARE * chip.memory_bandwidth_bytes_per_s * (1.0 + 1e-12)).all()
            assert (found.flops_per_s <= HIGHEST_SHARE * found.raw_flops_per_s * (1.0 + 1e-12)).all()
            assert (found.moe_flops_per_s <= HIGHEST_SHARE * found.raw_moe_flops_per_s * (1.0 + 1e-12)).all()


@pytest.mark.parametrize("model", MODELS)
def test_more_sequences_never_give_a_shorter_iteration(model: str) -> None:
    replicas = replicas_of("b200-sxm-180", model)
    assert replicas is not None
    curve = load_curve(replicas)
    assert (np.diff(curve.step_s, axis=1) >= -1e-12).all()


def test_twice_the_peak_and_bandwidth_is_never_slower() -> None:
    faster = replace(
        H100,
        memory_bandwidth_bytes_per_s=2.0 * H100.memory_bandwidth_bytes_per_s,
        dense_peaks=replace(
            H100.dense_peaks,
            **{n: 2.0 * v for n in ("bf16", "fp16", "fp8") if (v := getattr(H100.dense_peaks, n)) is not None},
        ),
    )
    plan = ServingPlanRequest(tensor=2, pipeline=1, expert=1, data=1)
    slow = solved(search_serving(chat(offline=True), H100, None, plan, CALIBRATION, 2))
    fast = solved(search_serving(chat(offline=True), faster, None, plan, CALIBRATION, 2))
    assert fast.output_tokens_per_s.p50 > 1.2 * slow.output_tokens_per_s.p50


def test_percentiles_and_intervals_are_ordered() -> None:
    result = solved(search_serving(chat(requests_per_s=30.0), H100, None, ServingPlanRequest(), CALIBRATION, 8))
    for latency in (result.ttft_s, result.tpot_s, result.e2e_s):
        assert latency.p50 <= latency.p95 <= latency.p99
        assert latency.mean.p10 <= latency.mean.p50 <= latency.mean.p90
    assert result.output_tokens_per_s.p10 < result.output_tokens_per_s.p50 < result.output_tokens_per_s.p90


def test_the_prefix_cache_and_speculation_help() -> None:
    plan = ServingPlanRequest(tensor=4, pipeline=1, expert=1, data=1)
    base = chat(concurrency=32.0, input_tokens=Lengths(mean=4096.0))
    plain = solved(search_serving(base, H100, None, plan, CALIBRATION, 4))
    cached = solved(search_serving(replace(base, prefix_cache_hit_rate=0.8), H100, None, plan, CALIBRATION, 4))
    drafted = replace(base, speculative_tokens=3, speculative_acceptance=0.7)
    ahead = solved(search_serving(drafted, H100, None, plan, CALIBRATION, 4))
    assert cached.ttft_s.mean.p50 < plain.ttft_s.mean.p50
    assert ahead.tpot_s.mean.p50 < plain.tpot_s.mean.p50


def test_the_same_question_has_the_same_answer() -> None:
    work = chat(requests_per_s=5.0)
    first = search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION)
    assert repr(first) == repr(search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION))


def test_a_pinned_plan_is_answered_as_by_the_search() -> None:
    plan = ServingPlanRequest(tensor=2, pipeline=1, expert=1, data=1)
    pinned = solved(search_serving(chat(concurrency=64.0), H100, None, plan, CALIBRATION, 2))
    loose = (LatencyObjective(metric="e2e", seconds=1e6, percentile=95.0),)
    searched = solved(search_serving(chat(concurrency=64.0, objectives=loose), H100, None, plan, CALIBRATION, 2))
    assert pinned.output_tokens_per_s == searched.output_tokens_per_s
    assert pinned.tpot_s == searched.tpot_s
    assert pinned.capacity_requests_per_s_per_replica == pytest.approx(
        searched.capacity_requests_per_s_per_replica, rel=0.02
    )


def test_scheduling_beside_the_accelerator_hides_all_of_it_but_what_outlasts_the_kernels() -> None:
    replicas = replicas_of("h100-sxm5-80", "llama3-8b")
    assert replicas is not None
    waits, hides = (
        replace(replicas.costs, overlap=np.full_like(replicas.costs.overlap, share)) for share in (0.0, 1.0)
    )
    n = np.array([[1.0, 32.0, 256.0]]) * np.ones_like(waits.step_s)
    one, other = (step_seconds(c, n, n * 0.0) for c in (waits, hides))
    work = one.total - one.overhead
    scheduling = waits.step_s + waits.sequence_s * n
    np.testing.assert_allclose(one.overhead, scheduling)
    assert (other.total < one.total).all()
    assert (other.total >= np.maximum(work, scheduling)).all()


def test_releases_overlap_scheduling_since_it_became_their_default() -> None:
    def share(stack: str, year: float) -> float:
        formats = Precisions(weights="bf16", activations="bf16", kv="bf16", outside_experts="bf16")
        return CALIBRATION.overlap(
            Situation(accelerator=H100, precisions=formats, stack=stack, released_year=year, experts=0)
        )

    assert share("vllm", 2025.9) == share("sglang", 2024.5) == share("tensorrt-llm", 2024.5) == 0.0
    assert 0.0 < share("vllm", 2026.2) <= 1.0
    assert 0.0 < share("sglang", 2025.5) <= 1.0
    assert 0.0 < share("tensorrt-llm", 2025.7) <= 1.0
