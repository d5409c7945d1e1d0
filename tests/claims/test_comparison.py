"""One job on several supplies."""

from typing import Any

import pytest

from app.catalog.snapshot import Snapshot
from app.claims.comparison import compare
from app.claims.schemas import ComparisonRequest
from app.foundation.problems import Problem
from tests.claims.conftest import SERVING, TODAY, TRAINING

ON_DEMAND = {"purchase_models": ["on_demand"]}
H100 = {"name": "H100", "accelerators": ["h100-sxm5-80"], **ON_DEMAND}
B200 = {"name": "B200", "accelerators": ["b200-sxm-180"], **ON_DEMAND}


def compared(snapshot: Snapshot, **body: Any) -> dict[str, Any]:
    whole = {"job": TRAINING, "supplies": [H100, B200], "accelerator_count": 64, **body}
    return compare(snapshot, ComparisonRequest.model_validate(whole), TODAY)


@pytest.fixture(scope="module")
def answer(snapshot: Snapshot) -> dict[str, Any]:
    return compared(snapshot, scaling="full")


def test_every_row_has_time_money_energy_and_campaign(answer: dict[str, Any]) -> None:
    assert [row["name"] for row in answer["supplies"]] == ["H100", "B200"]
    for row in answer["supplies"]:
        assert row["cost"]["net"]["p50"]["currency"] == "USD"
        assert row["cost_per_million_tokens"]["p10"] < row["cost_per_million_tokens"]["p90"]
        assert row["energy"]["kwh"] > 0.0
        assert row["energy"]["kg_co2e"] is None
        assert row["energy"]["carbon_status"].startswith("unknown")
        assert row["campaign"]["experiments_per_million"] > 0.0
        assert row["minimum_model_parallel_size"] >= 1


def test_scaling_curves_reach_the_largest_cluster_and_fall(answer: dict[str, Any]) -> None:
    for row in answer["supplies"]:
        strong, weak = row["scaling"]["strong"], row["scaling"]["weak"]
        assert strong[-1]["accelerators"] == 16_384
        known = [p["efficiency"] for p in strong if p["efficiency"] is not None]
        assert known[0] == 1.0
        assert known[-1] < 0.5
        at_most = {p["accelerators"]: p["efficiency"] for p in weak}
        assert at_most[16_384] > known[-1]


def test_break_even_price_makes_the_costs_equal(answer: dict[str, Any]) -> None:
    first, second = answer["supplies"]
    even = second["against_first"]["break_even"]["price_per_accelerator_hour"]
    scale = float(even["amount"]) / float(even["now"]["amount"])
    mine = float(second["cost"]["net"]["p50"]["amount"]) * scale
    assert mine == pytest.approx(float(first["cost"]["net"]["p50"]["amount"]), rel=1e-3)
    assert even["wins_now"] is (scale > 1.0)


def test_break_even_fleet_is_the_smallest_that_keeps_the_time(answer: dict[str, Any]) -> None:
    fleet = answer["supplies"][1]["against_first"]["break_even"]["fleet"]
    assert fleet["duration_hours"] <= fleet["first_duration_hours"]
    assert fleet["accelerators"] < fleet["first_accelerators"]


def test_precision_and_ownership_are_supplies_too(snapshot: Snapshot) -> None:
    owned = {"name": "owned", "accelerators": ["h100-sxm5-80"], "purchase_models": ["owned"]}
    rows = compared(snapshot, supplies=[H100, {**H100, "name": "fp8", "precision": "fp8"}, owned], scaling="none")[
        "supplies"
    ]
    assert rows[1]["performance"]["duration_hours"]["p50"] < rows[0]["performance"]["duration_hours"]["p50"]
    assert rows[2]["offer"]["purchase_model"] == "owned"
    assert all(row["scaling"] is None for row in rows)


def test_carbon_is_known_where_the_grid_is(snapshot: Snapshot) -> None:
    rows = compared(snapshot, supplies=[{**H100, "grid_kg_co2e_per_kwh": 0.5}], scaling="none")["supplies"]
    assert rows[0]["energy"]["kg_co2e"] == pytest.approx(0.5 * rows[0]["energy"]["kwh"], rel=1e-4)


def test_a_supply_that_cannot_run_it_says_why_and_the_others_are_answered(snapshot: Snapshot) -> None:
    big = {"kind": "training", "model": {"parameters": 1e11}, "tokens": 1e9}
    few = {**B200, "accelerator_count": 1}
    rows = compared(snapshot, job=big, supplies=[few, {**B200, "accelerator_count": 64}], scaling="none")["supplies"]
    assert not rows[0]["feasible"]
    assert "missing" in rows[0]["reason"]
    assert rows[1]["feasible"]


def test_serving_is_compared_too(snapshot: Snapshot) -> None:
    rows = compared(snapshot, job=SERVING, accelerator_count=None)["supplies"]
    for row in rows:
        assert row["performance"]["output_tokens_per_second_per_accelerator"]["p50"] > 0.0
        assert row["campaign"] is None
        assert row["scaling"] is None


def test_a_job_without_work_is_refused(snapshot: Snapshot) -> None:
    with pytest.raises(Problem) as refusal:
        compared(snapshot, job={"kind": "training", "model": {"parameters": 1e10}})
    assert refusal.value.errors[0].pointer == "/job/tokens"


def test_an_unknown_part_is_refused_where_it_stands(snapshot: Snapshot) -> None:
    with pytest.raises(Problem) as refusal:
        compared(snapshot, supplies=[H100, {"accelerators": ["b2000"]}])
    assert refusal.value.errors[0].pointer == "/supplies/1/accelerators/0"
