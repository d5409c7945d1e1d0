"""Claims end to end over the shipped catalog."""

from typing import Any

import pytest

from app.foundation.problems import Problem
from tests.claims.conftest import B200, SERVING, TRAINING, Judge


def hours(judge_one: Judge, **claim: Any) -> dict[str, Any]:
    return judge_one({"metric": "duration_hours", "accelerator_count": 64, "job": TRAINING, **claim})


def test_a_prediction_is_the_ratio_of_its_sides_and_moves_with_the_claim(judge_one: Judge) -> None:
    row = hours(judge_one, relation="ratio", low=0.0, high=10.0)
    assert row["verdict"] == "supported"
    band = row["predicted"]
    assert band["p10"] < band["p50"] < band["p90"]
    expected = row["candidate"]["value"]["p50"] / row["baseline"]["value"]["p50"]
    assert band["p50"] == pytest.approx(expected, rel=1e-4)
    assert row["shared_error"] == pytest.approx(0.25)
    assert hours(judge_one, relation="ratio", low=0.0, high=band["p10"] * 0.9)["verdict"] == "contradicted"
    assert hours(judge_one, relation="ratio", low=0.0, high=band["p50"] * 0.97)["verdict"] == "optimistic"
    assert hours(judge_one, relation="ratio", low=band["p90"] * 1.1, high=9.0)["verdict"] == "pessimistic"


def test_percent_change_is_the_ratio_less_one(judge_one: Judge) -> None:
    ratio = hours(judge_one, relation="ratio", low=0.0, high=1.0)["predicted"]
    change = hours(judge_one, relation="percent_change", low=-100.0, high=0.0)["predicted"]
    assert change["p50"] == pytest.approx(100.0 * (ratio["p50"] - 1.0), abs=1e-3)


def test_the_same_supply_on_both_sides_is_no_change_at_all(judge_one: Judge) -> None:
    claim = {"metric": "duration_hours", "relation": "ratio", "equals": 1.0, "accelerator_count": 64, "job": TRAINING}
    row = judge_one(claim, baseline=B200)
    assert row["verdict"] == "supported"
    assert row["predicted"] == {"p10": 1.0, "p50": 1.0, "p90": 1.0}


def test_a_condition_under_which_the_claim_holds_is_itself_supported(judge_one: Judge) -> None:
    row = hours(judge_one, relation="ratio", low=0.0, high=0.42)
    assert row["verdict"] in ("optimistic", "contradicted", "not_decidable")
    changes = row["condition"]["changes"]
    assert changes["precision"] in ("fp8", "nvfp4")
    claim = {"metric": "duration_hours", "relation": "ratio", "low": 0.0, "high": 0.42, "accelerator_count": 64}
    again = judge_one({**claim, "job": {**TRAINING, "precision": changes["precision"]}, "baseline_job": TRAINING})
    assert again["verdict"] in ("supported", "pessimistic")
    assert again["predicted"]["p50"] == pytest.approx(row["condition"]["predicted"]["p50"])


def test_full_fine_tuning_of_a_hundred_billion_on_one_card_is_refused_with_the_bytes(judge_one: Judge) -> None:
    job = {"kind": "training", "model": {"parameters": 1e11}, "tokens": 1e9, "method": "full_finetune"}
    row = judge_one({"metric": "feasible", "relation": "absolute", "equals": 1.0, "accelerator_count": 1, "job": job})
    assert row["verdict"] == "contradicted"
    assert row["candidate"]["numbers"]["needed_bytes"] > 200e9
    assert row["condition"]["changes"]["accelerator_count"] > 1


def test_a_peak_is_a_fact_with_sources(judge_one: Judge) -> None:
    row = judge_one({"metric": "peak_flops", "precision": "fp8", "relation": "ratio", "equals": 2.5})
    assert row["verdict"] == "contradicted"
    assert row["predicted"]["p50"] == pytest.approx(4500 / 1979, rel=1e-4)
    assert all(e["sources"] for e in row["evidence"] if e["kind"] == "catalog")
    assert row["condition"]["changes"]["accelerator"].startswith("gb200")


def test_a_specification_in_words_is_matched_with_a_checked_statement(judge_one: Judge) -> None:
    row = judge_one({"metric": "specification", "text": "NVLink-C2C and fourth-generation NVSwitch improved on B200"})
    assert row["verdict"] == "contradicted"
    assert row["evidence"][0]["sources"]
    unknown = judge_one({"metric": "specification", "text": "It is painted green"})
    assert unknown["verdict"] == "not_decidable"


def test_money_is_judged_over_sellers_and_gives_the_price_that_would_do(judge_one: Judge) -> None:
    claim = {"metric": "cost_per_million_tokens", "relation": "percent_change", "low": -95.0, "high": -90.0}
    row = judge_one({**claim, "accelerator_count": 64, "job": TRAINING})
    assert row["verdict"] == "contradicted"
    assert any(e["kind"] == "price" and e["source"] for e in row["evidence"])
    price = row["condition"]["changes"]["price_per_accelerator_hour"]
    assert 0.0 < float(price["amount"]) < 4.0


def test_serving_latency_and_speed_are_judged(judge_one: Judge) -> None:
    for metric, low, high in (("ttft_ms", 0.0, 1e6), ("output_tokens_per_second_per_accelerator", 0.1, None)):
        row = judge_one({"metric": metric, "relation": "absolute", "low": low, "high": high, "job": SERVING})
        assert row["verdict"] == "supported"
        assert row["predicted"]["p10"] < row["predicted"]["p90"]


