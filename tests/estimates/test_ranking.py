"""What is recommended: options that carry the load first, and nothing recommended that does not."""

from typing import Any

import pytest
from pydantic import ValidationError

from app.estimates.schemas import EstimateRequest
from app.foundation.problems import Problem
from tests.estimates.conftest import Answer

H100 = {"accelerators": ["h100-sxm5-80"]}


def serving(requests_per_second: float, model: str = "llama3-8b", **job: Any) -> dict[str, Any]:
    traffic = {"requests_per_second": requests_per_second, "input_tokens": 1000, "output_tokens": 200}
    return {"kind": "inference", "model": {"ref": model}, "traffic": traffic, **job}


def pretraining(tokens: float | None) -> dict[str, Any]:
    job = {"kind": "training", "model": {"ref": "llama3-8b"}}
    return job if tokens is None else {**job, "tokens": tokens}


def item_of(answer: Answer, job: dict[str, Any], **parts: Any) -> Any:
    return answer({"items": [{"job": job, **parts}]}).content["items"][0]


def test_what_cannot_carry_the_load_is_not_recommended(answer: Answer) -> None:
    content = answer({"items": [{"job": serving(500), "supply": {**H100, "accelerator_count": 1}}]}).content
    item = content["items"][0]
    assert item["selected_option_id"] is None
    assert not any(option["recommended"] for option in item["options"])
    assert {a["code"] for a in item["options"][0]["advice"] if a["severity"] == "critical"} == {"saturated"}
    assert content["totals"] is None
    assert "no option carries the load" in content["completeness"]["unpriced_lines"][0]["reason"]


def test_saturated_options_rank_behind_all_that_carry_the_load(answer: Answer) -> None:
    plan = {"tensor": 8, "disaggregated": {"prefill_replicas": 1, "decode_replicas": 2}}
    item = item_of(answer, serving(20, "llama3-70b", plan=plan), supply=H100)
    saturated = [option["performance"]["saturated"] for option in item["options"]]
    assert saturated == sorted(saturated)
    assert item["options"][0]["recommended"] is not saturated[0]
    for option in item["options"]:
        shown = option["performance"]
        assert shown["utilization"] == pytest.approx(20 / shown["capacity_requests_per_second_per_replica"], rel=1e-3)
        assert shown["saturated"] == (shown["utilization"] > 1.0)


def test_most_tokens_come_first_where_tokens_are_solved_for(answer: Answer) -> None:
    constraints = {"solve_for": "tokens", "deadline_hours": 100, "budget": {"amount": "5000", "currency": "USD"}}
    item = item_of(answer, pretraining(None), constraints=constraints)
    tokens = [option["performance"]["tokens"] for option in item["options"]]
    assert len(set(tokens)) > 1
    assert tokens == sorted(tokens, reverse=True)


def test_most_users_come_first_where_users_are_solved_for(answer: Answer) -> None:
    traffic = {"input_tokens": 1000, "output_tokens": 300}
    job = {"kind": "inference", "model": {"ref": "llama3-70b"}, "traffic": traffic, "slo": {"tpot_ms": {"p95": 40}}}
    item = item_of(
        answer,
        job,
        supply={**H100, "accelerator_count": 8},
        constraints={"solve_for": "concurrency", "max_options": 30},
    )
    users = [o["performance"]["concurrency"] for o in item["options"]]
    assert len(set(users)) > 1
    assert users == sorted(users, reverse=True)


def test_carbon_without_the_grid_is_refused_and_says_which_field_is_missing(answer: Answer) -> None:
    with pytest.raises(Problem) as refused:
        item_of(answer, pretraining(1e9), supply=H100, objective="carbon")
    assert [e.pointer for e in refused.value.errors] == ["/items/0/supply/grid_kg_co2e_per_kwh"]
    item = item_of(answer, pretraining(1e9), supply={**H100, "grid_kg_co2e_per_kwh": 0.4}, objective="carbon")
    emitted = [option["energy"]["kg_co2e"] for option in item["options"]]
    assert emitted == sorted(emitted)


def test_the_output_rate_never_exceeds_what_is_asked_for(answer: Answer) -> None:
    item = item_of(answer, serving(20), supply=H100)
    shown = item["options"][0]["performance"]
    assert not shown["saturated"]
    assert shown["output_tokens_per_second"]["p90"] == pytest.approx(20 * 200)


def test_hourly_replicas_keep_the_headroom_the_fleet_is_sized_with(answer: Answer) -> None:
    job = serving(400, availability={"autoscaling": "hourly"})
    job["traffic"]["hourly_weights"] = [1, 2, 3, 4] * 6
    item = item_of(answer, job, supply=H100)
    for option in item["options"]:
        capacity = option["performance"]["capacity_requests_per_second_per_replica"]
        replicas = option["configuration"]["fleet"]["hourly_replicas"]["p50"]
        rates = [400 * weight / 2.5 for weight in [1, 2, 3, 4] * 6]
        assert all(rate / (n * capacity) <= 0.85 + 1e-6 for rate, n in zip(rates, replicas, strict=True))


