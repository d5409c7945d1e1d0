"""Inverse question: the answer takes exactly the time that was given."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.errors import EngineInputError
from app.engine.run import Campaign, RunConditions, tokens_within
from tests.engine.run.builders import cluster, result, run, workload


@settings(deadline=None, max_examples=25)
@given(
    st.floats(1.0, 5000.0),
    st.sampled_from(["p10", "p50", "p90"]),
    st.builds(Campaign, full_runs=st.integers(1, 4), concurrent_runs=st.integers(1, 4)),
)
def test_round_trip(hours: float, percentile: str, campaign: Campaign) -> None:
    conditions = RunConditions(campaign=campaign)
    tokens = tokens_within(hours, result(1e6), workload(1.0), cluster(64), conditions, percentile)
    assert isinstance(tokens, float)
    took = run(conditions, tokens=tokens).duration_hours
    assert getattr(took, percentile) == pytest.approx(hours, rel=1e-4)


def test_being_surer_trains_less() -> None:
    likely, sure = (
        tokens_within(720.0, result(1e6), workload(1.0), cluster(64), RunConditions(), percentile)
        for percentile in ("p50", "p90")
    )
    assert isinstance(likely, float)
    assert isinstance(sure, float)
    assert sure < likely < 1e6 * 720 * 3600


@pytest.mark.parametrize("hours", [0.0, -1.0, float("inf"), float("nan")])
def test_impossible_hours_are_refused(hours: float) -> None:
    with pytest.raises(EngineInputError, match="hours"):
        tokens_within(hours, result(1e6), workload(1.0), cluster(64), RunConditions())
