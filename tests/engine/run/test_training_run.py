"""The run-level facade: hours add up, bands are ordered, worse conditions are never better."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.errors import EngineInputError
from app.engine.hardware import Storage
from app.engine.outcome import Infeasible
from app.engine.run import (
    Campaign,
    Checkpointing,
    DataLoading,
    Power,
    Reliability,
    RunConditions,
    RunOutcome,
    run_training,
)
from app.engine.workload import Software
from tests.engine.run.builders import cluster, result, run, workload

STORE = Storage(id="store", kind="parallel", read_bytes_per_s=5e8, write_bytes_per_s=5e8, gpu_direct=False)

CAMPAIGNS = st.builds(
    Campaign,
    full_runs=st.integers(1, 5),
    partial_runs=st.integers(0, 5),
    fraction=st.floats(0.05, 1.0),
    concurrent_runs=st.integers(1, 4),
    reruns_expected=st.floats(0.0, 3.0),
    evaluation_fraction=st.floats(0.0, 0.2),
)


@settings(deadline=None)
@given(CAMPAIGNS, st.integers(1, 20_000), st.floats(1e9, 1e13), st.floats(0.0, 0.5))
def test_hours_add_up_and_bands_are_ordered(
    campaign: Campaign, accelerators: int, tokens: float, spread: float
) -> None:
    conditions = RunConditions(campaign=campaign, storage=STORE, data=DataLoading(bytes_per_token=1000.0))
    outcome = run(conditions, accelerators=accelerators, tokens=tokens, spread=spread)
    assert sum(outcome.hours.values()) == pytest.approx(outcome.duration_hours.p50, rel=1e-9)
    assert min(outcome.hours.values()) >= 0.0
    assert outcome.duration_hours.p10 <= outcome.duration_hours.p50 <= outcome.duration_hours.p90
    assert 0.0 < outcome.goodput <= outcome.accelerator_utilization <= 1.0


@settings(deadline=None)
@given(st.floats(1.0, 1e7), st.integers(1, 512), st.booleans())
def test_a_run_too_short_to_fail_saves_once_and_keeps_its_time(
    tokens: float, accelerators: int, asynchronous: bool
) -> None:
    conditions = RunConditions(checkpointing=Checkpointing(asynchronous=asynchronous))
    outcome = run(conditions, accelerators=accelerators, tokens=tokens)
    assert outcome.goodput > 0.99
    assert outcome.hours["checkpoint"] * 3600 == pytest.approx(outcome.checkpoint_block_s)
    assert outcome.checkpoint_interval_s >= outcome.checkpoint_write_s
    assert outcome.required_storage_write_bytes_per_s <= outcome.checkpoint_bytes / outcome.checkpoint_write_s * 1.001


def test_productive_hours_times_rate_are_the_tokens() -> None:
    outcome = run(tokens=3e12, tokens_per_s=2e6)
    assert outcome.hours["productive"] * 3600 * 2e6 == pytest.approx(3e12)
    assert outcome.tokens_per_s * outcome.run_hours.p50 * 3600 == pytest.approx(3e12)


@settings(deadline=None)
@given(st.floats(1.0, 8.0), st.floats(1.0, 20.0))
def test_worse_conditions_are_never_faster(failures: float, slower: float) -> None:
    usual = RunConditions(storage=STORE, data=DataLoading(bytes_per_token=400.0))
    rates = tuple(failures * r for r in usual.reliability.interruptions_per_accelerator_day)
    failing = replace(usual, reliability=replace(usual.reliability, interruptions_per_accelerator_day=rates))
    starved = replace(usual, storage=replace(STORE, read_bytes_per_s=5e8 / slower))
    base = run(usual, accelerators=2048).run_hours
    for worse in (failing, starved):
        band = run(worse, accelerators=2048).run_hours
        assert band.p50 >= base.p50 * (1 - 1e-9)


@given(st.integers(1, 15_000), st.integers(1, 5_000))
@settings(deadline=None)
def test_goodput_falls_with_size(accelerators: int, more: int) -> None:
    kept = replace(RunConditions(), checkpointing=Checkpointing(interval_s=1800.0, asynchronous=False))
    store = Storage(id="shared", kind="parallel", read_bytes_per_s=1e10, write_bytes_per_s=1e10, gpu_direct=True)
    kept = replace(kept, storage=store)
    # the same work in the same time on a storage slower than any node's link: only the failures grow
    small = run(kept, accelerators=8 * accelerators, parameters=8e9)
    large = run(kept, accelerators=8 * (accelerators + more), parameters=8e9)
    assert large.goodput <= small.goodput * (1 + 1e-6)
    assert large.mean_time_to_interruption_hours < small.mean_time_to_interruption_hours


def test_asynchronous_saving_beats_stopping() -> None:
    stopping = RunConditions(checkpointing=Checkpointing(asynchronous=False))
    assert run(accelerators=512, parameters=7e10).goodput > run(stopping, accelerators=512, parameters=7e10).goodput


def test_adapters_have_small_checkpoints() -> None:
    outcome = run_training(result(1e6), workload(1e9, 7e10, method="lora"), cluster(8), RunConditions())
    assert isinstance(outcome, RunOutcome)
    assert outcome.checkpoint_bytes < 0.01 * 7e10 * 13


def test_a_hopeless_fleet_is_infeasible_with_numbers() -> None:
    broken = Reliability(interruptions_per_accelerator_day=(1.0, 1.0, 1.0))
    outcome = run_training(result(1e8), workload(1e13, 4e11), cluster(16384), RunConditions(reliability=broken))
    assert isinstance(outcome, Infeasible)
    assert outcome.rule == "failures"
    assert outcome.numbers["mean_time_to_interruption_hours"] == pytest.approx(24 / 16384)


def test_an_interval_shorter_than_its_write_is_refused_with_the_nearest() -> None:
    conditions = RunConditions(storage=STORE, checkpointing=Checkpointing(interval_s=60.0))
    outcome = run_training(result(1e6), workload(1e12, 7e10), cluster(64), conditions)
    assert isinstance(outcome, Infeasible)
    assert outcome.rule == "checkpoint_interval"
    again = replace(conditions, checkpointing=Checkpointing(interval_s=float(outcome.nearest["interval_s"])))
    assert isinstance(run_training(result(1e6), workload(1e12, 7e10), cluster(64), again), RunOutcome)


def test_data_that_never_arrives_is_infeasible() -> None:
    data = DataLoading(preprocessing_core_seconds_per_million_tokens=10.0, host_cores_per_accelerator=1.0)
    outcome = run_training(result(1e6), workload(1e12), cluster(64), RunConditions(data=data))
    assert isinstance(outcome, Infeasible)
    assert outcome.rule == "data_stall"


def test_spot_interruptions_lengthen_the_run() -> None:
    spot = Reliability(spot_interruptions_per_node_hour=0.01, spot_replacement_s=600.0)
    assert run(RunConditions(reliability=spot)).run_hours.p50 > run().run_hours.p50


def test_energy_of_an_h100_node_while_training() -> None:
    """Newkirk et al. 2025: 76 % of the rated 10.2 kW; the DGX H100's nameplate over its eight accelerators."""
    power = Power(rated_w_per_accelerator=10200 / 8, power_usage_effectiveness=1.2, grid_kg_co2e_per_kwh=0.4)
    outcome = run(RunConditions(power=power), accelerators=8, tokens=1e12)
    assert outcome.energy is not None
    assert outcome.energy.training_w_per_accelerator * 8 == pytest.approx(7752)
    mean_w = outcome.energy.it_kwh * 1000 / outcome.duration_hours.p50 / 8
    assert 0.95 * 969 < mean_w <= 969
    assert outcome.energy.kwh == pytest.approx(1.2 * outcome.energy.it_kwh)
    assert outcome.energy.kg_co2e == pytest.approx(0.4 * outcome.energy.kwh)


