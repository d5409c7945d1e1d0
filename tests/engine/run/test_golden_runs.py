"""Golden cases of ``tests/golden/runs.yaml``: goodput of published runs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.engine.run import Checkpointing, Reliability, RunConditions
from tests.engine.run.builders import run

CASES = yaml.safe_load((Path(__file__).parents[2] / "golden" / "runs.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    reliability = Reliability()
    if "interruptions_per_accelerator_day" in case:
        rate = float(case["interruptions_per_accelerator_day"])
        reliability = replace(reliability, interruptions_per_accelerator_day=(rate, rate, rate))
    if "restart_hours" in case:
        reliability = replace(reliability, restart_s=(3600.0 * case["restart_hours"],) * 3)
    checkpointing = Checkpointing(
        interval_s=3600.0 * case["interval_hours"] if "interval_hours" in case else None,
        asynchronous=case.get("asynchronous", True),
    )
    conditions = RunConditions(reliability=reliability, checkpointing=checkpointing)
    sizes = {
        "accelerators": case["accelerators"],
        "accelerator": case["accelerator"],
        "parameters": float(case["parameters"]),
    }
    once = run(conditions, tokens=1e12, **sizes)
    # scaled so that the calendar time is the observed window
    tokens = 1e12 * case["wall_days"] * 24.0 / once.run_hours.p50
    outcome = run(conditions, tokens=tokens, **sizes)
    assert outcome.run_hours.p50 == pytest.approx(24.0 * case["wall_days"], rel=0.02)
    for name, (low, high) in case["expected"].items():
        assert low <= getattr(outcome, name) <= high, (name, getattr(outcome, name))
