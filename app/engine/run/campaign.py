"""Campaigns: many full and partial runs on a fixed fleet."""

import heapq
from dataclasses import dataclass

from app.engine.errors import EngineInputError

HOURS_PER_WEEK = 168.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What is trained in all.

    Parameters
    ----------
    full_runs, partial_runs : int
    fraction : float
        Length of a partial run over a full one.
    concurrent_runs : int
        Runs at the same time, each on its own equal part of the fleet.
    reruns_expected : float
        Full runs repeated because of a bad result (not of a failure), in full-run equivalents.
    evaluation_fraction : float
        Time for evaluation over productive time.
    """

    full_runs: int = 1
    partial_runs: int = 0
    fraction: float = 0.1
    concurrent_runs: int = 1
    reruns_expected: float = 0.0
    evaluation_fraction: float = 0.0

    def __post_init__(self) -> None:
        if self.full_runs < 0 or self.partial_runs < 0 or self.full_runs + self.partial_runs < 1:
            raise EngineInputError("campaign", "needs at least one full or partial run")
        if not 0.0 < self.fraction <= 1.0:
            raise EngineInputError("campaign.fraction", f"must be in (0, 1], got {self.fraction}")
        if self.concurrent_runs < 1:
            raise EngineInputError("campaign.concurrent_runs", "counts from 1", {"concurrent_runs": 1})
        if self.reruns_expected < 0.0 or self.evaluation_fraction < 0.0:
            raise EngineInputError("campaign", "reruns_expected and evaluation_fraction must be zero or more")

    @property
    def equivalents(self) -> float:
        """Planned work in full-run equivalents, reruns left out."""
        return self.full_runs + self.partial_runs * self.fraction


def accelerators_per_run(fleet: int, campaign: Campaign) -> int:
    """Accelerators of each of the concurrent runs on a fleet; the remainder idles.

    Parameters
    ----------
    fleet : int
    campaign : Campaign

    Returns
    -------
    int

    Raises
    ------
    EngineInputError
        When there are more runs than accelerators.

    References
    ----------
    1. None needed: bookkeeping.
    """
    share = fleet // campaign.concurrent_runs
    if share < 1:
        raise EngineInputError(
            "campaign.concurrent_runs",
            f"{campaign.concurrent_runs} concurrent runs do not fit on {fleet} accelerators",
            {"concurrent_runs": fleet},
        )
    return share


def calendar_hours(run_hours: float, campaign: Campaign) -> float:
    """Calendar time of the planned runs, longest first on the free part of the fleet; reruns follow.

    Parameters
    ----------
    run_hours : float [h]
        One full run on its part of the fleet.
    campaign : Campaign

    Returns
    -------
    float [h]

    Notes
    -----
    Reruns are expected work, not whole jobs: they are spread over the concurrent parts.

    References
    ----------
    1. Graham, "Bounds on Multiprocessing Timing Anomalies", SIAM 1969 (longest processing time first).
    """
    slots = campaign.concurrent_runs
    lengths = [run_hours] * campaign.full_runs + [run_hours * campaign.fraction] * campaign.partial_runs
    free = [0.0] * min(slots, len(lengths))
    for length in lengths:
        heapq.heapreplace(free, free[0] + length)
    return max(free) + campaign.reruns_expected * run_hours / slots


def iterations_per_week(run_hours: float, campaign: Campaign) -> float:
    """Full runs the fleet completes in a week, back to back.

    Parameters
    ----------
    run_hours : float [h]
    campaign : Campaign

    Returns
    -------
    float [1/week]

    References
    ----------
    1. None needed: bookkeeping.
    """
    return HOURS_PER_WEEK / run_hours * campaign.concurrent_runs if run_hours > 0.0 else float("inf")
