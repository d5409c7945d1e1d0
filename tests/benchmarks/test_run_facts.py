"""What the reports of whole runs are read as: date, part, precision, stack, plan."""

from typing import Any

import pytest

from app.catalog.shipped import read_data, shipped_accelerators
from app.engine.hardware import Cluster
from app.engine.training.calibration import TrainingCalibration
from benchmarks.accuracy import run_facts as facts
from benchmarks.accuracy.whole_runs import judge

A100 = shipped_accelerators()["a100-sxm4-80"]


def case(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": "own-7b",
        "kind": "pretrain",
        "model": {"name": "Own 7B", "parameters": 7e9},
        "tokens": 1e12,
        "hardware": {"catalog_id": "a100-sxm4-80", "label": "A100", "count": 256},
        "measured": {"wall_hours": 500.0},
        "source": "somebody's page",
    }
    return base | changes


@pytest.mark.parametrize(
    ("changes", "year"),
    [
        ({"date": "2022-07"}, 2022.0 + 6.5 / 12.0),
        ({"source": "model card, started 2023-08-23, A100"}, 2023.0 + 7.5 / 12.0),
        ({"source": "arXiv 2402.16819, 13 days"}, 2024.0 + 1.5 / 12.0 - facts.REPORT_LAG_YEARS),
        # an undated page leaves the middle of the part's years; a dated one bounds them
        ({}, 2020.0 + facts.MIDDLE_AGE_YEARS),
        ({"source": "README @abc (2023-01-24)"}, 2023.0 + 0.5 / 12.0),
        ({"source": "README @abc (2025-01-24)"}, 2020.0 + facts.MIDDLE_AGE_YEARS),
        ({"source": "README (2022-01-24), FlashAttention-2"}, 2023.6),
    ],
)
def test_year_of_a_run(changes: dict[str, Any], year: float) -> None:
    assert facts.year_of(case(**changes), A100) == pytest.approx(year)


def test_a_bare_name_is_a_part_and_said_to_be_assumed() -> None:
    part, assumed = facts.accelerator_of(case(hardware={"catalog_id": None, "label": "A100, memory size not stated"}))
    assert part is not None
    assert (part.id, assumed) == ("a100-sxm4-80", True)
    assert facts.accelerator_of(case(hardware={"catalog_id": "nothing-9", "label": "A100"})) == (None, False)


@pytest.mark.parametrize(
    ("stated", "read"), [(None, "bf16"), ("nf4 + bf16", "bf16"), ("fp8", "bf16"), ("fp16 mixed", "fp16")]
)
def test_precision_is_one_the_part_has(stated: str | None, read: str) -> None:
    assert facts.precision_of(case(precision=stated), A100) == read


def test_a_framework_name_makes_no_vendor_recipe() -> None:
    assert facts.stack_of(case(source="trained with a Megatron-LM fork")) == "plain"
    assert facts.stack_of(case(id="llmc-gpt2", source="karpathy/llm.c")) is None


def test_samples_are_their_mean_length_unless_packed() -> None:
    samples = case(sequence_length=20000, dataset={"mean_tokens": 4700})
    assert facts.sequence_of(samples) == 4700
    assert facts.sequence_of(samples | {"notes": "packed sequences"}) == 20000
    assert facts.sequence_of(case()) == facts.SEQUENCE


@pytest.mark.parametrize(
    ("tokens", "sequence", "accelerators", "sequences"),
    [
        # 976.6 told, shared by all 992, by half of 2,048; 440 has no power of two near 1,758 but itself four times
        (4e6, 4096, 992, 992),
        (4e6, 4096, 2048, 1024),
        (3.6e6, 2048, 440, 1760),
        (524288, 1024, 8, 512),
    ],
)
def test_a_batch_told_in_round_tokens_is_shared_evenly(
    tokens: float, sequence: int, accelerators: int, sequences: int
) -> None:
    assert facts.batch_of(tokens, sequence, accelerators) == sequences


def test_hands_restarted_jobs_before_automatic_recovery() -> None:
    assert facts.conditions_of(2023.5).reliability == facts.MANUAL
    assert facts.conditions_of(2024.5).reliability.restart_s[1] < facts.MANUAL.restart_s[1]


def test_an_unstated_plan_is_slower_than_the_best_beyond_one_node() -> None:
    small, large = (Cluster(accelerator=A100, accelerators=count, fabric=None) for count in (8, 16))
    assert facts.plan_loss(small) == (1.0, 1.0, 1.0)
    assert facts.plan_loss(large) == facts.UNSTATED_PLAN


def test_earlier_runs_take_longer() -> None:
    calibration = TrainingCalibration.from_mapping(read_data("calibration/training.json"))
    old, new = (judge(case(date=date), calibration)[0].predicted for date in ("2022-06", "2026-06"))
    assert old is not None
    assert new is not None
    assert old > 1.05 * new
