"""The verdict on a claimed range, decided by the predicted interval."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from app.engine.law import chance_below
from app.engine.outcome import Band

Better = Literal["higher", "lower"]
Verdict = Literal["supported", "optimistic", "pessimistic", "contradicted", "not_decidable"]

# The interval is p10 to p90: what lies wholly beyond it has at most one chance in ten.
SELDOM = 0.10
USUALLY = 1.0 - SELDOM
# A stated single figure means a rounded one: half a unit of its last digit, but never more than one part in twenty.
WIDEST_ROUNDING = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRange:
    """What is claimed, on the scale it is judged on; None = no bound on that side."""

    low: float | None
    high: float | None

    def scaled_to_ratio(self) -> "ClaimedRange":
        """A percent change as a ratio: -40 becomes 0.6."""
        low = None if self.low is None else 1.0 + self.low / 100.0
        high = None if self.high is None else 1.0 + self.high / 100.0
        return ClaimedRange(low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A verdict with the chances behind it; they add to one."""

    verdict: Verdict
    worse: float
    within: float
    better: float


def rounded_range(figure: float) -> ClaimedRange:
    """The range a single stated figure stands for: 2.5 is 2.45 to 2.55.

    Parameters
    ----------
    figure : float [any]
        As written; zero and one are exact (they mean no and yes).
    """
    if figure in (0.0, 1.0):
        return ClaimedRange(low=figure, high=figure)
    written = Decimal(repr(figure)).normalize()
    exponent = written.as_tuple().exponent
    assert isinstance(exponent, int)
    half = min(0.5 * 10.0**exponent, abs(figure) * WIDEST_ROUNDING)
    return ClaimedRange(low=figure - half, high=figure + half)


def judge(band: Band, claimed: ClaimedRange, better: Better) -> Judgement:
    """Decide a claim.

    Parameters
    ----------
    band : Band
        The prediction.
    claimed : ClaimedRange
        On the same scale.
    better : str
        Whether more of the figure is better for who buys it.

    Notes
    -----
    ``worse`` is the chance that the truth is worse than the worse end of the claim. At least 0.9: ``contradicted``.
    Above one half: ``optimistic``. At most 0.1: ``supported``, or ``pessimistic`` where the truth is more likely than
    not better than the better end. In between the interval crosses the worse end of the claim with the middle on the
    right side: ``not_decidable``. A seller may print what is supported; a buyer may reject what is contradicted.
    """
    under = 0.0 if claimed.low is None else chance_below(band, claimed.low)
    over = 0.0 if claimed.high is None else _above(band, claimed.high)
    worse, finer = (under, over) if better == "higher" else (over, under)
    verdict: Verdict = "not_decidable"
    if worse >= USUALLY:
        verdict = "contradicted"
    elif worse > 0.5:
        verdict = "optimistic"
    elif worse <= SELDOM:
        verdict = "pessimistic" if finer > 0.5 else "supported"
    return Judgement(verdict=verdict, worse=worse, within=max(0.0, 1.0 - worse - finer), better=finer)


def _above(band: Band, value: float) -> float:
    if band.p10 == band.p90:
        return 1.0 if band.p50 > value else 0.0
    return 1.0 - chance_below(band, value)


def holds(judgement: Judgement) -> bool:
    """Whether a claim may be printed: it is at least as good as it says."""
    return judgement.verdict in ("supported", "pessimistic")
