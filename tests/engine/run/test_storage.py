"""Data path and checkpoint times."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.errors import EngineInputError
from app.engine.hardware import Storage
from app.engine.run import DataLoading, RunConditions
from app.engine.run.storage import breakdown_with_stall, checkpoint_read_s, checkpoint_write_s, data_stall
from tests.engine.run.builders import cluster

STORE = Storage(id="store", kind="parallel", read_bytes_per_s=1e9, write_bytes_per_s=1e9, gpu_direct=False)


def conditions(storage: Storage | None = STORE, **data: float | bool | None) -> RunConditions:
    return RunConditions(storage=storage, data=DataLoading(**data))


def test_text_tokens_need_little_of_storage() -> None:
    stall = data_stall(1e6, cluster(64), conditions())
    assert stall.share == 0.0
    assert stall.limited_by == "none"
    assert stall.required_read_bytes_per_s == 4e6


def test_short_storage_stalls_in_proportion() -> None:
    stall = data_stall(1e6, cluster(64), conditions(bytes_per_token=2000.0))
    assert stall.limited_by == "storage"
    assert stall.share == pytest.approx(0.5)
    assert stall.required_read_bytes_per_s == 2e9


def test_host_preprocessing_limits() -> None:
    stall = data_stall(2e6, cluster(64), conditions(preprocessing_core_seconds_per_million_tokens=600.0))
    assert stall.required_cores == 1200.0
    assert stall.limited_by == "preprocessing"
    assert stall.share == pytest.approx(1.0 - 64 * 13 / 1200.0)


def test_compression_trades_storage_for_cores() -> None:
    plain = data_stall(1e6, cluster(64), conditions(bytes_per_token=2000.0))
    packed = data_stall(1e6, cluster(64), conditions(bytes_per_token=2000.0, compressed=True))
    assert packed.required_read_bytes_per_s < plain.required_read_bytes_per_s / 2
    assert packed.required_cores > plain.required_cores == 0.0
    engine = data_stall(
        1e6, cluster(64), conditions(bytes_per_token=2000.0, compressed=True, hardware_decompression=True)
    )
    assert engine.required_cores == 0.0


def test_bounce_buffer_halves_the_host_link() -> None:
    direct = data_stall(1e6, cluster(8), conditions(replace(STORE, gpu_direct=True)))
    bounced = data_stall(1e6, cluster(8), conditions())
    ratio = direct.available_tokens_per_s["host_link"] / bounced.available_tokens_per_s["host_link"]
    assert ratio == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["parallel", "nfs", "object", "local"])
def test_every_kind_of_storage_has_an_answer(kind: str) -> None:
    store = replace(STORE, kind=kind, read_bytes_per_s=None, write_bytes_per_s=None)
    stall = data_stall(1e6, cluster(64), conditions(store))
    assert 0.0 <= stall.share < 1.0
    assert math.isfinite(checkpoint_write_s(1e12, cluster(64), conditions(store)))
    assert math.isfinite(checkpoint_read_s(1e12, cluster(64), conditions(store)))


def test_nfs_is_no_faster_than_a_parallel_file_system() -> None:
    nfs = replace(STORE, kind="nfs", read_bytes_per_s=None, write_bytes_per_s=None)
    parallel = replace(nfs, kind="parallel")
    assert (
        data_stall(1e6, cluster(64), conditions(nfs)).available_tokens_per_s["network"]
        < data_stall(1e6, cluster(64), conditions(parallel)).available_tokens_per_s["network"]
    )


def test_bloom_wrote_its_checkpoint_in_40_seconds() -> None:
    """reliability_facts.json: bloom-ckpt, 2.3 TB from 48 nodes."""
    assert checkpoint_write_s(2.3e12, cluster(384, "a100-sxm4-80"), RunConditions()) == pytest.approx(40.0)


@given(st.floats(1e7, 1e13), st.floats(1.0, 100.0), st.floats(1.0, 1e5))
def test_more_bandwidth_never_stalls_more(rate: float, factor: float, bytes_per_token: float) -> None:
    slow = conditions(replace(STORE, read_bytes_per_s=rate), bytes_per_token=bytes_per_token)
    fast = conditions(replace(STORE, read_bytes_per_s=rate * factor), bytes_per_token=bytes_per_token)
    assert data_stall(1e6, cluster(64), fast).share <= data_stall(1e6, cluster(64), slow).share
    assert checkpoint_read_s(1e12, cluster(64), fast) <= checkpoint_read_s(1e12, cluster(64), slow)


@pytest.mark.parametrize("bad", [{"bytes_per_token": 0.0}, {"host_cores_per_accelerator": -1.0}])
def test_impossible_inputs_are_named(bad: dict[str, float]) -> None:
    with pytest.raises(EngineInputError, match=next(iter(bad))):
        DataLoading(**bad)


@given(st.floats(1.0, 1e6))
def test_breakdown_keeps_adding_to_one(bytes_per_token: float) -> None:
    stall = data_stall(1e6, cluster(64), conditions(bytes_per_token=bytes_per_token))
    shares = breakdown_with_stall({"matmul": 0.6, "overhead": 0.4}, stall)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["data_stall"] == stall.share
