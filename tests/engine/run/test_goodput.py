"""Young and Daly: the interval is the best one, time is complete and monotone."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.run.goodput import best_interval_s, goodput, mean_time_to_interruption_s, spare_nodes

SECONDS = st.floats(1.0, 1e4)


def test_young_first_order() -> None:
    """Young 1974: sqrt(2 d M) for small d."""
    assert best_interval_s(1.0, 1e6) == pytest.approx(math.sqrt(2e6), rel=2e-3)


@given(st.floats(0.1, 300.0), st.floats(1e3, 1e7))
def test_no_other_interval_is_better(block: float, mean_time: float) -> None:
    best = best_interval_s(block, mean_time)

    def wall(interval: float) -> float:
        parts = goodput(1e8, interval_s=interval, block_s=block, restart_s=600.0, mean_time_s=mean_time)
        return parts.wall_s

    tolerance = 1.0 + 1e-3
    assert wall(best) <= wall(best * 1.3) * tolerance
    assert wall(best) <= wall(max(1.0, best / 1.3)) * tolerance


@given(st.floats(1e3, 1e7), SECONDS, st.floats(0.0, 100.0), st.floats(0.0, 3600.0), st.floats(1e3, 1e8))
def test_parts_add_up(work: float, interval: float, block: float, restart: float, mean_time: float) -> None:
    parts = goodput(work, interval_s=interval, block_s=block, restart_s=restart, mean_time_s=max(mean_time, 1e4))
    total = parts.work_s + parts.checkpoint_s + parts.restart_s + parts.lost_s
    assert total == pytest.approx(parts.wall_s, rel=1e-6)
    assert 0.0 < parts.share <= 1.0


@given(st.floats(1e4, 1e7), st.floats(1.0, 50.0))
def test_fewer_failures_are_never_slower(mean_time: float, factor: float) -> None:
    def wall(mean: float) -> float:
        return goodput(1e6, interval_s=1000.0, block_s=5.0, restart_s=600.0, mean_time_s=mean).wall_s

    assert wall(mean_time * factor) <= wall(mean_time) * (1 + 1e-9)


def test_without_failures_only_saving_costs() -> None:
    parts = goodput(1000.0, interval_s=100.0, block_s=1.0, restart_s=600.0, mean_time_s=math.inf)
    assert parts.wall_s == 1010.0
    assert parts.interruptions == 0.0


@given(st.floats(1e-5, 10.0), st.floats(0.0, 60.0))
def test_a_short_run_is_one_segment_with_one_save(work: float, block: float) -> None:
    mean_time = 1e7
    interval = best_interval_s(block, mean_time, shortest_s=40.0)
    assert interval >= 40.0
    parts = goodput(work, interval_s=interval, block_s=block, restart_s=660.0, mean_time_s=mean_time)
    assert parts.checkpoint_s == block
    assert parts.wall_s == pytest.approx(work + block, rel=1e-3)
    assert 0.999 < parts.share <= 1.0 + 1e-12


def test_llama_3_mean_time() -> None:
    """419 interruptions in 54 days on 16,384 accelerators: one in 3.09 hours (reliability_facts.json)."""
    assert mean_time_to_interruption_s(16384, 2048, 419 / 54 / 16384) / 3600 == pytest.approx(3.09, abs=0.005)


def test_spot_adds_its_own_interruptions() -> None:
    alone = mean_time_to_interruption_s(64, 8, 0.0, 0.01)
    assert alone == pytest.approx(3600.0 / 0.08)
    assert mean_time_to_interruption_s(64, 8, 1e-3, 0.01) < alone


def test_spares_grow_slower_than_the_fleet() -> None:
    small, large = spare_nodes(52, 416, 0.37e-3, 2.0), spare_nodes(2048, 16384, 0.474e-3, 2.0)
    assert 1 <= small <= 4
    assert small < large < 40 * small
    assert spare_nodes(1, 8, 1.0, 2.0) == 0
