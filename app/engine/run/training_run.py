"""The run-level facade: a step result and its surroundings in, calendar hours with their split and band out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.engine.errors import EngineInputError
from app.engine.hardware import Cluster
from app.engine.outcome import Band, Infeasible, TrainingResult
from app.engine.run.campaign import calendar_hours, iterations_per_week
from app.engine.run.conditions import RunConditions
from app.engine.run.energy import Energy, energy
from app.engine.run.goodput import SECONDS_PER_HOUR, spare_nodes
from app.engine.run.scenario import CheckpointPlan, OneRun, Scenario, plan_checkpoint, run_once
from app.engine.run.storage import DataStall, data_stall, nodes_of
from app.engine.workload import TrainingWorkload

# A band's ends are 1.2816 standard deviations from its middle (10th and 90th percentile of the normal law).
NORMAL_P90 = 1.2816

# One job on two public stacks: Llama 3 70B LoRA 1,797 against 1,092 tokens/s, DeepSeek-V3 865 against 630 (measurements
# README, training trap 9): 1.65 and 1.37 times, their geometric mean. A run whose stack is not named may be on the
# slower one.
UNNAMED_STACKS = (None, "plain")
STACK_FACTOR = math.sqrt(1.65 * 1.37)

# Below this goodput a run is not a plan: it spends twenty hours to keep one.
LEAST_GOODPUT = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A training campaign on the calendar.

    Parameters
    ----------
    duration_hours : Band [h]
        Calendar time of the whole campaign.
    run_hours : Band [h]
        One full run on its part of the fleet.
    hours : mapping of str to float [h]
        Split of ``duration_hours.p50``: ``productive``, ``data_stall``, ``checkpoint``, ``failure_lost``, ``restart``,
        ``evaluation``, ``reruns``, ``idle`` (parts of the fleet that wait for the last run); adds up to it.
    goodput : float
        Productive share of one run's time, the save of the finished model left out.
    accelerator_utilization : float
        Share of the same time the accelerators compute, lost work and evaluation included.
    tokens_per_s : float [token/s]
        Of one run over its calendar time.
    interruptions : float
        Expected in one full run.
    mean_time_to_interruption_hours : float [h]
    checkpoint_interval_s, checkpoint_block_s, checkpoint_write_s, checkpoint_read_s : float [s]
    checkpoint_bytes : float [byte]
    required_storage_write_bytes_per_s : float [byte/s]
        At which a checkpoint is written before the next begins.
    data : DataStall
    spare_nodes : int
        Recommended beside the fleet.
    iterations_per_week : float [1/week]
    energy : Energy or None
        Of the whole campaign.
    assumptions : mapping of str to value
    """

    duration_hours: Band
    run_hours: Band
    hours: Mapping[str, float]
    goodput: float
    accelerator_utilization: float
    tokens_per_s: float
    interruptions: float
    mean_time_to_interruption_hours: float
    checkpoint_interval_s: float
    checkpoint_block_s: float
    checkpoint_write_s: float
    checkpoint_read_s: float
    checkpoint_bytes: float
    required_storage_write_bytes_per_s: float
    data: DataStall
    spare_nodes: int
    iterations_per_week: float
    energy: Energy | None
    assumptions: Mapping[str, float | int | str]


