"""Shipped hardware and models: complete, in base units, and refusing what they do not know."""

import pytest

from app.catalog.shipped import (
    accelerator_id_of,
    is_benchmark_only,
    read_data,
    read_models,
    shipped_accelerators,
    shipped_models,
    unusable_accelerators,
    unusable_models,
)
from app.engine.accounting import count_parameters


def test_every_accelerator_is_usable_or_says_why() -> None:
    ids = {row["id"] for row in read_data("accelerators.json")["accelerators"]}
    assert set(shipped_accelerators()) | set(unusable_accelerators()) == ids
    assert not set(shipped_accelerators()) & set(unusable_accelerators())
    assert set(unusable_accelerators()) == {"b100"}


def test_units_are_bytes_and_flops() -> None:
    h100 = shipped_accelerators()["h100-sxm5-80"]
    assert h100.memory_bytes == 81920 * 2**20
    assert h100.dense_peaks.bf16 == 989e12
    assert h100.scale_up_bytes_per_s_per_accelerator == 450e9
    assert h100.scale_out_bytes_per_s_per_accelerator == 50e9


def test_memory_is_what_the_driver_reports() -> None:
    assert shipped_accelerators()["b200-sxm-180"].memory_bytes == 183359 * 2**20
    assert shipped_accelerators()["mi300x"].memory_bytes == 206141652992
    assert shipped_accelerators()["rubin-vr200"].memory_bytes_basis == "label"
    assert shipped_accelerators()["rubin-vr200"].memory_bytes == 288e9


def test_impossible_pcie_generation_does_not_reach_the_engine() -> None:
    assert shipped_accelerators()["a10g"].pcie_bytes_per_s == 32e9
    assert shipped_accelerators()["rtx-5090"].pcie_bytes_per_s == 64e9


def test_every_model_is_usable_or_says_what_is_missing() -> None:
    assert set(shipped_models()) | set(unusable_models()) == set(read_models())
    assert "vocab" in unusable_models()["ds-2t"]


def test_benchmark_only_models_are_marked() -> None:
    assert is_benchmark_only("llama3-70b-proxy12l")
    assert not is_benchmark_only("llama3-70b")


# computed totals that treat the model as plain attention, which the rows' notes deny
PLAIN_TOTALS = {"gemma4-31b", "gemma4-26b-a4b", "deepseek-v4-flash"}
COMPUTED = [
    family
    for family, row in read_models().items()
    if row.get("computed_params") and family in shipped_models() and family not in PLAIN_TOTALS
]


@pytest.mark.parametrize("family", COMPUTED)
def test_models_reproduce_the_computed_totals(family: str) -> None:
    computed = read_models()[family]["computed_params"]["total"]
    assert count_parameters(shipped_models()[family]).total == pytest.approx(computed, rel=5e-4)


def test_gpu_strings_are_resolved_or_refused() -> None:
    assert accelerator_id_of("GB200") == "gb200-186"
    with pytest.raises(KeyError, match="accelerator_map"):
        accelerator_id_of("H100")
