"""Measured serving figures against the shipped parameters."""

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.catalog.shipped import shipped_models
from app.engine.outcome import ServingResult
from app.engine.serving.search import search_serving
from app.engine.workload import Lengths, ServingPlanRequest, ServingWorkload, Software
from tests.engine.serving.test_search import CALIBRATION, CHIPS

ROOT = Path(__file__).parents[3]
CASES = yaml.safe_load((ROOT / "tests" / "golden" / "serving.yaml").read_text(encoding="utf-8"))
SERVED_LENGTH = 0.9


def points_of(case: dict[str, Any]) -> list[dict[str, Any]]:
    if "points" in case:
        return list(case["points"])
    wanted, out = case["from_rows"], []
    for line in (ROOT / "benchmarks" / "data" / "inference_calibration.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if not (
            row["id"].startswith(wanted["id_prefix"])
            and row["gpu"] == wanted["gpu"]
            and row["engine"].startswith(wanted["engine"])
            and row["model"]["family_key"] == wanted["family_key"]
        ):
            continue
        out.append(
            {
                "input": row["isl"] * SERVED_LENGTH,
                "output": row["osl"] * SERVED_LENGTH,
                "concurrency": row["concurrency"],
                "tensor": row["parallelism"]["tp"],
                "accelerators": row["gpus"],
                "expected": row["measured"]["tpot_ms"],
            }
        )
    return out


def predicted(inputs: dict[str, Any], point: dict[str, Any], metric: str) -> float:
    merged = {**inputs, **point}
    work = ServingWorkload(
        transformer=shipped_models()[merged["model"]],
        input_tokens=Lengths(mean=merged["input"]),
        output_tokens=Lengths(mean=merged["output"]),
        weights_precision=merged["weights"],
        activations_precision=merged["weights"],
        kv_precision=merged["kv"],
        concurrency=merged.get("concurrency"),
        offline="concurrency" not in merged,
        software=Software(stack=merged["stack"], released_year=merged["released_year"]),
    )
    plan = ServingPlanRequest(tensor=merged["tensor"], pipeline=1, expert=1, data=1)
    result = search_serving(work, CHIPS[merged["accelerator"]], None, plan, CALIBRATION, merged["accelerators"])
    assert isinstance(result, ServingResult), result
    return result.output_tokens_per_s.p50 if metric == "output_tokens_per_s" else result.tpot_s.mean.p50 * 1e3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_measured_figures_are_reproduced(case: dict[str, Any]) -> None:
    points = points_of(case)
    assert len(points) >= 4
    errors = [abs(predicted(case["inputs"], p, case["metric"]) / p["expected"] - 1.0) for p in points]
    assert statistics.median(errors) <= case["median_tolerance"], errors
    assert max(errors) <= case["tolerance"], errors