def run_training(
    result: TrainingResult, workload: TrainingWorkload, cluster: Cluster, conditions: RunConditions
) -> RunOutcome | Infeasible:
    """Turn a training step into a campaign on the calendar.

    Parameters
    ----------
    result : TrainingResult
        Of one run on ``cluster``.
    workload : TrainingWorkload
    cluster : Cluster
        The part of the fleet one run has; the fleet is ``concurrent_runs`` of them.
    conditions : RunConditions

    Returns
    -------
    RunOutcome or Infeasible
        Infeasible with rule ``failures`` when interruptions leave less than a twentieth of the time productive,
        ``data_stall`` when no data arrives at all, ``checkpoint_interval`` when a pinned interval is shorter than an
        asynchronous write.

    Notes
    -----
    The band joins independent spreads in the logarithm of the duration: the step's own, the failure rate, the restart
    time, and the Poisson spread of the number of failures; where no software stack is named, its upper end also allows
    for one that is not tuned. Judged on Llama 3 405B (419 interruptions in
    54 days on 16,384 accelerators, goodput above 90 %), HLAT with automatic restarts (98.8 % on 4,096) and ByteRobust
    (97 % on 9,600).

    References
    ----------
    1. Young 1974; Daly 2006 (checkpoint interval, expected time).
    2. Grattafiori et al. 2024, section 3.3.4; the facts in reliability_facts.json.
    """
    if not 0.0 < workload.tokens < float("inf"):
        raise EngineInputError("tokens", f"must be positive and finite, got {workload.tokens}")
    checkpoint = plan_checkpoint(workload, cluster, conditions)
    rate = result.tokens_per_s
    refusal = _refusal(rate.p50, cluster, conditions, checkpoint)
    if refusal is not None:
        return refusal
    middle = run_once(Scenario(tokens_per_s=rate.p50), workload, cluster, conditions, checkpoint)
    if middle.parts.share < LEAST_GOODPUT:
        return _too_many_failures(middle, cluster)
    band = _run_band(result, middle, workload, cluster, conditions, checkpoint)
    campaign = conditions.campaign
    scale = calendar_hours(1.0, campaign)
    hours = _split(middle, scale, conditions)
    parts = middle.parts
    # a run that ends before its first checkpoint is due saves once; its storage has at least the time of one write
    pinned = conditions.checkpointing.interval_s
    ends_first = pinned is None or pinned > parts.interval_s
    interval_s = max(parts.interval_s, checkpoint.write_s) if ends_first else parts.interval_s
    running_s = parts.wall_s - parts.final_save_s
    busy_s = middle.productive_s + middle.evaluation_s + parts.lost_s
    return RunOutcome(
        duration_hours=Band(p10=band.p10 * scale, p50=band.p50 * scale, p90=band.p90 * scale),
        run_hours=band,
        hours=hours,
        goodput=middle.productive_s / running_s,
        accelerator_utilization=(busy_s - parts.lost_s) / running_s + parts.lost_s / parts.wall_s,
        tokens_per_s=workload.tokens / parts.wall_s,
        interruptions=parts.interruptions,
        mean_time_to_interruption_hours=middle.mean_time_s / SECONDS_PER_HOUR,
        checkpoint_interval_s=interval_s,
        checkpoint_block_s=middle.block_s,
        checkpoint_write_s=checkpoint.write_s,
        checkpoint_read_s=checkpoint.read_s,
        checkpoint_bytes=checkpoint.bytes,
        required_storage_write_bytes_per_s=checkpoint.bytes / interval_s,
        data=middle.stall,
        spare_nodes=spare_nodes(
            nodes_of(cluster) * campaign.concurrent_runs,
            cluster.accelerators * campaign.concurrent_runs,
            conditions.reliability.interruptions_per_accelerator_day[1],
            conditions.reliability.repair_days,
        ),
        iterations_per_week=iterations_per_week(band.p50, campaign),
        energy=_energy(busy_s / parts.wall_s, scale * band.p50, hours["idle"], cluster, conditions),
        assumptions={**_assumptions(conditions, checkpoint), "software_stack": workload.software.stack or "not named"},
    )


def _run_band(
    result: TrainingResult,
    middle: OneRun,
    workload: TrainingWorkload,
    cluster: Cluster,
    conditions: RunConditions,
    checkpoint: CheckpointPlan,
) -> Band:
    """10th, 50th and 90th percentile of one run's hours."""
    rate = result.tokens_per_s
    base = Scenario(tokens_per_s=rate.p50)
    wall = middle.parts.wall_s

    def spread(scenario: Scenario) -> float:
        return math.log(run_once(scenario, workload, cluster, conditions, checkpoint).parts.wall_s / wall)

    failures = middle.parts.interruptions
    cost = (middle.parts.restart_s + middle.parts.lost_s) / wall
    count = NORMAL_P90 * cost / math.sqrt(failures) if failures > 0.0 else 0.0
    shorter = [spread(replace(base, tokens_per_s=rate.p90)), spread(replace(base, failures=0))]
    shorter += [spread(replace(base, restart=0)), min(count, cost)]
    longer = [spread(replace(base, tokens_per_s=rate.p10)), spread(replace(base, failures=2))]
    longer += [spread(replace(base, restart=2)), count]
    # a rate without a spread is the caller's own measurement, on whatever stack that was
    if workload.software.stack in UNNAMED_STACKS and rate.p10 < rate.p90:
        longer.append(math.log(STACK_FACTOR))
    hours = wall / SECONDS_PER_HOUR
    return Band(
        p10=hours * math.exp(-math.hypot(*shorter)),
        p50=hours,
        p90=hours * math.exp(math.hypot(*longer)),
    )


