"""From a step's speed to a campaign's hours, bytes and energy, in the words of a run."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.catalog.snapshot import Snapshot, StorageSystem
from app.engine.accounting import count_parameters
from app.engine.outcome import Band, Infeasible, TrainingResult
from app.engine.run import RunOutcome, breakdown_with_stall, run_training, tokens_within
from app.engine.workload import TrainingWorkload
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.conditions import campaign_of, conditions_of
from app.estimates.hardware import Hardware
from app.estimates.job_schemas import TrainingJob
from app.estimates.schemas import Item

BF16_BYTES = 2.0
# The newest checkpoint and the one before it, in case the newest is damaged.
CHECKPOINTS_KEPT = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLevel:
    """A campaign on one cluster.

    Parameters
    ----------
    outcome : RunOutcome
        ``duration_hours`` is the calendar time of the whole campaign, ``run_hours`` that of one full run.
    split : mapping of str to float [h]
        Hours of the campaign by purpose; they add up to the median duration.
    tokens, tokens_per_run : float [token]
    """

    outcome: RunOutcome
    split: Mapping[str, float]
    tokens: float
    tokens_per_run: float
    experiments: float
    storage_bytes: float
    egress_bytes: float
    assumptions: tuple[Assumption, ...]

    def energy_json(self) -> dict[str, Any] | None:
        """Energy of the campaign, where a power figure is known."""
        return None if self.outcome.energy is None else asdict(self.outcome.energy)

    def breakdown(self, result: TrainingResult) -> dict[str, float]:
        """Shares of the step, the wait for data included."""
        return breakdown_with_stall(result.time_breakdown, self.outcome.data)


def run_level(
    snapshot: Snapshot,
    item: Item,
    workload: TrainingWorkload,
    result: TrainingResult,
    hardware: Hardware,
    each: int,
    concurrent_runs: int,
    storage: StorageSystem | None,
    *,
    spot: bool,
) -> RunLevel | Infeasible:
    """The campaign of a job: ``concurrent_runs`` at a time, each on ``each`` accelerators."""
    job = item.job
    assert isinstance(job, TrainingJob)
    cluster = hardware.cluster(each)
    conditions = replace(
        conditions_of(snapshot, item, hardware.accelerator, storage, spot=spot),
        campaign=campaign_of(job.campaign, concurrent_runs),
    )
    tokens = workload.tokens
    if item.constraints.solve_for == "tokens":
        solved = tokens_within(item.constraints.deadline_hours or 0.0, result, workload, cluster, conditions)
        if isinstance(solved, Infeasible):
            return solved
        tokens = solved
    outcome = run_training(result, replace(workload, tokens=tokens), cluster, conditions)
    if isinstance(outcome, Infeasible):
        return outcome
    runs = job.campaign
    equivalents = runs.full_runs + runs.partial_runs * runs.fraction + runs.reruns_expected
    return RunLevel(
        outcome=outcome,
        split=_split(outcome, job),
        tokens=tokens * equivalents,
        tokens_per_run=tokens,
        experiments=float(runs.full_runs + runs.partial_runs),
        storage_bytes=tokens * outcome.data.stored_bytes_per_token + CHECKPOINTS_KEPT * outcome.checkpoint_bytes,
        egress_bytes=_result_bytes(workload, outcome),
        assumptions=tuple(_assumptions(outcome, spot=spot)),
    )


def _split(outcome: RunOutcome, job: TrainingJob) -> dict[str, float]:
    """The engine's hours under the headings of a bill; training is one full run, the rest of the work the campaign."""
    hours = outcome.hours
    work = hours["productive"] + hours["data_stall"]
    equivalents = job.campaign.full_runs + job.campaign.partial_runs * job.campaign.fraction
    first = min(1.0, 1.0 / equivalents)
    split = {
        "training": work * first,
        "checkpoints": hours["checkpoint"],
        "failures": hours["failure_lost"] + hours["restart"],
        "evaluation": hours["evaluation"],
        "campaign": work * (1.0 - first),
        "reruns": hours["reruns"],
        "idle": hours["idle"],
    }
    return {name: value for name, value in split.items() if value > 0.0}


def _result_bytes(workload: TrainingWorkload, outcome: RunOutcome) -> float:
    """What the customer takes home: the weights in BF16, or the adapter."""
    if workload.adapter is not None:
        return outcome.checkpoint_bytes
    return BF16_BYTES * float(count_parameters(workload.transformer).total)


def _assumptions(outcome: RunOutcome, *, spot: bool) -> list[Assumption]:
    rows = [
        Assumption(id=name, value=value, unit="engine", source="reliability and storage facts", moves=HOURS)
        for name, value in sorted(outcome.assumptions.items())
    ]
    if spot:
        rows.append(
            Assumption(
                id="spot_interruptions_per_node_month",
                value=0.2,
                unit="1/month",
                source="unverified: AWS Spot Instance Advisor, highest bucket, cited from memory; a floor, since "
                "providers publish no rate for accelerators",
                moves=HOURS,
            )
        )
    return rows


def scaled(result: TrainingResult, job: TrainingJob, accelerators: int) -> TrainingResult:
    """The result with the caller's own measured throughput in place of the engine's, without an interval."""
    override = job.efficiency_override
    if override is None:
        return result
    if override.tokens_per_second is not None:
        rate = override.tokens_per_second
    elif override.tokens_per_second_per_accelerator is not None:
        rate = override.tokens_per_second_per_accelerator * accelerators
    else:
        rate = result.tokens_per_s.p50 * (override.model_flops_utilization or 0.0) / result.model_flops_utilization
    factor = rate / result.tokens_per_s.p50
    step = result.step_s.p50 / factor
    return replace(
        result,
        tokens_per_s=Band(p10=rate, p50=rate, p90=rate),
        step_s=Band(p10=step, p50=step, p90=step),
        model_flops_utilization=result.model_flops_utilization * factor,
    )
