"""``POST /v1/claims`` over HTTP."""

from typing import Any

from fastapi.testclient import TestClient

from app.catalog import service as catalog
from tests.claims.conftest import B200, H100, TRAINING


def seed(client: TestClient) -> None:
    client.app.state.database.transact_now(lambda connection: catalog.seed_when_empty(connection))  # type: ignore[attr-defined]


def body(**claim: Any) -> dict[str, Any]:
    return {"baseline": H100, "candidate": B200, "job": TRAINING, "claims": [claim]}


def test_claims_are_answered_in_order_and_bad_ones_refused(client: TestClient) -> None:
    seed(client)
    first = {"id": "a", "metric": "duration_hours", "relation": "ratio", "low": 0, "high": 0.9}
    second = {"id": "b", "metric": "peak_flops", "precision": "fp8", "relation": "ratio", "equals": 2.5}
    answer = client.post("/v1/claims", json={**body(**first), "accelerator_count": 64, "claims": [first, second]})
    assert answer.status_code == 200
    assert [row["id"] for row in answer.json()["claims"]] == ["a", "b"]
    assert answer.json()["claims"][0]["verdict"] == "supported"
    refused = client.post("/v1/claims", json=body(metric="duration_hours", relation="ratio", low=0.9, high=0.1))
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["errors"][0]["code"] == "impossible_range"
    unknown = client.post("/v1/claims", json={**body(metric="duration_hours", relation="ratio", high=1.0), "x": 1})
    assert unknown.status_code == 422


def test_a_precision_no_job_of_the_kind_computes_in_is_refused(client: TestClient) -> None:
    seed(client)
    asked = {"job": TRAINING, "supplies": [H100, {**H100, "precision": "int4"}], "accelerator_count": 64}
    refused = client.post("/v1/comparisons", json=asked)
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/supplies/1/precision")
    assert "bf16" in refused.json()["detail"]


def test_supplies_are_compared_and_studied_over_http(client: TestClient) -> None:
    seed(client)
    on_demand = {"purchase_models": ["on_demand"]}
    supplies = [{**H100, **on_demand, "name": "H100"}, {**B200, **on_demand, "name": "B200"}]
    asked = {"job": TRAINING, "supplies": supplies, "accelerator_count": 64, "scaling": "none"}
    compared = client.post("/v1/comparisons", json=asked)
    assert compared.status_code == 200
    assert [row["name"] for row in compared.json()["supplies"]] == ["H100", "B200"]
    items = [{"job": TRAINING, "supply": {**H100, **on_demand, "accelerator_count": 64}}]
    studied = client.post("/v1/estimates/sensitivity", json={"items": items, "samples": 256})
    assert studied.status_code == 200
    assert studied.json()["items"][0]["sensitivity"]["factors"]
    nothing = client.post("/v1/comparisons", json={**asked, "supplies": []})
    assert nothing.status_code == 422
