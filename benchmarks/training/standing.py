"""How searched plans stand against the plans rows state and against their measurements."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.training.predict import Prediction
from benchmarks.training.reasons import CLAIM_LIMIT

# a searched plan counts as the equal of the stated one down to rounding
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How the searched plans of some rows stand.

    Shares of ``rows``: predicted at least as fast as the stated plan, as the measurement, as 95 % of it; claiming more
    than ``CLAIM_LIMIT`` times the measurement, of which ``silent`` rows give no reason. ``model_low`` rows are below
    their measurement because their stated plan is predicted lower still; ``search_low`` because the search misses it.
    """

    rows: int
    against_plan: float
    against_measured: float
    nearly_measured: float
    above_limit: float
    silent: int
    model_low: int
    search_low: int

    def words(self) -> str:
        """One sentence each: plan against plan, plan against measurement, claims."""
        return (
            f"Searched plans of {self.rows} rows: predicted at least as fast as the plan the row states in "
            f"{self.against_plan:.1%} of them; at or above the measured rate in {self.against_measured:.1%}, at or "
            f"above 95 % of it in {self.nearly_measured:.1%}. Of the rows below their measurement {self.model_low} "
            f"have a stated plan that is predicted lower still (model error), {self.search_low} one that beats the "
            f"searched plan (a hole of the search). Above {CLAIM_LIMIT} times the measurement in "
            f"{self.above_limit:.1%}, {self.silent} of them without a reason."
        )


def standing(figures: Sequence[Prediction]) -> Standing:
    """Stand of the searched plans of throughput figures."""
    known = [f for f in figures if f.metric == "tokens_per_s_per_gpu" and f.predicted and f.searched_predicted]
    ours, theirs, seen = np.array([(f.searched_predicted, f.predicted, f.measured) for f in known], dtype=np.float64).T
    against_plan, against_measured = ours >= theirs * (1.0 - ROUNDING), ours >= seen
    above = ours > CLAIM_LIMIT * seen
    return Standing(
        rows=int(ours.size),
        against_plan=float(np.mean(against_plan)),
        against_measured=float(np.mean(against_measured)),
        nearly_measured=float(np.mean(ours >= 0.95 * seen)),
        above_limit=float(np.mean(above)),
        silent=sum(1 for high, f in zip(above, known, strict=True) if high and not f.searched_reason),
        model_low=int(np.sum(~against_measured & against_plan)),
        search_low=int(np.sum(~against_measured & ~against_plan)),
    )
