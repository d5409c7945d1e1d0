"""Whole estimates over the shipped catalog: both kinds of job, money that adds up, and a replay without the engine."""

import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from app.catalog.snapshot import Snapshot
from app.estimates import service
from app.estimates.schemas import EstimateRequest
from app.foundation.canonical import canonical_bytes
from tests.estimates.conftest import TODAY, Answer, body, inference, training

BODIES = {
    "training": body(training()),
    "inference": body(inference()),
    "owned": body(
        training(), supply={"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "purchase_models": ["owned"]}
    ),
    "incomplete": body(training(data={"storage": "weka"}), supply={"accelerators": ["h100-sxm5-80"]}),
    "spot and reserved": body(training(), supply={"purchase_models": ["spot", "reserved_1y", "owned"]}),
    "by the hour": body(
        inference(
            traffic={
                "requests_per_second": 40,
                "input_tokens": 1000,
                "output_tokens": 500,
                "hourly_weights": [1, 2, 3, 4] * 6,
            },
            availability={"autoscaling": "hourly", "spare_replicas": 1},
        )
    ),
    "split at p50, whole at p90": body(
        inference(traffic={"requests_per_second": 3, "input_tokens": 20000, "output_tokens": 500}),
        supply={"accelerators": ["h200-sxm-141"], "providers": ["verda"]},
    ),
    "yuan": body(
        training(),
        terms={"currency": "CNY", "markup": "0.15", "discount": "0.05", "contingency": "0.10", "tax_region": "CN"},
    ),
}


@pytest.mark.parametrize("name", sorted(BODIES))
def test_lines_add_up_to_totals_and_totals_to_the_gross(answer: Answer, name: str) -> None:
    estimate = answer(BODIES[name])
    for option in estimate.content["items"][0]["options"]:
        cost = option["cost"]
        if cost["totals"] is None:
            continue
        totals = cost["totals"]
        months = Decimal(totals["tco_horizon_months"] or 1)
        sums = {charge: Decimal(0) for charge in ("one_off", "recurring", "usage")}
        for line in cost["lines"]:
            sums[line["charge"]] += Decimal(line["net"]["amount"])
            assert line["price_evidence"] or line["kind"] == "contingency"
        assert sums["one_off"] == Decimal(totals["one_off"]["amount"])
        assert sums["recurring"] == Decimal(totals["recurring_monthly"]["amount"])
        assert sums["usage"] == Decimal(totals["usage"]["amount"])
        net = sums["one_off"] + sums["usage"] + sums["recurring"] * months
        assert net == Decimal(totals["net"]["amount"])
        if totals["gross"] is not None:
            tax = sum(Decimal(t["amount"]["amount"]) for t in totals["tax"])
            assert Decimal(totals["gross"]["amount"]) == net + tax
        assert Decimal(cost["net"]["p10"]["amount"]) <= net <= Decimal(cost["net"]["p90"]["amount"])


@pytest.mark.parametrize("name", sorted(BODIES))
def test_money_replays_from_stored_engine_outputs_to_the_same_bytes(
    answer: Answer, snapshot: Snapshot, name: str
) -> None:
    estimate = answer(BODIES[name])
    stored = json.loads(canonical_bytes(estimate.engine_outputs))
    request = EstimateRequest.model_validate(json.loads(canonical_bytes(estimate.spec)))
    again = service.price(snapshot, request, stored, TODAY)
    assert canonical_bytes(again) == canonical_bytes(estimate.content)


@pytest.mark.parametrize("name", ["training", "inference"])
def test_options_are_ranked_by_cost_and_the_first_is_recommended(answer: Answer, name: str) -> None:
    item = answer(BODIES[name]).content["items"][0]
    nets = [Decimal(o["cost"]["totals"]["net"]["amount"]) for o in item["options"]]
    assert nets == sorted(nets)
    assert item["selected_option_id"] == item["options"][0]["id"]
    assert [o["recommended"] for o in item["options"]] == [True] + [False] * (len(nets) - 1)


def test_hours_of_the_lines_are_the_hours_of_the_campaign(answer: Answer) -> None:
    estimate = answer(body(training(), supply={"accelerators": ["h100-sxm5-80"], "accelerator_count": 64}))
    option = next(o for o in estimate.content["items"][0]["options"] if o["offer"]["purchase_model"] == "on_demand")
    per_unit = option["offer"]["accelerators_per_sold_unit"]
    hours = sum(Decimal(x["quantity"]) for x in option["cost"]["lines"] if x["unit"].endswith("_hour"))
    expected = Decimal(str(option["performance"]["duration_hours"]["p50"])) * 64 / per_unit
    assert abs(hours / expected - 1) < Decimal("1e-4")
    kinds = {x["kind"] for x in option["cost"]["lines"]}
    assert {"compute", "failures", "storage"} <= kinds


def test_terms_move_the_waterfall_in_order_and_keep_native_money(answer: Answer) -> None:
    estimate = answer(BODIES["yuan"])
    option = estimate.content["items"][0]["options"][0]
    line = option["cost"]["lines"][0]
    assert [s["step"] for s in line["waterfall"]] == ["negotiated", "markup"]
    assert line["net"]["currency"] == "CNY"
    assert line["native_net"]["currency"] != "CNY"
    (rate,) = [f for f in estimate.content["fx"] if f["pair"].startswith(line["native_net"]["currency"])]
    assert rate["as_of"] <= TODAY.isoformat()
    ratio = Decimal(line["net"]["amount"]) / Decimal(line["native_net"]["amount"])
    assert abs(ratio / Decimal(rate["rate"]) - 1) < Decimal("1e-4")
    assert option["cost"]["lines"][-1]["kind"] == "contingency"
    assert option["cost"]["totals"]["tax"][0]["rate"] == "0.06"


def test_an_unknown_tax_is_not_determined(answer: Answer) -> None:
    option = answer(BODIES["training"]).content["items"][0]["options"][0]
    assert option["cost"]["totals"]["gross"] is None
    assert option["cost"]["totals"]["tax"][0]["status"] == "not_determined"


def test_a_price_of_an_observation_gap_is_an_answer_and_never_a_number(answer: Answer, snapshot: Snapshot) -> None:
    offer = next(
        o for o in snapshot.offers_of_sku("aws", "p5.48xlarge")
        if o.region == "us-east-1" and o.purchase_model == "on_demand"
    )  # fmt: skip
    supply = {"offers": [offer.id], "accelerator_count": 64}
    expected = {date(2024, 6, 1): "98.32", date(2025, 7, 1): "55.04"}
    for day, price in expected.items():
        estimate = answer(body(training(), supply=supply, as_of=day.isoformat()))
        (option,) = estimate.content["items"][0]["options"]
        assert option["cost"]["lines"][0]["list_unit_price"] == {"amount": price, "currency": "USD"}
    gap = answer(body(training(), supply=supply, as_of="2025-05-15")).content
    (option,) = gap["items"][0]["options"]
    assert option["cost"]["status"] == "observation_gap"
    assert option["cost"]["totals"] is None
    assert gap["totals"] is None
    assert not gap["completeness"]["complete"]


def test_the_route_answers(client: Any, database: Any) -> None:
    from app.catalog import service as catalog

    database.transact_now(lambda connection: catalog.seed_when_empty(connection))
    response = client.post("/v1/estimates", json=body(training()))
    assert response.status_code == 200, response.text
    assert response.json()["items"][0]["options"]
    refused = client.post("/v1/estimates", json=body(training(tokens=-1)))
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/items/0/job/tokens"


def test_a_region_without_a_tax_rule_is_said_with_the_known_ones(answer: Any) -> None:
    found = answer(body(training(), supply={"accelerators": ["h100-sxm5-80"]}, terms={"tax_region": "ZZ"}))
    advice = {a["code"]: a for a in found.content["items"][0]["options"][0]["advice"]}
    assert "DE" in advice["tax_undetermined"]["message"]
    known = answer(body(training(), supply={"accelerators": ["h100-sxm5-80"]}, terms={"tax_region": "DE"}))
    assert "tax_undetermined" not in {a["code"] for a in known.content["items"][0]["options"][0]["advice"]}


def test_an_amount_below_half_a_cent_is_said_not_to_be_free(answer: Any) -> None:
    tiny = answer(body(training(tokens=1e5), supply={"accelerators": ["h100-sxm5-80"]}))
    rows = [option for option in tiny.content["items"][0]["options"] if option["cost"].get("totals")]
    zero = [o for o in rows if any(line["net"]["amount"] == "0.00" for line in o["cost"]["lines"])]
    assert zero
    for option in zero:
        assert "rounds_to_zero" in {a["code"] for a in option["advice"]}


def test_sequences_beyond_the_published_context_are_an_assumption(answer: Any) -> None:
    job = {**training(), "model": {"ref": "llama2-7b"}, "global_batch_sequences": 64}
    supply = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64}
    found = [
        {
            a["id"]
            for a in answer(body({**job, "sequence_length": n}, supply=supply)).content["items"][0]["options"][0][
                "assumptions"
            ]
        }
        for n in (4096, 8192)
    ]
    assert ["sequence_beyond_context" in ids for ids in found] == [False, True]


