"""Verdicts follow from the interval, not from a point."""

import pytest

from app.claims.verdict import Better, ClaimedRange, Verdict, judge, rounded_range
from app.engine.outcome import Band

SPEEDUP = Band(p10=1.8, p50=2.0, p90=2.2)


@pytest.mark.parametrize(
    ("low", "high", "better", "verdict"),
    [
        (1.5, 2.5, "higher", "supported"),
        (1.5, None, "higher", "supported"),
        (2.1, 2.5, "higher", "optimistic"),
        (2.5, 3.0, "higher", "contradicted"),
        (1.0, 1.5, "higher", "pessimistic"),
        (1.0, 1.9, "higher", "pessimistic"),
        (1.9, 2.1, "higher", "not_decidable"),
        (None, 2.5, "lower", "supported"),
        (None, 1.9, "lower", "optimistic"),
        (None, 1.5, "lower", "contradicted"),
        (2.1, 3.0, "lower", "pessimistic"),
        (0.0, 2.1, "lower", "not_decidable"),
    ],
)
def test_verdicts(low: float | None, high: float | None, better: Better, verdict: Verdict) -> None:
    judged = judge(SPEEDUP, ClaimedRange(low=low, high=high), better)
    assert judged.verdict == verdict
    assert judged.worse + judged.within + judged.better == pytest.approx(1.0)


def test_the_same_middle_with_a_wider_interval_is_not_decided() -> None:
    claim = ClaimedRange(low=1.7, high=None)
    assert judge(SPEEDUP, claim, "higher").verdict == "supported"
    assert judge(Band(p10=1.2, p50=2.0, p90=3.3), claim, "higher").verdict == "not_decidable"


def test_a_known_figure_is_decided_without_an_interval() -> None:
    known = Band(p10=2.274, p50=2.274, p90=2.274)
    assert judge(known, rounded_range(2.5), "higher").verdict == "contradicted"
    assert judge(known, rounded_range(2.3), "higher").verdict == "supported"


@pytest.mark.parametrize(
    ("stated", "low", "high"),
    [(2.5, 2.45, 2.55), (0.5, 0.475, 0.525), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (30.0, 28.5, 31.5)],
)
def test_a_single_figure_stands_for_what_rounds_to_it(stated: float, low: float, high: float) -> None:
    claimed = rounded_range(stated)
    assert (claimed.low, claimed.high) == pytest.approx((low, high))
