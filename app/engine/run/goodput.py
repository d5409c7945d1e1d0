"""Failures: what checkpoints, interruptions and restarts add to a run's productive time."""

import math
from dataclasses import dataclass

SECONDS_PER_DAY = 86400.0
SECONDS_PER_HOUR = 3600.0

# Training stops this long for one asynchronous checkpoint, best case: 0.78 s (70B on 1,856 H200); an unpinned copy
# 6.3 s (reliability_facts.json: dcp-async-70b, dcp-async-7b).
ASYNC_BLOCK_S = 0.78
ASYNC_BLOCK_HIGH_S = 6.3

# Share of interruptions that take a node away: all but software, network and maintenance of Llama 3's 419
# (reliability_facts.json: llama3-causes: 419 - 54 - 35 - 32 - 7 - 2).
HARDWARE_SHARE = 289.0 / 419.0

# Nodes in repair follow a Poisson law; spares for its 95th percentile by the normal approximation.
SPARE_QUANTILE = 1.645


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Wall time of a run and what it went to.

    Parameters
    ----------
    wall_s : float [s]
    work_s, checkpoint_s, restart_s, lost_s : float [s]
        Add up to the wall time; ``lost_s`` is work done again after an interruption.
    interruptions : float
        Expected number.
    mean_time_to_interruption_s : float [s]
    interval_s : float [s]
        Work between checkpoints.
    final_save_s : float [s]
        The save of the finished model, which every run needs, however short, with its share of setbacks.
    """

    wall_s: float
    work_s: float
    checkpoint_s: float
    restart_s: float
    lost_s: float
    interruptions: float
    mean_time_to_interruption_s: float
    interval_s: float
    final_save_s: float = 0.0

    @property
    def share(self) -> float:
        """Goodput: work over the wall time until the finished model is saved; near 1 for a run too short to fail."""
        running = self.wall_s - self.final_save_s
        return self.work_s / running if running > 0.0 else 1.0


def mean_time_to_interruption_s(
    accelerators: int,
    nodes: int,
    interruptions_per_accelerator_day: float,
    spot_interruptions_per_node_hour: float = 0.0,
) -> float:
    """Mean time between interruptions of a job that stops when any part stops.

    Parameters
    ----------
    accelerators, nodes : int
    interruptions_per_accelerator_day : float [1/day]
    spot_interruptions_per_node_hour : float [1/h]

    Returns
    -------
    float [s]
        Infinite when nothing ever fails.

    References
    ----------
    1. Grattafiori et al. 2024, section 3.3.4 (419 interruptions in 54 days on 16,384 H100: one in 3.09 h).
    """
    rate = accelerators * interruptions_per_accelerator_day / SECONDS_PER_DAY
    rate += nodes * spot_interruptions_per_node_hour / SECONDS_PER_HOUR
    return 1.0 / rate if rate > 0.0 else math.inf


def best_interval_s(block_s: float, mean_time_s: float, shortest_s: float = 0.0) -> float:
    """Work between checkpoints that loses least: Daly's higher-order optimum.

    Parameters
    ----------
    block_s : float [s]
        Training stops this long per checkpoint.
    mean_time_s : float [s]
        Between interruptions.
    shortest_s : float [s]
        A background write must end before the next begins.

    Returns
    -------
    float [s]
        Infinite when nothing fails and saving costs time.

    References
    ----------
    1. Young, "A First Order Approximation to the Optimum Checkpoint Interval", CACM 1974.
    2. Daly, "A Higher Order Estimate of the Optimum Checkpoint Interval for Restart Dumps", FGCS 2006, eq. 37.
    """
    if math.isinf(mean_time_s):
        return math.inf
    if block_s >= 2.0 * mean_time_s:
        best = mean_time_s
    else:
        half = block_s / (2.0 * mean_time_s)
        best = math.sqrt(2.0 * block_s * mean_time_s) * (1.0 + math.sqrt(half) / 3.0 + half / 9.0) - block_s
    return max(best, shortest_s, 1.0)


def goodput(
    work_s: float,
    *,
    interval_s: float,
    block_s: float,
    restart_s: float,
    mean_time_s: float,
    write_lag_s: float = 0.0,
) -> Goodput:
    """Expected wall time of a run under exponential failures.

    Parameters
    ----------
    work_s : float [s]
        Time the run needs when nothing fails and nothing is saved.
    interval_s : float [s]
        Work between checkpoints; at most all of it.
    block_s : float [s]
        Stop per checkpoint.
    restart_s : float [s]
        From an interruption to work again, checkpoint read included; may itself be interrupted.
    mean_time_s : float [s]
        Between interruptions.
    write_lag_s : float [s]
        Until an asynchronous checkpoint is complete; an interruption loses that much more work.

    Returns
    -------
    Goodput

    Notes
    -----
    Daly's complete model: ``M exp(R/M) (exp((t+d)/M) - 1) W/t``. Restart time per interruption is the part of ``R``
    before the next one, ``M (1 - exp(-R/M))``; the rest is work lost. Grows exponentially once ``t + d + R`` nears
    ``M``: such a job is better split or given faster restarts. A run shorter than the interval is one segment: it
    saves once, at its end.

    References
    ----------
    1. Daly 2006, eq. 20.
    """
    interval = min(interval_s, work_s) if work_s > 0.0 else 1.0
    checkpoints = work_s / interval
    checkpoint = checkpoints * block_s
    if math.isinf(mean_time_s) or work_s == 0.0:
        return Goodput(
            wall_s=work_s + checkpoint,
            work_s=work_s,
            checkpoint_s=checkpoint,
            restart_s=0.0,
            lost_s=0.0,
            interruptions=0.0,
            mean_time_to_interruption_s=mean_time_s,
            interval_s=interval,
            final_save_s=block_s if checkpoints > 0.0 else 0.0,
        )
    setback = restart_s + write_lag_s
    growth = math.expm1((interval + block_s) / mean_time_s) * math.exp(setback / mean_time_s)
    wall = mean_time_s * growth * checkpoints
    restart = wall * -math.expm1(-restart_s / mean_time_s)
    return Goodput(
        wall_s=wall,
        work_s=work_s,
        checkpoint_s=checkpoint,
        restart_s=restart,
        lost_s=max(0.0, wall - work_s - checkpoint - restart),
        interruptions=wall / mean_time_s,
        mean_time_to_interruption_s=mean_time_s,
        interval_s=interval,
        final_save_s=block_s * wall / (work_s + checkpoint),
    )


def spare_nodes(nodes: int, accelerators: int, interruptions_per_accelerator_day: float, repair_days: float) -> int:
    """Spare nodes that cover nodes in repair 95 times in 100.

    Parameters
    ----------
    nodes, accelerators : int
    interruptions_per_accelerator_day : float [1/day]
        All causes; the hardware share of them takes a node away.
    repair_days : float [day]

    Returns
    -------
    int

    References
    ----------
    1. reliability_facts.json: llama3-causes; for comparison bloom-spares (4 of 52), opt-spares (12 of 128).
    """
    if nodes < 2:
        return 0
    absent = accelerators * interruptions_per_accelerator_day * HARDWARE_SHARE * repair_days
    return math.ceil(absent + SPARE_QUANTILE * math.sqrt(absent))
