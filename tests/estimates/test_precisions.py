"""Precision ``auto`` of an inference job: the published format alone, or the cheapest of those the caller allows."""

from decimal import Decimal
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.estimates.conftest import inference

B200 = {"accelerators": ["b200-sxm-180"], "purchase_models": ["on_demand"]}


def ask(client: TestClient, precision: dict[str, Any], supply: dict[str, Any] | None = None) -> Any:
    traffic = {"requests_per_second": 200, "input_tokens": 1000, "output_tokens": 500}
    job = inference(precision=precision, traffic=traffic)
    return client.post("/v1/estimates", json={"items": [{"job": job, "supply": supply or B200}]})


def weights_and_money(response: Any) -> tuple[str, Decimal]:
    assert response.status_code == 200, response.text
    option = response.json()["items"][0]["options"][0]
    return option["configuration"]["precision"]["weights"], Decimal(option["cost"]["totals"]["net"]["amount"])


def test_no_narrower_format_is_tried_unasked(seeded_client: TestClient) -> None:
    response = ask(seeded_client, {"weights": "auto"})
    formats = {o["configuration"]["precision"]["weights"] for o in response.json()["items"][0]["options"]}
    assert formats == {weights_and_money(response)[0]}


def test_the_cheapest_of_the_allowed_formats_is_chosen(seeded_client: TestClient) -> None:
    pinned = {f: weights_and_money(ask(seeded_client, {"weights": f}))[1] for f in ("bf16", "nvfp4")}
    usual, price = weights_and_money(ask(seeded_client, {"weights": "auto"}))
    chosen, money = weights_and_money(ask(seeded_client, {"weights": "auto", "allow": ["bf16", "nvfp4"]}))
    assert money == min(price, *pinned.values())
    assert chosen in ("bf16", "nvfp4", usual)
    assert money < pinned["bf16"]


def test_a_format_the_accelerator_has_no_unit_for_is_not_chosen(seeded_client: TestClient) -> None:
    hopper = {"accelerators": ["h100-sxm5-80"], "purchase_models": ["on_demand"]}
    chosen, _ = weights_and_money(ask(seeded_client, {"allow": ["nvfp4"]}, hopper))
    assert chosen != "nvfp4"


def test_formats_are_allowed_only_where_weights_are_open(seeded_client: TestClient) -> None:
    response = ask(seeded_client, {"weights": "fp8", "allow": ["int4"]})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"].startswith("/items/0/job")


@pytest.mark.parametrize("allowed", [["fp64"], ["auto"]])
def test_only_known_formats_are_allowed(seeded_client: TestClient, allowed: list[str]) -> None:
    assert ask(seeded_client, {"allow": allowed}).status_code == 422
