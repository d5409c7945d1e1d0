"""Facade of the serving engine: regimes, infeasible jobs, laws."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from app.catalog.shipped import shipped_accelerators, shipped_models
from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.search import search_serving
from app.engine.workload import LatencyObjective, Lengths, ServingPlanRequest, ServingWorkload

CALIBRATION = ServingCalibration.from_mapping(
    json.loads(files("app.catalog").joinpath("data", "calibration", "serving.json").read_text(encoding="utf-8"))
)
CHIPS = shipped_accelerators()
H100 = CHIPS["h100-sxm5-80"]
ONE = ServingPlanRequest(tensor=1, pipeline=1, expert=1, data=1)


def chat(model: str = "llama3-70b", precision: str = "fp8", **fields: object) -> ServingWorkload:
    base: dict[str, object] = {
        "transformer": shipped_models()[model],
        "input_tokens": Lengths(mean=1024.0, p95=3000.0),
        "output_tokens": Lengths(mean=256.0, p95=600.0),
        "weights_precision": precision,
        "activations_precision": precision,
        "kv_precision": precision,
    }
    return ServingWorkload(**{**base, **fields})  # type: ignore[arg-type]


def solved(outcome: ServingResult | Infeasible) -> ServingResult:
    assert isinstance(outcome, ServingResult), outcome
    return outcome


def refused(outcome: ServingResult | Infeasible) -> Infeasible:
    assert isinstance(outcome, Infeasible), outcome
    return outcome


def test_a_model_that_does_not_fit_names_the_missing_bytes() -> None:
    outcome = refused(search_serving(chat(precision="bf16", concurrency=8.0), H100, None, ONE, CALIBRATION))
    assert outcome.rule == "memory"
    assert outcome.numbers["missing_bytes"] > 60e9


def test_lengths_beyond_the_context_are_refused_before_any_hardware() -> None:
    short = replace(shipped_models()["llama3-70b"], context=8192)
    long = chat(transformer=short, input_tokens=Lengths(mean=9000.0), concurrency=1.0)
    assert refused(search_serving(long, H100, None, ServingPlanRequest(), CALIBRATION)).rule == "context"


def test_an_objective_below_the_floor_names_bytes_and_bandwidth() -> None:
    fast = chat(concurrency=4.0, objectives=(LatencyObjective(metric="tpot", seconds=0.0005, percentile=95.0),))
    outcome = refused(search_serving(fast, H100, None, ServingPlanRequest(), CALIBRATION))
    assert outcome.rule == "objective"
    assert outcome.numbers["memory_bandwidth_bytes_per_s"] == H100.memory_bandwidth_bytes_per_s
    assert outcome.numbers["best_s"] > 0.0005


def test_too_much_traffic_for_a_given_fleet_is_saturation_not_an_error() -> None:
    result = solved(search_serving(chat(requests_per_s=1e4), H100, None, ServingPlanRequest(), CALIBRATION, 8))
    assert result.saturated
    assert result.utilization > 1.0
    assert result.requests_per_s < 1e4


def test_a_sized_fleet_holds_its_objectives() -> None:
    objectives = (
        LatencyObjective(metric="ttft", seconds=0.5, percentile=95.0),
        LatencyObjective(metric="tpot", seconds=0.04, percentile=95.0),
    )
    work = chat(requests_per_s=20.0, peak_to_mean=2.0, objectives=objectives)
    result = solved(search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION))
    assert result.ttft_s.p95 <= 0.5
    assert result.tpot_s.p95 <= 0.04
    assert not result.saturated


@pytest.mark.parametrize("field", ["memory_bandwidth_bytes_per_s", "scale_up_bytes_per_s_per_accelerator"])
def test_a_faster_part_is_never_slower(field: str) -> None:
    plan = ServingPlanRequest(tensor=4, pipeline=1, expert=1, data=1)
    work = chat(concurrency=64.0)
    better = replace(H100, **{field: getattr(H100, field) * 1.5})
    slow = solved(search_serving(work, H100, None, plan, CALIBRATION, 4))
    fast = solved(search_serving(work, better, None, plan, CALIBRATION, 4))
    assert fast.output_tokens_per_s.p50 >= slow.output_tokens_per_s.p50


@pytest.mark.parametrize("chip", ["h100-sxm5-80", "b200-sxm-180", "mi300x", "a100-sxm4-80"])
def test_decode_never_beats_the_bytes_it_must_read(chip: str) -> None:
    part = CHIPS[chip]
    result = solved(search_serving(chat(concurrency=1.0), part, None, ServingPlanRequest(), CALIBRATION, 8))
    weights = result.memory_breakdown_bytes["weights"] * result.plan.pipeline
    head = 2.0 * 128256 * 8192 / result.plan.tensor  # the input embedding is looked up, not read
    assert result.tpot_s.mean.p50 >= (weights - head) / part.memory_bandwidth_bytes_per_s


def test_memory_and_time_breakdowns_add_up() -> None:
    result = solved(search_serving(chat(concurrency=64.0), H100, None, ServingPlanRequest(), CALIBRATION, 4))
    assert sum(result.memory_breakdown_bytes.values()) == pytest.approx(H100.memory_bytes)
    assert min(result.memory_breakdown_bytes.values()) >= 0.0
    assert sum(result.time_breakdown.values()) == pytest.approx(1.0)
    assert result.requests_per_s * 256.0 == pytest.approx(result.output_tokens_per_s.p50)


def test_prefill_and_decode_replicas_serve_as_one_group() -> None:
    plan = ServingPlanRequest(tensor=4, pipeline=1, expert=1, data=1, prefill_replicas=1, decode_replicas=2)
    result = solved(search_serving(chat(requests_per_s=5.0), H100, None, plan, CALIBRATION))
    assert result.accelerators_per_replica == 12
    assert result.plan.prefill_replicas == 1
    assert result.requests_per_s == pytest.approx(5.0)
