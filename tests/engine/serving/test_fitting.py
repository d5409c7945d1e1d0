"""A model that does not fit is told what would: the figures of the refusal work when they are asked for."""

from dataclasses import replace

import pytest

from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.search import search_serving
from app.engine.workload import LatencyObjective, ServingPlanRequest
from tests.engine.serving.test_search import CALIBRATION, H100, chat


def test_more_accelerators_and_narrower_weights_fit_as_said() -> None:
    work = chat(precision="bf16", requests_per_s=0.1)
    refused = search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION, 1)
    assert isinstance(refused, Infeasible)
    assert refused.rule == "memory"
    enough, narrower = refused.nearest["accelerators"], str(refused.nearest.get("weights", ""))
    assert isinstance(enough, int)
    assert enough > 1
    assert isinstance(search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION, enough), ServingResult)
    assert isinstance(search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION, enough - 1), Infeasible)
    if narrower:
        less = replace(work, weights_precision=narrower)
        assert isinstance(search_serving(less, H100, None, ServingPlanRequest(), CALIBRATION, 1), ServingResult)


@pytest.mark.parametrize(("metric", "rate"), [("tpot", 1.0), ("ttft", 1.0), ("ttft", 20.0), ("e2e", 20.0)])
def test_the_floor_of_an_objective_is_held_when_asked_for(metric: str, rate: float) -> None:
    def asked(seconds: float) -> ServingResult | Infeasible:
        goal = LatencyObjective(metric=metric, seconds=seconds, percentile=95.0)
        work = chat(precision="fp8", requests_per_s=rate, objectives=(goal,))
        return search_serving(work, H100, None, ServingPlanRequest(), CALIBRATION)

    refused = asked(1e-4)
    assert isinstance(refused, Infeasible)
    assert "GB of weights" in refused.message
    assert "TB/s" in refused.message
    held = asked(float(refused.nearest[f"{metric}_s"]) * (1.0 + 1e-9))
    assert isinstance(held, ServingResult)
    assert not held.saturated
    assert "objectives_met" not in held.assumptions
