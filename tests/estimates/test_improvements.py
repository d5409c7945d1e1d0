"""Advice with an effect: every figure is what the engine and pricing say of the changed job."""

from decimal import Decimal
from typing import Any

import pytest

from app.catalog.snapshot import Snapshot
from app.estimates import service, studies
from app.estimates.schemas import EstimateRequest
from tests.estimates.conftest import TODAY, inference, training

ON_DEMAND = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "purchase_models": ["on_demand"]}


def request_of(job: dict[str, Any], **supply: Any) -> EstimateRequest:
    return EstimateRequest.model_validate({"items": [{"job": job, "supply": {**ON_DEMAND, **supply}}]})


def recommended(snapshot: Snapshot, request: EstimateRequest) -> dict[str, Any]:
    content = studies.estimate_with_advice(snapshot, request, TODAY).content
    found: dict[str, Any] = content["items"][0]["options"][0]
    return found


def effects(option: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["code"]: row for row in option["advice"] if "effect" in row}


@pytest.fixture(scope="module")
def option(snapshot: Snapshot) -> dict[str, Any]:
    return recommended(snapshot, request_of(training()))


def test_effects_are_ranked_by_money_saved(option: dict[str, Any]) -> None:
    moved = [Decimal(row["effect"]["money"]["amount"]) for row in option["advice"] if "effect" in row]
    assert len(moved) >= 3
    assert moved == sorted(moved)
    for row in effects(option).values():
        assert row["code"]
        assert row["severity"] in ("info", "warning")
        assert row["trigger"]


def test_an_effect_is_the_difference_of_two_estimates(snapshot: Snapshot, option: dict[str, Any]) -> None:
    found = effects(option)["precision"]
    job = training(precision="fp8") if "fp8" in found["message"] else training(precision="nvfp4")
    again = service.estimate(snapshot, request_of(job, offers=[option["offer"]["id"]]), TODAY)
    changed = again.content["items"][0]["options"][0]
    before, after = (Decimal(o["cost"]["net"]["p50"]["amount"]) for o in (option, changed))
    assert Decimal(found["effect"]["money"]["amount"]) == after - before
    hours = changed["performance"]["duration_hours"]["p50"] - option["performance"]["duration_hours"]["p50"]
    assert found["effect"]["hours"] == pytest.approx(hours)


def test_spot_is_offered_with_its_caution(option: dict[str, Any]) -> None:
    spot = effects(option)["spot_with_checkpoints"]
    assert Decimal(spot["effect"]["money"]["amount"]) < 0
    assert "interruptions" in spot["message"]


def test_a_poor_pinned_plan_is_told_what_to_change(snapshot: Snapshot) -> None:
    plan = {"tensor": 8, "pipeline": 8, "virtual_pipeline": 1, "data": 1, "micro_batch_sequences": 1}
    found = effects(recommended(snapshot, request_of(training(plan=plan))))
    assert {"fewer_stages", "searched_plan"} <= found.keys()
    assert found["searched_plan"]["effect"]["hours"] < 0.0
    assert found["searched_plan"]["trigger"]["plan"]["pipeline"] == 8


def test_a_searched_plan_is_not_second_guessed(option: dict[str, Any]) -> None:
    assert not {"fewer_stages", "searched_plan", "larger_micro_batch"} & effects(option).keys()


def test_a_job_that_waits_for_its_data_is_told_to_prepare_it(snapshot: Snapshot) -> None:
    job = training(data={"preprocessing_core_seconds_per_million_tokens": 6000})
    found = effects(recommended(snapshot, request_of(job)))
    assert found["prepare_data"]["effect"]["hours"] < 0.0
    assert found["prepare_data"]["trigger"]["stall_share"] > 0.0


def test_a_service_is_told_of_narrower_weights(snapshot: Snapshot) -> None:
    request = EstimateRequest.model_validate(
        {
            "items": [
                {
                    "job": inference(precision={"weights": "bf16", "activations": "bf16"}),
                    "supply": {"accelerators": ["h100-sxm5-80"], "purchase_models": ["on_demand"]},
                }
            ]
        }
    )
    found = effects(recommended(snapshot, request))
    assert found["precision"]["effect"]["hours"] is None
    assert Decimal(found["precision"]["effect"]["money"]["amount"]) < 0


def test_the_quotes_content_stays_free_of_effects(snapshot: Snapshot) -> None:
    stored = service.estimate(snapshot, request_of(training()), TODAY).content["items"][0]["options"][0]
    assert not effects(stored)


def test_the_same_request_has_the_same_advice(snapshot: Snapshot, option: dict[str, Any]) -> None:
    studies._remembered.clear()
    assert recommended(snapshot, request_of(training()))["advice"] == option["advice"]
