"""Measurement rows as cases: conventions of the sources, and rows that are refused with a reason."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.serving.batch import assemble, predict
from benchmarks.serving.cases import speculation_of
from benchmarks.serving.read import read_cases
from benchmarks.serving.stacks import released_year, stack_of
from tests.engine.serving.test_search import CALIBRATION

ROWS = Path(__file__).parents[3] / "benchmarks" / "data" / "inference_calibration.jsonl"


def row(prefix: str, **changes: Any) -> dict[str, Any]:
    for line in ROWS.read_text(encoding="utf-8").splitlines():
        found: dict[str, Any] = json.loads(line)
        if found["id"].startswith(prefix):
            changed = copy.deepcopy(found)
            changed.update(changes)
            return changed
    raise AssertionError(prefix)


def test_nominal_lengths_become_served_ones() -> None:
    (nominal, served), _ = read_cases([row("inferencex-via-aic"), row("sgl-cookbook")])
    assert nominal.prompt == pytest.approx(0.9 * 1024)
    assert served.prompt == pytest.approx(610.1)
    assert served.test_requests == 10.0


def test_attention_ranks_inside_the_tensor_width_are_divided_out() -> None:
    inside = {"tp": 8, "pp": 1, "ep": 8, "dp": 8}
    (case,), _ = read_cases([row("sgl-cookbook", gpus=8, parallelism=inside)])
    assert case.plan == (1, 1, 8, 8)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "Wormhole n300"}, "unknown accelerator"),
        ({"model": {"name": "x", "family_key": "no-such-model"}}, "unknown model"),
        ({"precision": "ternary"}, "unknown precision"),
        ({"osl": None}, "no output length"),
        ({"gpus": None}, "malformed"),
    ],
)
def test_rows_that_cannot_be_read_say_why(changes: dict[str, Any], reason: str) -> None:
    cases, refusals = read_cases([row("inferencex-via-aic", **changes)])
    assert not cases
    assert reason in refusals[0].reason


@pytest.mark.parametrize(
    ("engine", "stack", "year"),
    [
        ("vLLM 0.19.0", "vllm", 2026.3),
        ("SGLang 0.5.6.post2", "sglang", 2025.92),
        ("TensorRT-LLM 0.17 (TRT backend)", "tensorrt-llm", 2025.1),
        ("TensorRT 10.2.0, CUDA 12.4", "tensorrt-llm", 2024.6),
    ],
)
def test_engines_have_a_release_year(engine: str, stack: str, year: float) -> None:
    assert stack_of(engine) == stack
    assert released_year(engine, stack, None) == year


def test_missing_precision_is_the_best_of_the_chip() -> None:
    (case,), _ = read_cases([row("inferencex-via-aic", precision=None)])
    assert case.precisions.weights == "nvfp4"
    (case,), _ = read_cases([row("inferencex-via-aic", precision=None, gpu="A100-SXM-80GB")])
    assert case.precisions.weights == "bf16"


@pytest.mark.parametrize(
    ("text", "draft", "accepted"),
    [
        ("no speculative flag in the nearest launch command", 0, 1.0),
        ("speculative-decoding flag absent from the sample", 0, 1.0),
        ("max throughput; attention dp; no mtp", 0, 1.0),
        ("eagle speculative decoding; accept length 3.27", 3, 3.27),
        ("launched with eagle, draft tokens 4", 4, 1 + 0.85 + 0.85**2 + 0.85**3 + 0.85**4),
        ("mtp-1 enabled", 1, 1.85),
    ],
)
def test_speculation_is_read_where_a_row_states_it(text: str, draft: int, accepted: float) -> None:
    assert speculation_of(text) == (draft, pytest.approx(accepted))


def test_an_offline_test_runs_no_more_than_it_sends() -> None:
    offline = next(json.loads(line) for line in ROWS.read_text("utf-8").splitlines() if '"offline"' in line)
    few, many = ({**offline, "notes": f"{n} requests at once", "concurrency": None, "batch": None} for n in (8, 80000))
    (small, large), _ = read_cases([few, many])
    (none,), _ = read_cases([{**few, "notes": "10 requests/s"}])
    assert (small.test_requests, none.test_requests) == (8.0, None)
    assert assemble([small], CALIBRATION).running[0, 0] == 8.0
    assert assemble([large], CALIBRATION).running[0, 0] > 8.0


def test_speculation_shortens_the_time_a_token_takes() -> None:
    plain = row("sgl-cookbook")
    spoken = {**plain, "notes": f"{plain['notes']}; eagle; accept length 3.0"}
    cases, _ = read_cases([plain, spoken])
    tpot = predict(assemble(cases, CALIBRATION), np.full((2, 1), 0.01)).tpot_s
    assert tpot[0] / 3.0 < tpot[1] < tpot[0]


def test_what_inferencex_sets_and_its_rows_leave_out() -> None:
    def of(model: str, gpu: str, engine: str) -> Any:
        changes = {"model": {"name": model, "family_key": model}, "gpu": gpu, "engine": engine, "precision": "fp8"}
        (case,), _ = read_cases([row("inferencex-via-aic", **changes)])
        return case.precisions.kv, case.overlaps, case.chunk

    assert of("llama3-70b", "H100-SXM-80GB", "vLLM") == ("fp8", True, 8192.0)
    assert of("minimax-m2.5", "H100-SXM-80GB", "vLLM 0.18.0") == ("bf16", True, 8192.0)
    assert of("gpt-oss-120b", "B200-SXM-180GB", "TensorRT-LLM 1.2.0rc2") == ("fp8", False, 16384.0)
    assert of("gpt-oss-120b", "H200-SXM-141GB", "vLLM 0.18.0")[0] == "bf16"
    (other,), _ = read_cases([row("nvidia-aic-gap")])
    assert (other.overlaps, other.chunk) == (False, None)


def test_one_request_at_a_time_decodes_alone_however_long_its_prompt() -> None:
    """With a prompt that takes most of its time, a step still reads one whole sequence, not the share that decodes."""
    changes = {
        "isl": 64_000,
        "osl": 100,
        "concurrency": 1,
        "batch": 1,
        "model": {"name": "", "family_key": "llama3-8b"},
    }
    short = row("nvidia-aic-gap", **changes, parallelism={"tp": 1, "pp": 1, "ep": 1, "dp": 1}, gpus=1)
    cases, _ = read_cases([short, {**short, "osl": 8_000, "isl": 60_050}])
    tpot = predict(assemble(cases, CALIBRATION), np.full((2, 1), 0.01)).tpot_s
    assert tpot[0] == pytest.approx(tpot[1], rel=0.01)  # the same mean context, whatever the share of the prompt