def best_net(answer: Answer, tokens: float, **parts: Any) -> float:
    return float(item_of(answer, pretraining(tokens), **parts)["options"][0]["cost"]["totals"]["net"]["amount"])


@pytest.mark.parametrize(
    ("tokens", "supply", "constraints"),
    [
        (1e11, {}, {"deadline_hours": 200}),
        (1e11, {}, {"deadline_hours": 50}),
        (1e10, H100, {"deadline_hours": 100}),
        (1e9, {**H100, "accelerator_count": 8}, {}),
        (1e9, {**H100, "accelerator_count": 64}, {}),
        (1e11, {**H100, "accelerator_count": 16}, {}),
    ],
)
def test_no_constraint_finds_a_cheaper_option_than_the_free_question(
    answer: Answer, tokens: float, supply: dict[str, Any], constraints: dict[str, Any]
) -> None:
    free = {name: value for name, value in supply.items() if name != "accelerator_count"}
    constrained = best_net(answer, tokens, supply=supply, constraints=constraints)
    assert best_net(answer, tokens, supply=free) <= constrained


def test_objective_time_finds_larger_fleets_within_the_budget(answer: Answer) -> None:
    fast = item_of(answer, pretraining(1e11), supply=H100, objective="time")["options"][0]
    fixed = item_of(answer, pretraining(1e11), supply={**H100, "accelerator_count": 64}, objective="time")["options"][0]
    assert fast["performance"]["duration_hours"]["p50"] <= fixed["performance"]["duration_hours"]["p50"]
    assert fast["configuration"]["accelerators"] > 64
    limit = {"budget": {"amount": "5500", "currency": "USD"}}
    kept = item_of(answer, pretraining(1e11), supply=H100, objective="time", constraints=limit)["options"][0]
    assert float(kept["cost"]["totals"]["net"]["amount"]) <= 5500
    assert kept["configuration"]["accelerators"] < fast["configuration"]["accelerators"]


@pytest.mark.parametrize("terms", [{"discount": "0.1"}, {"markup": "0.2"}, {"markup": "0.2", "contingency": "0.05"}])
def test_the_budget_is_kept_in_the_terms_of_the_offer(answer: Answer, terms: dict[str, str]) -> None:
    limit = {"budget": {"amount": "6200", "currency": "USD"}}
    item = {"job": pretraining(1e11), "supply": H100, "objective": "time", "constraints": limit}
    options = answer({"items": [item], "terms": terms}).content["items"][0]["options"]
    assert all(float(option["cost"]["totals"]["net"]["amount"]) <= 6200 for option in options)


@pytest.mark.parametrize("least", [1, 4, 16])
def test_replicas_that_run_in_any_case_share_the_load(answer: Answer, least: int) -> None:
    job = serving(10, "llama3-70b", availability={"minimum_replicas": least})
    for option in item_of(answer, job, supply=H100)["options"]:
        shown, fleet = option["performance"], option["configuration"]["fleet"]
        assert shown["replicas"] == fleet["replicas"]["p50"] >= least
        assert shown["concurrency"] == pytest.approx(shown["replicas"] * shown["concurrency_per_replica"], rel=1e-3)
        used = 10 / (shown["replicas"] * shown["capacity_requests_per_second_per_replica"])
        assert shown["utilization"] == pytest.approx(used, rel=1e-3)
        rate = shown["output_tokens_per_second"]["p50"] / option["configuration"]["accelerators"]
        assert shown["output_tokens_per_second_per_accelerator"]["p50"] == pytest.approx(rate, rel=1e-3)


def test_more_replicas_than_accelerators_are_refused(answer: Answer) -> None:
    job = serving(10, "llama3-70b", availability={"minimum_replicas": 16}, plan={"tensor": 2})
    with pytest.raises(Problem) as refused:
        item_of(answer, job, supply={**H100, "accelerator_count": 8})
    assert "16 replicas of" in refused.value.detail


@pytest.mark.parametrize(
    ("model", "weights"), [("gpt-oss-120b", "mxfp4"), ("deepseek-v3", "fp8"), ("llama3-70b", "fp8")]
)
def test_auto_serves_the_published_format(answer: Answer, model: str, weights: str) -> None:
    option = item_of(answer, serving(2, model), supply=H100)["options"][0]
    assert option["configuration"]["precision"]["weights"] == weights


def test_offline_and_a_concurrency_are_two_questions() -> None:
    traffic = {"concurrency": 1, "offline": True, "input_tokens": 1000, "output_tokens": 200}
    with pytest.raises(ValidationError, match="give concurrency or offline"):
        EstimateRequest.model_validate({"items": [{"job": {**serving(1), "traffic": traffic}}]})
