"""Tables of two papers that no parameter was fitted to (Narayanan 2021), or that were among the rows (Korthikanti)."""

import statistics
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.engine.workload import Software
from tests.engine.training.builders import accelerator, cluster, gpt, result, workload

GOLDEN = Path(__file__).parents[2] / "golden"
MEGATRON = yaml.safe_load((GOLDEN / "megatron_2021.yaml").read_text(encoding="utf-8"))
KORTHIKANTI = yaml.safe_load((GOLDEN / "korthikanti_2022.yaml").read_text(encoding="utf-8"))


def hardware_tflops(case: dict[str, Any]) -> float:
    layers, hidden, vocab, sequence = case["layers"], case["hidden"], MEGATRON["vocab"], MEGATRON["sequence"]
    job = workload(
        transformer=gpt(layers, hidden, case["heads"], vocab),
        sequence_length=sequence,
        global_batch_sequences=case["batch"],
        precision=MEGATRON["precision"],
        software=Software(stack=MEGATRON["stack"], released_year=MEGATRON["released_year"]),
    )
    machine = cluster(case["accelerators"], accelerator(MEGATRON["accelerator"]))
    found = result(
        job,
        machine,
        tensor=case["tensor"],
        pipeline=case["pipeline"],
        context=1,
        sharding="none" if case["pipeline"] > 1 or case["tensor"] > 1 else None,
        recompute="full",
        sequence_parallel=False,
    )
    shape = 1.0 + sequence / (6.0 * hidden) + vocab / (16.0 * layers * hidden)
    flops = 96.0 * case["batch"] * sequence * layers * hidden**2 * shape
    return flops / (found.step_s.p50 * case["accelerators"]) / 1e12


@pytest.mark.parametrize("case", MEGATRON["cases"], ids=lambda c: c["name"])
def test_megatron_2021_table_1(case: dict[str, Any]) -> None:
    assert hardware_tflops(case) == pytest.approx(case["expected_tflops"], rel=MEGATRON["tolerance_each"])


def test_megatron_2021_table_1_median() -> None:
    errors = [abs(hardware_tflops(case) / case["expected_tflops"] - 1.0) for case in MEGATRON["cases"]]
    assert statistics.median(errors) <= MEGATRON["tolerance_median"]


@pytest.mark.parametrize("mode", ["full", "selective"])
@pytest.mark.parametrize("case", KORTHIKANTI["cases"], ids=lambda c: c["name"])
def test_korthikanti_2022_table_5(case: dict[str, Any], mode: str) -> None:
    job = workload(
        case["family"],
        sequence_length=KORTHIKANTI["sequence"],
        global_batch_sequences=case["batch"],
        precision=KORTHIKANTI["precision"],
        software=Software(stack=KORTHIKANTI["stack"], released_year=KORTHIKANTI["released_year"]),
    )
    found = result(
        job,
        cluster(case["accelerators"], accelerator(KORTHIKANTI["accelerator"])),
        tensor=case["tensor"],
        pipeline=case["pipeline"],
        virtual_pipeline=case["virtual"],
        context=1,
        micro_batch_sequences=case["micro_batch"],
        recompute=mode,
        sequence_parallel=mode == "selective",
    )
    assert found.step_s.p50 == pytest.approx(case[f"{mode}_s"], rel=KORTHIKANTI["tolerance"])