def test_no_carbon_without_an_intensity_and_no_energy_without_a_rating() -> None:
    outcome = run(RunConditions(power=Power(power_usage_effectiveness=1.5)))
    assert outcome.energy is not None
    assert outcome.energy.kg_co2e is None
    unknown = run(RunConditions(power=Power(power_usage_effectiveness=1.5)), accelerator="tpu-v5p")
    assert unknown.energy is None


def test_impossible_surroundings_are_named() -> None:
    with pytest.raises(EngineInputError, match="power_usage_effectiveness"):
        Power(power_usage_effectiveness=0.9)
    with pytest.raises(EngineInputError, match="restart_s"):
        Reliability(restart_s=(3.0, 2.0, 1.0))


def test_naming_the_stack_narrows_the_upper_end_only() -> None:
    job = workload(1e12)
    named = replace(job, software=Software(stack="nemo"))
    bands = []
    for each in (job, named):
        outcome = run_training(result(1e6), each, cluster(64), RunConditions())
        assert isinstance(outcome, RunOutcome)
        bands.append(outcome.run_hours)
    unnamed, sure = bands
    assert unnamed.p50 == sure.p50
    assert unnamed.p10 == sure.p10
    assert unnamed.p90 > 1.2 * sure.p90


def test_a_measured_rate_is_not_widened_by_the_stack() -> None:
    exact = run(spread=0.0).run_hours
    assert exact.p90 < 1.05 * exact.p50


@pytest.mark.parametrize("tokens", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_tokens_are_refused(tokens: float) -> None:
    with pytest.raises(EngineInputError, match="tokens"):
        run(tokens=tokens)
