"""End-to-end golden cases: the article's 10B model, the 100B fine-tune that cannot fit, yuan, owned and rented."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient

from app.catalog.snapshot import Snapshot
from app.estimates.ownership import OwnedCost, owned_cost
from app.estimates.schemas import Ownership, Terms
from app.estimates.terms import priced_terms
from app.foundation.problems import Problem
from app.pricing.outcome import Unpriced
from benchmarks.own_cost import implied_prices
from tests.estimates.conftest import TODAY, Answer, body, inference, training

GOLDEN = yaml.safe_load((Path(__file__).parents[1] / "golden" / "estimates.yaml").read_text(encoding="utf-8"))
BOTH = ["h100-sxm5-80", "b200-sxm-180"]


def owned(snapshot: Snapshot, accelerator: str, utilization: str) -> OwnedCost:
    spec = snapshot.accelerators[accelerator].spec
    assert spec is not None
    terms = priced_terms(snapshot, Terms(), TODAY)
    cost = owned_cost(snapshot, spec, Ownership.model_validate({"utilization": utilization}), terms)
    assert isinstance(cost, OwnedCost)
    return cost


def best(estimate: Any, accelerator: str) -> dict[str, Any]:
    """The first option on an accelerator."""
    options: list[dict[str, Any]] = estimate.content["items"][0]["options"]
    return next(o for o in options if o["configuration"]["accelerator"] == accelerator)


OWN_COST = pytest.mark.parametrize("case", GOLDEN["own_cost"]["cases"], ids=lambda c: c["accelerator"])


@OWN_COST
def test_an_owned_hour_stands_where_the_published_band_says_or_the_gap_is_explained(
    snapshot: Snapshot, case: dict[str, Any]
) -> None:
    published = snapshot.own_cost[case["accelerator"]]
    band = (published.usd_per_accelerator_hour_own_hyperscaler, published.usd_per_accelerator_hour_own_neocloud)
    assert [float(end) for end in band] == [case["hyperscaler"], case["neocloud"]]
    assert not published.placeholder
    hour = owned(snapshot, case["accelerator"], "1").hour.per_accelerator_hour.amount
    assert float(hour) == pytest.approx(case["ours"], abs=5e-5)
    assert (band[0] <= hour <= band[1]) is case["inside"]
    assert case["inside"] or (case["gap"] and case["why"])


@OWN_COST
def test_the_purchase_prices_the_band_implies_hold_the_readings_they_should(
    snapshot: Snapshot, case: dict[str, Any]
) -> None:
    low, high = implied_prices(snapshot, case["accelerator"])
    assert [float(low), float(high)] == pytest.approx(case["implied"], abs=1)
    assert all(low < Decimal(str(price)) < high for price in case["readings"]["inside"])
    assert not any(low <= Decimal(str(price)) <= high for price in case["readings"]["outside"])


def test_a_price_of_the_accelerator_alone_says_that_its_host_is_not_in_it(snapshot: Snapshot) -> None:
    assumed = {a.id: a for a in owned(snapshot, "mi300x", "1").assumptions}
    assert "host" in assumed["ownership.accelerator_street_price"].source


@pytest.mark.parametrize("name", ["mi325x", "mi355x"])
def test_a_part_without_a_purchase_price_cannot_be_owned_and_says_which_price_is_missing(
    snapshot: Snapshot, name: str
) -> None:
    spec = snapshot.accelerators[name].spec
    assert spec is not None
    answer = owned_cost(snapshot, spec, None, priced_terms(snapshot, Terms(), TODAY))
    assert isinstance(answer, Unpriced)
    assert (answer.outcome, answer.missing) == ("unknown_price", ("server",))


def test_every_part_of_an_owned_hour_is_explained(snapshot: Snapshot) -> None:
    figures = GOLDEN["own_cost"]["figures"]
    cost = owned(snapshot, figures["accelerator"], "1")
    capital = cost.hour.capital_per_accelerator
    assert capital["server"].amount == figures["server"]
    assert capital["spares"].amount == figures["spares"]
    assert capital["network"].amount == figures["network"]
    assert float(cost.hour.share_per_hour("depreciation").amount) == pytest.approx(figures["depreciation"], abs=1e-4)
    assert float(cost.hour.share_per_hour("colocation").amount) == pytest.approx(figures["colocation"], abs=1e-4)
    assumed = {a.id: a for a in cost.assumptions}
    assert assumed["ownership.kw_per_accelerator"].value == str(figures["provisioned_kw"])
    assert all(a.source for a in cost.assumptions)
    parts = sum((cost.hour.share_per_hour(p).amount for p in cost.hour.monthly), Decimal(0))
    assert parts == pytest.approx(cost.hour.per_accelerator_hour.amount, abs=Decimal("1e-9"))


def test_the_ten_billion_risk_model_on_h100_and_b200(answer: Answer) -> None:
    case = GOLDEN["risk_model_10b"]
    supply = {"accelerators": BOTH, "accelerator_count": case["accelerators"], "purchase_models": ["on_demand"]}
    estimate = answer(body(case["job"], supply=supply))
    h100, b200 = best(estimate, BOTH[0]), best(estimate, BOTH[1])
    hours = [o["performance"]["duration_hours"]["p50"] for o in (h100, b200)]
    assert case["speedup"]["low"] <= hours[0] / hours[1] <= case["speedup"]["high"]
    # the same days at 40 percent, scaled to the utilisation the engine finds and the goodput of the run
    mfu, goodput = h100["performance"]["model_flops_utilization"], h100["performance"]["goodput"]
    days = case["h100_days_at_40_percent"] * 0.40 / mfu / goodput
    # 6 N T leaves out attention, which the model FLOPs count
    assert 1.0 <= hours[0] / 24 / days <= 1.25
    shown = {row["kind"] for row in h100["cost"]["lines"]}
    assert {"compute", "failures", "storage"} <= shown
    assert set(h100["performance"]["time_breakdown"]) >= {"matmul", "attention", "optimizer", "data_stall"}
    assert sum(h100["performance"]["time_breakdown"].values()) == pytest.approx(1.0, abs=1e-4)
    assert {a["code"] for a in h100["advice"]} >= {"storage", "software", "stale_price"}


def test_a_campaign_shows_its_reruns_and_experiments(answer: Answer) -> None:
    campaign = {"partial_runs": 6, "fraction": 0.1, "reruns_expected": 0.5, "evaluation_fraction": 0.05}
    job = {**GOLDEN["risk_model_10b"]["job"], "campaign": campaign}
    estimate = answer(body(job, supply={"accelerators": [BOTH[0]], "accelerator_count": 8}))
    option = best(estimate, BOTH[0])
    texts = " ".join(line["description"]["en"] for line in option["cost"]["lines"])
    assert "other runs of the campaign" in texts
    assert "expected reruns" in texts
    assert "evaluation" in texts
    assert Decimal(option["unit_costs"]["per_experiment"]["amount"]) < Decimal(option["cost"]["net"]["p50"]["amount"])
    assert option["performance"]["iterations_per_week"] > 0


def test_a_full_fine_tune_of_100b_on_one_b200_is_refused_with_the_missing_bytes(answer: Answer) -> None:
    case = GOLDEN["full_finetune_100b_on_one_b200"]
    with pytest.raises(Problem) as refused:
        answer(body(case["job"], supply={"accelerators": [case["accelerator"]], "accelerator_count": 1}))
    problem = refused.value
    assert problem.slug == "infeasible-spec"
    assert problem.extensions["constraint"] == "memory"
    assert problem.extensions["numbers"]["missing_bytes"] >= case["missing_bytes_at_least"]
    assert problem.extensions["nearest_feasible"]


def test_yuan_terms_show_the_dated_rate_and_keep_the_native_subtotal(answer: Answer) -> None:
    case = GOLDEN["yuan"]
    supply = {"accelerators": [BOTH[0]], "accelerator_count": 8, "providers": ["lambda"]}
    dollars = best(answer(body(training(), supply=supply)), BOTH[0])
    estimate = answer(body(training(), supply=supply, terms={"currency": "CNY"}))
    yuan = best(estimate, BOTH[0])
    (rate,) = estimate.content["fx"]
    assert rate["pair"] == "USD/CNY"
    assert rate["as_of"] == case["rate_on"]
    assert rate["rate"].startswith(case["usd_cny"])
    assert rate["source"]
    assert (rate["age_days"], rate["stale"]) == (31, True)
    (native,) = yuan["cost"]["native_subtotals"]
    assert (native["amount"], native["currency"]) == (dollars["cost"]["net"]["p50"]["amount"], "USD")
    ratio = Decimal(yuan["cost"]["net"]["p50"]["amount"]) / Decimal(native["amount"])
    assert abs(ratio / Decimal(rate["rate"]) - 1) < Decimal("1e-5")


def test_an_alibaba_price_is_yuan_and_never_read_as_dollars(answer: Answer, snapshot: Snapshot) -> None:
    case = GOLDEN["alibaba"]
    offers = [o for o in snapshot.offers_of_sku("alibaba", "ecs.ebmgn7e.32xlarge") if o.region == "ap-northeast-1"]
    estimate = answer(body(training(), supply={"offers": [offers[0].id], "accelerator_count": 8}))
    line = estimate.content["items"][0]["options"][0]["cost"]["lines"][0]
    assert line["price_evidence"]["native_price"] == {"amount": case["amount"], "currency": "CNY"}
    assert line["native_net"]["currency"] == "CNY"
    assert round(Decimal(line["list_unit_price"]["amount"]), 2) == Decimal(case["usd"])


def test_a_component_price_is_never_used_as_a_machine(answer: Answer, snapshot: Snapshot) -> None:
    component = next(o for o in snapshot.offers.values() if o.scope == "component")
    with pytest.raises(Problem) as refused:
        answer(body(training(), supply={"offers": [component.id]}))
    assert refused.value.extensions["constraint"] == "component"


def test_gb200_is_billed_in_the_unit_it_is_sold_in(answer: Answer) -> None:
    supply = {"accelerators": ["gb200-186"], "accelerator_count": 72, "purchase_models": ["on_demand"]}
    options = answer(body(training(), supply=supply)).content["items"][0]["options"]
    by_unit = {o["offer"]["sold_unit"]: o for o in options}
    assert len(by_unit) >= 2
    for option in options:
        sold, each = option["configuration"]["sold_units"], option["offer"]["accelerators_per_sold_unit"]
        assert sold * each >= 72
        assert sold >= option["offer"]["min_quantity"]
        hours = sum(Decimal(x["quantity"]) for x in option["cost"]["lines"] if x["unit"].endswith("_hour"))
        expected = sold * Decimal(str(option["performance"]["duration_hours"]["p50"]))
        assert abs(hours / expected - 1) < Decimal("1e-4")


def test_owned_and_rented_stand_side_by_side_with_their_break_even(answer: Answer) -> None:
    supply = {"accelerators": BOTH, "accelerator_count": 64, "purchase_models": ["on_demand", "owned"]}
    item = answer(body(training(), supply=supply)).content["items"][0]
    models = {o["offer"]["purchase_model"] for o in item["options"]}
    assert models == {"on_demand", "owned"}
    for row in item["rent_or_own"]:
        own, rent = (Decimal(row[f"{k}_per_accelerator_hour"]["amount"]) for k in ("owned", "rented"))
        # at the default utilisation of 0.80 the owned hour costs `own`; at break-even it costs the rent
        assert abs(own * Decimal("0.8") / rent / Decimal(row["break_even_utilization"]) - 1) < Decimal("1e-4")
    owned_option = next(o for o in item["options"] if o["offer"]["purchase_model"] == "owned")
    kinds = [line["kind"] for line in owned_option["cost"]["lines"]]
    assert kinds.count("energy") == 1
    assert "ownership" in kinds


def test_a_missing_owned_price_is_reported_and_never_zero(answer: Answer) -> None:
    supply = {"accelerators": ["mi355x"], "accelerator_count": 8, "purchase_models": ["owned"]}
    estimate = answer(body(training(), supply=supply))
    (option,) = estimate.content["items"][0]["options"]
    assert option["cost"]["status"] == "unknown_price"
    assert "server" in option["cost"]["missing"]
    assert estimate.content["totals"] is None


def test_storage_without_a_public_price_blocks_the_total(answer: Answer) -> None:
    job = training(data={"storage": "weka"})
    estimate = answer(body(job, supply={"accelerators": [BOTH[0]], "accelerator_count": 8}))
    option = best(estimate, BOTH[0])
    assert option["cost"]["status"] == "incomplete"
    (line,) = option["cost"]["unpriced_lines"]
    assert (line["kind"], line["status"], line["net"]) == ("storage", "unknown_price", None)
    assert not estimate.content["completeness"]["complete"]


def test_a_service_is_set_against_api_prices_and_against_training(answer: Answer) -> None:
    pytest.importorskip("genai_prices")
    supply = {"accelerators": [BOTH[0]]}
    items = [
        {"id": "train", "job": training(), "supply": supply},
        {"id": "serve", "job": inference(), "supply": supply},
    ]
    content = answer({"items": items}).content
    rows = content["items"][1]["serve_or_call"]
    assert rows
    for row in rows:
        ratio = Decimal(row["own_monthly"]["amount"]) / Decimal(row["monthly"]["amount"])
        assert abs(ratio / Decimal(row["break_even_share_of_traffic"]) - 1) < Decimal("1e-5")
        assert (row["cheaper"] == "own") == (ratio < 1)
    life = content["lifetime"]
    ratio = Decimal(life["inference_net"]["amount"]) / Decimal(life["training_net"]["amount"])
    assert abs(ratio / Decimal(life["lifetime_inference_over_training"]) - 1) < Decimal("1e-5")


def test_an_hourly_fleet_may_mix_a_committed_base_with_an_on_demand_peak(answer: Answer) -> None:
    weights = [1, 1, 1, 1, 1, 2, 4, 6, 8, 10, 10, 10, 9, 9, 10, 10, 9, 8, 6, 5, 4, 3, 2, 1]
    traffic = {"requests_per_second": 40, "input_tokens": 1000, "output_tokens": 500, "hourly_weights": weights}
    job = inference(traffic=traffic, availability={"autoscaling": "hourly"})
    supply = {"accelerators": ["b200-sxm-180"], "providers": ["runpod"]}
    item = answer(body(job, supply=supply)).content["items"][0]
    mixed = next(o for o in item["options"] if o["committed_offer"] is not None)
    alone = next(
        o for o in item["options"] if o["offer"]["id"] == mixed["offer"]["id"] and o["committed_offer"] is None
    )
    assert Decimal(mixed["cost"]["net"]["p50"]["amount"]) < Decimal(alone["cost"]["net"]["p50"]["amount"])


def test_the_smallest_bodies_answer_over_http(seeded_client: TestClient) -> None:
    for job in (training(), inference()):
        response = seeded_client.post("/v1/estimates", json=body(job))
        assert response.status_code == 200
        options = response.json()["items"][0]["options"]
        assert len(options) == 10
        assert len({o["id"] for o in options}) == 10
