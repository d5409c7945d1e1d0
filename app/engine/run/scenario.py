"""One run in one scenario of what is uncertain: step rate, failure rate, restart time."""

import math
from dataclasses import dataclass

from app.engine.accounting import adapter_parameters, count_parameters
from app.engine.hardware import Cluster
from app.engine.run.conditions import RunConditions
from app.engine.run.goodput import (
    ASYNC_BLOCK_HIGH_S,
    ASYNC_BLOCK_S,
    Goodput,
    best_interval_s,
    goodput,
    mean_time_to_interruption_s,
)
from app.engine.run.storage import DataStall, checkpoint_read_s, checkpoint_write_s, data_stall, nodes_of
from app.engine.workload import ADAPTER_METHODS, Adapter, TrainingWorkload

# exp() of more is beyond any run; keeps the arithmetic finite.
LARGEST_EXPONENT = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One scenario of a run: 0 low, 1 typical, 2 high of what is uncertain."""

    tokens_per_s: float
    failures: int = 1
    restart: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """One full run in one scenario."""

    parts: Goodput
    stall: DataStall
    productive_s: float
    stalled_s: float
    evaluation_s: float
    block_s: float
    mean_time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlan:
    """Size [byte] and times [s] of one checkpoint."""

    bytes: float
    write_s: float
    read_s: float


def plan_checkpoint(workload: TrainingWorkload, cluster: Cluster, conditions: RunConditions) -> CheckpointPlan:
    """Size of a checkpoint and its times on the storage at hand.

    Parameters
    ----------
    workload : TrainingWorkload
    cluster : Cluster
    conditions : RunConditions

    Returns
    -------
    CheckpointPlan

    References
    ----------
    1. reliability_facts.json: nemo-ckpt-sizes (13 bytes per trained parameter).
    """
    trained = conditions.trained_parameters
    if trained is None and workload.method in ADAPTER_METHODS:
        adapter = workload.adapter or Adapter()
        trained = float(adapter_parameters(workload.transformer, adapter.rank, adapter.targets))
    if trained is None:
        trained = float(count_parameters(workload.transformer).total)
    size = trained * conditions.checkpointing.bytes_per_parameter
    return CheckpointPlan(
        bytes=size,
        write_s=checkpoint_write_s(size, cluster, conditions),
        read_s=checkpoint_read_s(size, cluster, conditions),
    )


def run_once(
    setting: Scenario,
    workload: TrainingWorkload,
    cluster: Cluster,
    conditions: RunConditions,
    checkpoint: CheckpointPlan,
) -> OneRun:
    """Expected course of one full run in one scenario.

    Parameters
    ----------
    setting : Scenario
    workload : TrainingWorkload
    cluster : Cluster
    conditions : RunConditions
    checkpoint : CheckpointPlan

    Returns
    -------
    OneRun

    References
    ----------
    1. Daly 2006; the facts named in ``conditions``.
    """
    reliability, saving = conditions.reliability, conditions.checkpointing
    stall = data_stall(setting.tokens_per_s, cluster, conditions)
    productive = workload.tokens / setting.tokens_per_s
    stalled = productive * stall.share / (1.0 - stall.share)
    evaluation = productive * conditions.campaign.evaluation_fraction
    failures = reliability.interruptions_per_accelerator_day[setting.failures]
    spot = reliability.spot_interruptions_per_node_hour
    nodes = nodes_of(cluster)
    mean_time = mean_time_to_interruption_s(cluster.accelerators, nodes, failures, spot)
    of_spot = 0.0
    if spot > 0.0:
        of_spot = mean_time / mean_time_to_interruption_s(cluster.accelerators, nodes, 0.0, spot)
    restart = reliability.restart_s[setting.restart] + checkpoint.read_s + of_spot * reliability.spot_replacement_s
    block = checkpoint.write_s
    if saving.asynchronous:
        shard = checkpoint.bytes / cluster.accelerators / cluster.accelerator.pcie_bytes_per_s
        block = min(block, (ASYNC_BLOCK_HIGH_S if setting.restart > 1 else ASYNC_BLOCK_S) + shard)
    shortest = checkpoint.write_s if saving.asynchronous else 0.0
    interval = saving.interval_s or best_interval_s(block, mean_time, shortest)
    # a cluster so large that it never gets going is reported as such, not as an overflow
    lag = checkpoint.write_s if saving.asynchronous else 0.0
    floor = (interval if math.isfinite(interval) else 0.0) + block + restart + lag
    parts = goodput(
        productive + stalled + evaluation,
        interval_s=interval,
        block_s=block,
        restart_s=restart,
        mean_time_s=max(mean_time, floor / LARGEST_EXPONENT),
        write_lag_s=lag,
    )
    return OneRun(
        parts=parts,
        stall=stall,
        productive_s=productive,
        stalled_s=stalled,
        evaluation_s=evaluation,
        block_s=block,
        mean_time_s=mean_time,
    )