def test_two_utilisations_need_no_job(judge_one: Judge) -> None:
    claim = {"metric": "duration_hours", "relation": "ratio", "equals": 0.5}
    stated = judge_one({**claim, "utilization": {"baseline": 0.6, "candidate": 0.9}})
    told = judge_one({**claim, "text": "raising utilisation from 60 to 90 percent halves the cycle"})
    for row in (stated, told):
        assert row["verdict"] == "contradicted"
        assert row["predicted"]["p50"] == pytest.approx(2.0 / 3.0, rel=1e-4)
    assert told["assumptions"][0]["source"] == "read from the claim's text"


def test_inference_against_training_needs_both_items(judge_one: Judge) -> None:
    claim = {"metric": "lifetime_inference_over_training", "relation": "absolute", "low": 1.0}
    assert judge_one(claim)["missing"] == ["items"]
    items = [{"id": "train", "job": TRAINING}, {"id": "serve", "job": SERVING}]
    row = judge_one({**claim, "items": items})
    assert row["verdict"] in ("supported", "optimistic", "contradicted", "not_decidable")
    assert row["condition"]["changes"]["months"] == pytest.approx(12.0 / row["predicted"]["p50"], rel=1e-3)


def test_a_claim_without_a_job_is_not_decidable_and_says_so(judge_one: Judge) -> None:
    row = judge_one({"metric": "duration_hours", "relation": "ratio", "high": 0.5})
    assert (row["verdict"], row["missing"]) == ("not_decidable", ["job"])


UNKNOWN_MODEL = {"kind": "training", "model": {"ref": "llama-99"}, "tokens": 1e9}
NO_TOKENS = {"kind": "training", "model": {"parameters": 1e10}}


@pytest.mark.parametrize(
    ("claim", "body", "pointer", "code"),
    [
        ({"metric": "duration_hours", "relation": "ratio", "high": 0.5, "job": TRAINING}, {"baseline": None},
         "/baseline", "missing_baseline"),
        ({"metric": "duration_hours", "relation": "ratio", "job": TRAINING}, {}, "/claims/0/low", "missing_range"),
        ({"metric": "duration_hours", "high": 1.0, "job": TRAINING}, {}, "/claims/0/relation", "missing_relation"),
        ({"metric": "speediness", "relation": "ratio", "high": 1.0}, {}, "/claims/0/metric", "unknown_metric"),
        ({"metric": "ttft_ms", "relation": "ratio", "high": 1.0, "job": TRAINING}, {}, "/claims/0/metric",
         "metric_not_applicable"),
        ({"metric": "duration_hours", "relation": "ratio", "high": 1.0, "job": SERVING}, {}, "/claims/0/metric",
         "metric_not_applicable"),
        ({"metric": "feasible", "relation": "ratio", "equals": 1.0, "job": TRAINING}, {}, "/claims/0/relation",
         "relation_not_applicable"),
        ({"metric": "duration_hours", "relation": "ratio", "low": -1.0, "job": TRAINING}, {}, "/claims/0/low",
         "impossible_range"),
        ({"metric": "duration_hours", "relation": "absolute", "high": 1.0, "job": TRAINING},
         {"baseline": None, "candidate": None}, "/candidate", "missing_candidate"),
        ({"metric": "peak_flops", "relation": "ratio", "equals": 2.0},
         {"candidate": {"accelerators": ["b200-sxm-180", "gb200-186"]}}, "/candidate/accelerators",
         "missing_accelerator"),
        ({"metric": "duration_hours", "relation": "ratio", "high": 1.0, "job": TRAINING},
         {"candidate": {"accelerators": ["b2000"]}}, "/candidate/accelerators/0", "unknown_accelerator"),
        ({"metric": "cost", "relation": "ratio", "high": 1.0, "job": TRAINING},
         {"baseline": {"accelerators": ["h1000"]}}, "/baseline/accelerators/0", "unknown_accelerator"),
        ({"metric": "duration_hours", "relation": "ratio", "high": 1.0, "job": UNKNOWN_MODEL}, {},
         "/claims/0/job/model/ref", "unknown_model"),
        ({"metric": "duration_hours", "relation": "ratio", "high": 1.0, "job": NO_TOKENS}, {}, "/claims/0/job/tokens",
         "missing_tokens"),
    ],
)  # fmt: skip
def test_bad_claims_are_refused_with_what_is_missing(
    judge_one: Judge, claim: dict[str, Any], body: dict[str, Any], pointer: str, code: str
) -> None:
    with pytest.raises(Problem) as refusal:
        judge_one(claim, **body)
    assert refusal.value.slug == "validation-failed"
    assert [(e.pointer, e.code) for e in refusal.value.errors] == [(pointer, code)]


def test_reasons_are_given_in_both_languages(judge_one: Judge) -> None:
    reason = hours(judge_one, relation="ratio", low=0.0, high=0.9)["reason"]
    assert reason["en"].endswith(".")
    assert reason["zh-CN"].endswith("。")


@pytest.mark.parametrize(
    ("metric", "job"),
    [
        ("time_breakdown.matmul", TRAINING),
        ("memory_breakdown_bytes.weights", TRAINING),
        ("data_stall_share", TRAINING),
        ("energy_kwh", TRAINING),
        ("minimum_model_parallel_size", TRAINING),
        ("weak_scaling_efficiency", TRAINING),
        ("cost_per_experiment", TRAINING),
        ("kv_cache_tokens", SERVING),
        ("memory_breakdown_bytes.weights", SERVING),
        ("cost_per_million_output_tokens", SERVING),
    ],
)
def test_any_figure_of_an_estimate_can_be_claimed(judge_one: Judge, metric: str, job: dict[str, Any]) -> None:
    count = {"accelerator_count": 64} if job is TRAINING else {}
    row = judge_one({"metric": metric, "relation": "absolute", "low": -1.0, "high": 1e30, "job": job, **count})
    assert row["verdict"] == "supported", row["reason"]
    assert row["predicted"]["p50"] >= 0.0
