"""Fleets of replicas: how many by the hour, what of it to commit to, and the questions turned round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.engine.hardware import Accelerator, Fabric
from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.search import search_serving
from app.engine.workload import ServingPlanRequest, ServingWorkload

# hours of a mean month; 365 days over twelve months
HOURS_PER_MONTH = 730.0
# relative width at which the search for the most users stops: below the engine's own uncertainty
USERS_TOLERANCE = 0.01
# doublings tried from one user upwards
MOST_DOUBLINGS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyFleet:
    """Replicas needed in each hour of a daily (24) or weekly (168) profile.

    Parameters
    ----------
    replicas : tuple of int
        By hour, spares included.
    requests_per_s : tuple of float [request/s]
        Arrival rate by hour.
    """

    replicas: tuple[int, ...]
    requests_per_s: tuple[float, ...]

    @property
    def peak(self) -> int:
        """Replicas of the busiest hour."""
        return max(self.replicas)

    @property
    def base(self) -> int:
        """Replicas of the quietest hour."""
        return min(self.replicas)

    @property
    def mean(self) -> float:
        """Mean replicas over the profile."""
        return sum(self.replicas) / len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitmentLevel:
    """One way to split the fleet: replicas committed all month, and replica-hours bought on demand above them.

    Parameters
    ----------
    committed_replicas : int
    committed_replica_hours_per_month, on_demand_replica_hours_per_month : float [replica-hour/month]
    idle_share : float [1]
        Share of the committed hours in which the replica is not needed.
    """

    committed_replicas: int
    committed_replica_hours_per_month: float
    on_demand_replica_hours_per_month: float
    idle_share: float


def hourly_fleet(
    mean_requests_per_s: float, hourly_weights: Sequence[float], capacity_requests_per_s: float, *,
    minimum_replicas: int = 1, spare_replicas: int = 0,
) -> HourlyFleet:  # fmt: skip
    """Replicas that hold the objectives in every hour of a profile.

    Parameters
    ----------
    mean_requests_per_s : float [request/s]
        Mean over the profile.
    hourly_weights : sequence of float
        24 or 168 relative weights, not all zero.
    capacity_requests_per_s : float [request/s]
        Highest rate of one replica under the objectives.
    minimum_replicas, spare_replicas : int
        Never fewer than the minimum; spares come on top.

    Returns
    -------
    HourlyFleet

    References
    ----------
    1. Barroso et al., "The Datacenter as a Computer", 2018, section 5 (diurnal load).
    """
    if len(hourly_weights) not in (24, 168):
        raise ValueError(f"an hourly profile has 24 or 168 weights, got {len(hourly_weights)}")
    total = sum(hourly_weights)
    if total <= 0.0 or min(hourly_weights) < 0.0 or not math.isfinite(total):
        raise ValueError("hourly weights are finite, not negative and not all zero")
    if capacity_requests_per_s <= 0.0:
        raise ValueError("a replica needs a positive capacity to be counted in a fleet")
    mean = total / len(hourly_weights)
    rates = tuple(mean_requests_per_s * weight / mean for weight in hourly_weights)
    replicas = tuple(
        max(math.ceil(rate / capacity_requests_per_s - 1e-9), minimum_replicas) + spare_replicas for rate in rates
    )
    return HourlyFleet(replicas=replicas, requests_per_s=rates)


def commitment_levels(fleet: HourlyFleet) -> tuple[CommitmentLevel, ...]:
    """Every split between a committed base and an on-demand peak, from nothing committed to the whole peak.

    Parameters
    ----------
    fleet : HourlyFleet

    Returns
    -------
    tuple of CommitmentLevel
        One per number of committed replicas; pricing picks the cheapest.

    References
    ----------
    1. The newsvendor problem: commit while the busy share exceeds the price ratio (Arrow, Harris and Marschak 1951).
    """
    hours = len(fleet.replicas)
    scale = HOURS_PER_MONTH / hours
    levels = []
    for committed in range(fleet.peak + 1):
        above = sum(max(n - committed, 0) for n in fleet.replicas) * scale
        used = sum(min(n, committed) for n in fleet.replicas) * scale
        paid = committed * HOURS_PER_MONTH
        levels.append(
            CommitmentLevel(
                committed_replicas=committed,
                committed_replica_hours_per_month=paid,
                on_demand_replica_hours_per_month=above,
                idle_share=1.0 - used / paid if paid else 0.0,
            )
        )
    return tuple(levels)


def most_concurrency(
    workload: ServingWorkload, accelerator: Accelerator, fabric: Fabric | None, request: ServingPlanRequest,
    calibration: ServingCalibration, accelerators: int,
) -> ServingResult | Infeasible:  # fmt: skip
    """Most requests in flight that a fixed fleet serves with every objective held and nothing queued.

    Parameters
    ----------
    workload : ServingWorkload
        Its load fields are ignored.
    accelerator : Accelerator
    fabric : Fabric or None
    request : ServingPlanRequest
    calibration : ServingCalibration
    accelerators : int

    Returns
    -------
    ServingResult or Infeasible
        At the highest load found; ``concurrency_per_replica * replicas`` is the answer.

    References
    ----------
    1. Zhong et al., "DistServe", 2024 (goodput: highest load under the objectives).
    """

    def at(users: float) -> ServingResult | Infeasible:
        asked = replace(workload, concurrency=users, requests_per_s=None, offline=False)
        return search_serving(asked, accelerator, fabric, request, calibration, accelerators)

    def holds(outcome: ServingResult | Infeasible) -> bool:
        return (
            isinstance(outcome, ServingResult)
            and not outcome.saturated
            and "objectives_met" not in (outcome.assumptions)
        )

    best = at(1.0)
    if not holds(best):
        return best
    low, high = 1.0, 2.0
    for _ in range(MOST_DOUBLINGS):
        outcome = at(high)
        if not holds(outcome):
            break
        low, high, best = high, high * 2.0, outcome
    while high - low > max(USERS_TOLERANCE * low, 1.0):
        middle = float(math.floor((low + high) / 2.0))
        outcome = at(middle)
        if holds(outcome):
            low, best = middle, outcome
        else:
            high = middle
    return best
