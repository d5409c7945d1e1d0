"""From any price in an estimate a reader comes to the dated row and its source."""

from decimal import Decimal

import pytest

from tests.estimates.conftest import body, inference, training


@pytest.mark.parametrize("job", [training(), inference()], ids=["training", "inference"])
def test_every_priced_line_leads_to_its_row_and_source(seeded_client, job):
    supply = {"accelerators": ["h100-sxm5-80"], "purchase_models": ["on_demand", "reserved", "spot"]}
    item = seeded_client.post("/v1/estimates", json=body(job, supply=supply)).json()["items"][0]
    behind = [
        line["price_evidence"]
        for option in item["options"]
        for line in option["cost"]["lines"]
        if line.get("price_evidence") and line["price_evidence"].get("price_id")
    ]
    assert len(behind) >= len(item["options"]) > 0
    for evidence in behind:
        row = seeded_client.get(evidence["price_url"]).json()
        assert row["price"]["id"] == evidence["price_id"]
        assert Decimal(row["price"]["amount"]) == Decimal(evidence["native_price"]["amount"])
        assert row["price"]["currency"] == evidence["native_price"]["currency"]
        assert row["offer"]["id"] == evidence["offer_id"]
        assert row["price"]["source"]["citation"] == evidence["source"]
        assert row["price"]["source"]["url"] == evidence["source_url"]
        assert evidence["source_url"].startswith("https://")
        assert {seeded_client.get(link).status_code for link in row["links"].values()} == {200}


def test_lines_of_storage_and_egress_lead_to_the_listed_facts(seeded_client):
    supply = {"accelerators": ["h100-sxm5-80"], "purchase_models": ["on_demand"], "providers": ["aws"]}
    item = seeded_client.post("/v1/estimates", json=body(training(), supply=supply)).json()["items"][0]
    lines = [line for option in item["options"] for line in option["cost"]["lines"]]
    facts = {line["kind"]: line["price_evidence"] for line in lines if "facts_url" in (line["price_evidence"] or {})}
    assert set(facts) == {"storage", "egress"}
    for evidence in facts.values():
        listed = seeded_client.get(evidence["facts_url"], params={"limit": 200}).json()["items"]
        assert any(row["source"] in evidence["source"] for row in listed)


def test_a_spot_price_says_between_what_it_was_seen(seeded_client):
    supply = {"accelerators": ["h100-sxm5-80"], "purchase_models": ["spot", "on_demand"]}
    item = seeded_client.post("/v1/estimates", json=body(training(), supply=supply)).json()["items"][0]
    models = set()
    for option in item["options"]:
        evidence = option["cost"]["lines"][0]["price_evidence"]
        models.add(option["offer"]["purchase_model"])
        assert ("observed_range" in evidence) is (option["offer"]["purchase_model"] == "spot")
        if "observed_range" in evidence:
            seen = evidence["observed_range"]
            low, high = (Decimal(seen[end]["amount"]) for end in ("low", "high"))
            assert low <= Decimal(evidence["native_price"]["amount"]) <= high
            assert seen["observations"] >= 1
    assert "spot" in models


def test_a_price_that_was_never_recorded_is_not_found(seeded_client):
    answer = seeded_client.get("/v1/catalog/prices/prc_0")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