def test_an_unknown_context_is_said(answer: Any) -> None:
    request = body(inference(model={"parameters": 1e10}), supply={"accelerators": ["h100-sxm5-80"]})
    option = answer(request).content["items"][0]["options"][0]
    assert "context" in {a["id"] for a in option["assumptions"]}


def test_a_tiny_training_job_is_quoted(answer: Any) -> None:
    for tokens in (1.0, 1.5, 1e3, 1e5):
        job = {**training(tokens=tokens), "model": {"ref": "llama3-8b"}}
        option = answer(body(job, supply={"accelerators": ["h100-sxm5-80"]})).content["items"][0]["options"][0]
        assert option["performance"]["goodput"] > 0.99


def test_fewer_runs_at_a_time_than_asked_are_said_and_finish_first(answer: Any) -> None:
    """One run on 16 after another beats two on 8 side by side here, and the option says that it did not do as asked."""
    campaign = {"full_runs": 2, "partial_runs": 5, "concurrent_runs": 2}
    job = {**training(tokens=1e10), "model": {"ref": "llama3-8b"}, "campaign": campaign}
    supply = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 16}
    for option in answer(body(job, supply=supply)).content["items"][0]["options"]:
        runs_at_once = option["configuration"]["concurrent_runs"]
        said = [a["numbers"] for a in option["advice"] if a["code"] == "concurrency_reduced"]
        assert said == ([] if runs_at_once == 2 else [{"asked": 2, "concurrent_runs": runs_at_once}])
