"""What a refusal says would do is fed back as it stands, and does."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.estimates.purchase import HourlyPrice, paid_hours
from tests.estimates.conftest import body

H100 = {"accelerators": ["h100-sxm5-80"]}
ZERO1 = {"tensor": 8, "pipeline": 1, "sharding": "zero1"}
DEADLINE = {"deadline_hours": 10}


def job(ref: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "training", "model": {"ref": ref}, "tokens": 1e10} | fields


def put(request: dict[str, Any], pointer: str, value: object) -> None:
    node: Any = request
    *parents, last = pointer.strip("/").split("/")
    for name in parents:
        node = node[int(name)] if isinstance(node, list) else node.setdefault(name, {})
    node[last] = value


@pytest.mark.parametrize(
    ("ref", "plan", "item", "constraint"),
    [
        ("llama3-70b", {}, {"supply": H100 | {"accelerator_count": 8}}, "memory"),
        ("llama3-70b", ZERO1, {"supply": H100 | {"accelerator_count": 16}}, "memory"),
        ("llama3-8b", {"pipeline": 33}, {"supply": H100 | {"accelerator_count": 264}}, "divisibility"),
        ("llama3-8b", {"tensor": 3}, {"supply": H100 | {"accelerator_count": 24}}, "divisibility"),
        ("llama3-8b", {"context": 3}, {"supply": H100 | {"accelerator_count": 24}}, "divisibility"),
        ("llama3-8b", {}, {"constraints": {"budget": {"amount": "10", "currency": "USD"}}}, "budget"),
        ("llama3-70b", {}, {"supply": H100 | {"accelerator_count": 64}, "constraints": DEADLINE}, "deadline_hours"),
    ],
)  # fmt: skip
def test_the_nearest_request_is_answered(
    seeded_client: TestClient, ref: str, plan: dict[str, Any], item: dict[str, Any], constraint: str
) -> None:
    request = body(job(ref, plan=plan), **item)
    refused = seeded_client.post("/v1/estimates", json=request)
    assert refused.status_code == 422
    problem = refused.json()
    assert problem["constraint"] == constraint
    assert problem["nearest_feasible"]
    for pointer, value in problem["nearest_feasible"].items():
        put(request, pointer, value)
    again = seeded_client.post("/v1/estimates", json=request)
    assert again.status_code == 200, again.json()["detail"]


def test_what_is_solved_for_is_not_given(seeded_client: TestClient) -> None:
    constraints = {"solve_for": "tokens", "deadline_hours": 100}
    refused = seeded_client.post("/v1/estimates", json=body(job("llama3-8b"), constraints=constraints))
    assert refused.status_code == 422
    assert "leave job.tokens" in refused.json()["errors"][0]["message"]


@pytest.mark.parametrize(("hours", "billed"), [("10", "730"), ("730", "730"), ("731", "1460"), ("3455.17", "3650")])
def test_a_period_begun_is_paid_in_full(hours: str, billed: str) -> None:
    price = object.__new__(HourlyPrice)
    object.__setattr__(price, "period_hours", Decimal(730))
    assert paid_hours(price, Decimal(hours), None) == Decimal(billed)
