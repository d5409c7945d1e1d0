"""What a refusal says would do has been tried: fed back, it runs."""

from dataclasses import replace
from typing import Any

import pytest

from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.nearest import with_nearest
from app.engine.training.search import search_training
from app.engine.workload import TrainingPlanRequest
from tests.engine.training.builders import calibration, cluster, workload


@pytest.mark.parametrize(
    ("family", "count", "pins", "rule"),
    [
        ("llama3.1-405b", 8, {}, "memory"),
        ("llama3-70b", 16, {"tensor": 8, "pipeline": 1, "sharding": "zero1"}, "memory"),
        ("llama3-70b", 64, {"tensor": 1, "pipeline": 1, "sharding": "none", "recompute": "none"}, "memory"),
        ("llama3-70b", 24, {"tensor": 3}, "divisibility"),
        ("llama3-8b", 264, {"pipeline": 33}, "divisibility"),
        ("llama3-8b", 24, {"context": 3}, "divisibility"),
        ("llama3-8b", 8, {"pipeline": 2, "virtual_pipeline": 40}, "divisibility"),
        ("llama3-8b", 8, {"micro_batch_sequences": 64, "tensor": 1, "pipeline": 1, "context": 1, "data": 8}, "batch"),
        ("llama3-8b", 8, {"expert": 2}, "contradiction"),
        ("llama3-8b", 8, {"expert_tensor": 4}, "contradiction"),
        ("deepseek-v3", 128, {"expert": 256}, "divisibility"),
    ],
)
def test_the_nearest_plan_runs(family: str, count: int, pins: dict[str, Any], rule: str) -> None:
    job, machine, request = workload(family), cluster(count), TrainingPlanRequest(**pins)
    refused = search_training(job, machine, request, calibration())
    assert isinstance(refused, Infeasible)
    assert refused.rule == rule
    changes: dict[str, Any] = dict(with_nearest(refused, job, machine, request, calibration()).nearest)
    assert changes
    machine = replace(machine, accelerators=changes.pop("accelerators", count))
    assert set(changes) <= set(pins)
    assert isinstance(search_training(job, machine, replace(request, **changes), calibration()), TrainingResult)


def test_a_missing_number_format_is_not_a_matter_of_plans() -> None:
    job = workload(precision="nvfp4")
    refused = search_training(job, cluster(), TrainingPlanRequest(), calibration())
    assert isinstance(refused, Infeasible)
    assert with_nearest(refused, job, cluster(), TrainingPlanRequest(), calibration()) == refused
