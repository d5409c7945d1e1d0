"""Campaigns: scheduling and inputs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.errors import EngineInputError
from app.engine.run.campaign import Campaign, accelerators_per_run, calendar_hours, iterations_per_week


def test_one_run_is_itself() -> None:
    assert calendar_hours(10.0, Campaign()) == 10.0


def test_runs_in_a_row_and_side_by_side() -> None:
    assert calendar_hours(10.0, Campaign(full_runs=6)) == 60.0
    assert calendar_hours(10.0, Campaign(full_runs=6, concurrent_runs=3)) == 20.0
    assert calendar_hours(10.0, Campaign(full_runs=4, concurrent_runs=3)) == 20.0


def test_partial_runs_fill_the_gaps() -> None:
    campaign = Campaign(full_runs=1, partial_runs=6, fraction=0.1, concurrent_runs=2)
    assert calendar_hours(10.0, campaign) == pytest.approx(10.0)


def test_reruns_are_expected_work() -> None:
    assert calendar_hours(10.0, Campaign(full_runs=2, reruns_expected=0.5)) == 25.0


def test_three_trainings_a_week() -> None:
    assert iterations_per_week(56.0, Campaign(full_runs=10)) == pytest.approx(3.0)


@given(st.integers(0, 20), st.integers(1, 20), st.floats(0.01, 1.0), st.integers(1, 8))
def test_makespan_is_bounded(full: int, partial: int, fraction: float, slots: int) -> None:
    campaign = Campaign(full_runs=full, partial_runs=partial, fraction=fraction, concurrent_runs=slots)
    hours = calendar_hours(1.0, campaign)
    average = campaign.equivalents / slots
    longest = 1.0 if full else fraction
    assert max(average, longest) * (1 - 1e-9) <= hours <= (average + longest) * (1 + 1e-9)


def test_fleet_is_divided() -> None:
    assert accelerators_per_run(64, Campaign(concurrent_runs=4)) == 16
    assert accelerators_per_run(8, Campaign(concurrent_runs=6)) == 1
    with pytest.raises(EngineInputError, match="do not fit"):
        accelerators_per_run(4, Campaign(concurrent_runs=6))


@pytest.mark.parametrize(
    "bad",
    [{"full_runs": 0}, {"full_runs": -1}, {"fraction": 0.0}, {"concurrent_runs": 0}, {"reruns_expected": -1.0}],
)
def test_impossible_campaigns_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(EngineInputError, match="campaign"):
        Campaign(**bad)
