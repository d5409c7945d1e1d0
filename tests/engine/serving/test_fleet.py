"""Hourly fleets, commitment splits and the questions turned round."""

import pytest

from app.engine.outcome import ServingResult
from app.engine.serving.fleet import commitment_levels, hourly_fleet, most_concurrency
from app.engine.workload import LatencyObjective, ServingPlanRequest
from tests.engine.serving.test_search import CALIBRATION, H100, chat

DAY = [0.2] * 8 + [1.0] * 8 + [1.8] * 8


def test_replicas_follow_the_hours() -> None:
    fleet = hourly_fleet(50.0, DAY, 10.0, minimum_replicas=2, spare_replicas=1)
    assert fleet.replicas[0] == 3
    assert fleet.replicas[8] == 6
    assert fleet.peak == 10
    assert sum(fleet.requests_per_s) / 24 == pytest.approx(50.0)


def test_every_split_pays_for_every_hour_that_is_needed() -> None:
    fleet = hourly_fleet(50.0, DAY, 10.0)
    levels = commitment_levels(fleet)
    needed = fleet.mean * 730.0
    for level in levels:
        used = level.committed_replica_hours_per_month * (1.0 - level.idle_share)
        assert used + level.on_demand_replica_hours_per_month == pytest.approx(needed)
    assert levels[0].on_demand_replica_hours_per_month == pytest.approx(needed)
    assert levels[-1].on_demand_replica_hours_per_month == 0.0


@pytest.mark.parametrize("weights", [[1.0] * 23, [0.0] * 24, [-1.0] + [1.0] * 23])
def test_a_profile_that_is_none_is_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match="hourly"):
        hourly_fleet(1.0, weights, 1.0)


def test_more_users_than_the_answer_break_the_objective() -> None:
    work = chat(objectives=(LatencyObjective(metric="tpot", seconds=0.03, percentile=95.0),))
    best = most_concurrency(work, H100, None, ServingPlanRequest(), CALIBRATION, 8)
    assert isinstance(best, ServingResult)
    assert best.tpot_s.p95 <= 0.03
    users = best.replicas * best.concurrency_per_replica
    assert users > 8