def _split(middle: OneRun, scale: float, conditions: RunConditions) -> dict[str, float]:
    """Hours of the campaign by what they went to; ``scale`` is its length in runs."""
    campaign, parts = conditions.campaign, middle.parts
    planned = campaign.equivalents / campaign.concurrent_runs / SECONDS_PER_HOUR
    wall = parts.wall_s / SECONDS_PER_HOUR
    hours = {
        "productive": middle.productive_s * planned,
        "data_stall": middle.stalled_s * planned,
        "checkpoint": parts.checkpoint_s * planned,
        "failure_lost": parts.lost_s * planned,
        "restart": parts.restart_s * planned,
        "evaluation": middle.evaluation_s * planned,
        "reruns": campaign.reruns_expected / campaign.concurrent_runs * wall,
    }
    hours["idle"] = max(0.0, scale * wall - sum(hours.values()))
    return hours


def _energy(
    busy_share: float, duration_hours: float, idle_hours: float, cluster: Cluster, conditions: RunConditions
) -> Energy | None:
    if conditions.power is None:
        return None
    fleet = cluster.accelerators * conditions.campaign.concurrent_runs
    busy = (duration_hours - idle_hours) * busy_share
    return energy(cluster.accelerator, fleet * busy, fleet * (duration_hours - busy), conditions.power)


def _refusal(
    tokens_per_s: float, cluster: Cluster, conditions: RunConditions, checkpoint: CheckpointPlan
) -> Infeasible | None:
    stall = data_stall(tokens_per_s, cluster, conditions)
    if stall.share >= 1.0:
        return Infeasible(
            rule="data_stall",
            message=f"no data reaches the accelerators: {stall.limited_by} delivers nothing",
            numbers={"required_cores": stall.required_cores},
            nearest={},
        )
    pinned = conditions.checkpointing.interval_s
    if pinned is not None and conditions.checkpointing.asynchronous and pinned < checkpoint.write_s:
        return Infeasible(
            rule="checkpoint_interval",
            message=(
                f"an asynchronous write of {checkpoint.bytes:.3g} bytes takes {checkpoint.write_s:.0f} s, "
                f"so the next cannot begin after {pinned:.0f} s"
            ),
            numbers={"checkpoint_write_s": checkpoint.write_s, "interval_s": pinned},
            nearest={"interval_s": checkpoint.write_s},
        )
    return None


def _too_many_failures(run: OneRun, cluster: Cluster) -> Infeasible:
    hours = run.mean_time_s / SECONDS_PER_HOUR
    return Infeasible(
        rule="failures",
        message=(
            f"{cluster.accelerators} accelerators are interrupted every {hours:.2f} h on average; saving, restarting "
            f"and repeating work leave {run.parts.share:.1%} of the time for training"
        ),
        numbers={
            "mean_time_to_interruption_hours": hours,
            "goodput": run.parts.share,
            "restart_s": run.parts.restart_s / run.parts.interruptions,
            "checkpoint_interval_s": run.parts.interval_s,
        },
        nearest={},
    )


def _assumptions(conditions: RunConditions, checkpoint: CheckpointPlan) -> dict[str, float | int | str]:
    reliability, storage = conditions.reliability, conditions.storage
    return {
        "interruptions_per_1000_accelerator_days": 1000.0 * reliability.interruptions_per_accelerator_day[1],
        "restart_minutes": reliability.restart_s[1] / 60.0,
        "checkpoint_bytes_per_parameter": conditions.checkpointing.bytes_per_parameter,
        "checkpointing": "asynchronous" if conditions.checkpointing.asynchronous else "synchronous",
        "checkpoint_write_s": checkpoint.write_s,
        "storage": storage.id if storage is not None else "adequate",
        "storage_rates": "stated" if storage is not None and storage.read_bytes_per_s is not None else "adequate",
        "bytes_per_token": conditions.data.bytes_per_token,
        "host_cores_per_accelerator": conditions.data.host_cores_per_accelerator,
    }
