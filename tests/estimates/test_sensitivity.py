"""Sobol points and indices against known answers, and what moves a priced option."""

from datetime import date
from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc

from app.catalog.snapshot import Snapshot
from app.estimates import service, studies
from app.estimates.schemas import EstimateRequest
from app.estimates.sensitivity import Limits, price_volatility, sensitivity
from app.estimates.sobol import MOST_DIMENSIONS, sobol_indices, sobol_points
from tests.estimates.conftest import TODAY, inference, training


@pytest.fixture(scope="module")
def option(snapshot: Snapshot) -> dict[str, Any]:
    """The recommended option of a small training job."""
    supply = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "purchase_models": ["on_demand"]}
    request = EstimateRequest.model_validate({"items": [{"job": training(), "supply": supply}]})
    found: dict[str, Any] = service.estimate(snapshot, request, TODAY).content["items"][0]["options"][0]
    return found


def test_points_are_those_of_the_published_sequence() -> None:
    ours = sobol_points(64, MOST_DIMENSIONS) - 0.5 / 64
    published = qmc.Sobol(MOST_DIMENSIONS, scramble=False).random(64)
    assert np.allclose(np.sort(ours, axis=0), np.sort(published, axis=0))
    assert np.allclose(ours, published)


def test_indices_of_a_sum_are_the_shares_of_its_variance() -> None:
    """x + 3 y of uniform inputs: variances 1 to 9."""
    found, _ = sobol_indices(lambda x: x["a"] + 3.0 * x["b"], ["a", "b"], 4096)
    assert found["a"] == pytest.approx((0.1, 0.1), abs=0.005)
    assert found["b"] == pytest.approx((0.9, 0.9), abs=0.005)


def test_indices_of_the_ishigami_function() -> None:
    """Ishigami and Homma 1990 with a = 7, b = 0.1: first order 0.314, 0.442, 0; total 0.558, 0.442, 0.244."""

    def ishigami(x: Any) -> Any:
        a, b, c = (np.pi * (2.0 * x[n] - 1.0) for n in ("a", "b", "c"))
        return np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)

    found, _ = sobol_indices(ishigami, ["a", "b", "c"], 8192)
    first = [found[n][0] for n in ("a", "b", "c")]
    every = [found[n][1] for n in ("a", "b", "c")]
    assert first == pytest.approx([0.314, 0.442, 0.0], abs=0.01)
    assert every == pytest.approx([0.558, 0.442, 0.244], abs=0.01)


def test_the_middle_is_the_options_own_total(snapshot: Snapshot, option: dict[str, Any]) -> None:
    found = sensitivity(snapshot, option, Limits())
    net = float(option["cost"]["net"]["p50"]["amount"])
    assert float(found["total"]["middle"]["amount"]) == pytest.approx(net, rel=1e-5)
    assert found["estimate"] == option["cost"]["net"]
    assert "medians differ" in found["note"]
    amounts = [float(found["total"][q]["amount"]) for q in ("p10", "p50", "p90")]
    assert amounts == sorted(amounts)
    assert {row["name"] for row in found["factors"]} == {"engine_speed", "operations", "price"}
    swings = [row["swing_share"] for row in found["factors"]]
    assert swings == sorted(swings, reverse=True)
    assert sum(row["sobol_first_order"] for row in found["factors"]) == pytest.approx(1.0, abs=0.05)


def test_an_input_without_spread_explains_nothing(snapshot: Snapshot, option: dict[str, Any]) -> None:
    band = option["performance"]["duration_hours"]["p50"]
    rate = option["performance"]["tokens_per_second"]["p50"]
    known = {
        **option,
        "performance": {
            **option["performance"],
            "duration_hours": dict.fromkeys(("p10", "p50", "p90"), band),
            "tokens_per_second": dict.fromkeys(("p10", "p50", "p90"), rate),
        },
    }
    by_name = {row["name"]: row for row in sensitivity(snapshot, known, Limits())["factors"]}
    assert by_name["engine_speed"]["swing_share"] == 0.0
    assert by_name["engine_speed"]["sobol_total"] == 0.0


def test_chances_of_deadline_and_budget_follow_their_limits(snapshot: Snapshot, option: dict[str, Any]) -> None:
    hours = option["performance"]["duration_hours"]
    net = float(option["cost"]["net"]["p50"]["amount"])

    def chances(scale: float) -> tuple[float, float]:
        limits = Limits(deadline_hours=hours["p50"] * scale, budget=net * scale)
        found = sensitivity(snapshot, option, limits)["probability"]
        return found["deadline"], found["budget"]

    assert chances(0.1) == (0.0, 0.0)
    assert chances(10.0) == (1.0, 1.0)
    assert 0.2 < chances(1.0)[0] < 0.8
    assert sensitivity(snapshot, option, Limits())["probability"] == {"deadline": None, "budget": None}


def test_the_same_question_has_the_same_bytes(snapshot: Snapshot, option: dict[str, Any]) -> None:
    assert sensitivity(snapshot, option, Limits()) == sensitivity(snapshot, option, Limits())


def test_volatility_comes_from_the_catalogs_own_history(snapshot: Snapshot) -> None:
    yearly, changes = price_volatility(snapshot, "on_demand")
    assert changes >= 8
    assert 0.01 < yearly < 1.0


def test_a_study_covers_every_item_and_says_when_one_has_no_price(snapshot: Snapshot) -> None:
    items = [
        {"id": "train", "job": training(), "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64}},
        {"id": "serve", "job": inference(), "supply": {"accelerators": ["h100-sxm5-80"]}},
        {"id": "own", "job": training(), "supply": {"accelerators": ["b200-sxm-180"], "accelerator_count": 64,
                                                    "purchase_models": ["owned"]}},
    ]  # fmt: skip
    found = studies.study(snapshot, EstimateRequest.model_validate({"items": items}), date(2026, 11, 30), 256)
    assert [row["id"] for row in found["items"]] == ["train", "serve", "own"]
    for row in found["items"]:
        assert row["sensitivity"]["status"] in ("computed", "not_priced")
    priced = [row for row in found["items"] if row["sensitivity"]["status"] == "computed"]
    assert len(priced) >= 2
