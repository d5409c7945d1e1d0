"""What can run: training of one item on every machine of its supply, as JSON that pricing can replay."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from app.catalog.snapshot import Snapshot, StorageSystem
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.training.nearest import RULES
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.conditions import concurrency_choices, storage_of
from app.estimates.errors import infeasible, least_bad
from app.estimates.hardware import Hardware
from app.estimates.job import TrainingSpec, training_spec
from app.estimates.job_schemas import TrainingJob
from app.estimates.physics import nearest, quantized, sweep, train
from app.estimates.run_json import band_json, checkpoint_json, data_json, fabric_json, performance_json
from app.estimates.run_level import RunLevel, run_level, scaled
from app.estimates.runs import Found, Runs
from app.estimates.schemas import Item
from app.estimates.sizing import (
    DEFAULT_HORIZON_HOURS,
    LARGEST_CLUSTER,
    PATIENCE,
    counts_to_try,
    state_bytes_at_least,
)
from app.estimates.supply import SPOT, Selection

# From the first guess a cluster is doubled at most this often to fit or to keep the deadline.
MOST_TRIES = 6
# A hundred thousand years: what fails more often than it gets on never ends, and no money could be written down for it.
LONGEST_HOURS = 1e9
# The ladder of sizes goes up to so many accelerators by objective: eight servers of eight, where cost alone counts, and
# the largest fleets that are rented by the hour where time does.
TOP_BY_COST, TOP_BY_TIME = 64, 1024


def training_runs(snapshot: Snapshot, item: Item, selection: Selection, at: str) -> Runs:
    """Every feasible run, and why the other machines cannot run it."""
    job = item.job
    assert isinstance(job, TrainingJob)
    spec = training_spec(snapshot, job, f"{at}/job", 1.0 if item.constraints.solve_for == "tokens" else None)
    divisor = pinned_divisor(job)
    pinned = _pinned_count(item, divisor, at)
    search = _Search(
        snapshot=snapshot, item=item, job=job, spec=spec, storage=storage_of(snapshot, item, at), pinned=pinned
    )
    runs: list[Found] = []
    refused: dict[str, Infeasible] = {}
    campaign = job.campaign
    work = spec.workload.tokens * (
        campaign.full_runs + campaign.partial_runs * campaign.fraction + campaign.reruns_expected
    )
    deadline, top = item.constraints.deadline_hours, _ladder_top(item)
    counts = {h.key: counts_to_try(spec.workload, h, work, deadline, pinned, divisor, top) for h in selection.hardware}
    search.look_ahead(selection.hardware, counts)
    for hardware in selection.hardware:
        found, refusal = search.on(hardware, counts[hardware.key], selection.markets[hardware.key])
        runs.extend(found)
        if refusal is not None and not found:
            refused[hardware.key] = refusal
    if not runs and refused:
        key = least_bad(refused)
        machine = next(h for h in selection.hardware if h.key == key)
        refused[key] = search.with_nearest(machine, counts[key][0], refused[key], at)
    if pinned is None and item.constraints.deadline_hours is None and item.constraints.solve_for is None:
        runs, slow = _without_slow(runs)
        refused.update(slow)
    return runs, refused


def _ladder_top(item: Item) -> int:
    """Accelerators the ladder of sizes reaches at least; more tokens in a given time are a matter of time too."""
    is_about_time = item.objective in ("time", "cost_time") or item.constraints.solve_for == "tokens"
    return TOP_BY_TIME if is_about_time else TOP_BY_COST


def _without_slow(runs: list[Found]) -> tuple[list[Found], dict[str, Infeasible]]:
    """Leave out sizes that take far longer than a month, unless nothing is faster; nobody asked for them."""
    longest = PATIENCE * DEFAULT_HORIZON_HOURS
    kept = [run for run in runs if _hours(run) <= longest]
    if not kept:
        return runs, {}
    fast = {run.light["hardware"] for run in kept}
    slow = {
        str(run.light["hardware"]): Infeasible(
            rule="duration",
            message=f"{run.light['accelerators']} x {run.light['accelerator']} take {_hours(run):.0f} h; without a "
            f"deadline, sizes beyond {longest:.0f} h are left out. State constraints.deadline_hours to see them",
            numbers={"duration_hours": _hours(run)},
            nearest={"deadline_hours": _hours(run)},
        )
        for run in runs
        if run.light["hardware"] not in fast
    }
    return kept, slow


class _Search:
    """One item's search over machines and cluster sizes."""

    def __init__(
        self, *, snapshot: Snapshot, item: Item, job: TrainingJob, spec: TrainingSpec,
        storage: StorageSystem | None, pinned: int | None,
    ) -> None:  # fmt: skip
        self.snapshot, self.item, self.job, self.spec = snapshot, item, job, spec
        self.storage, self.pinned = storage, pinned
        # a few named machines are searched in full, the whole catalog in one sweep
        self.in_full = item.supply.accelerators is not None or item.supply.offers is not None

    def look_ahead(self, machines: Sequence[Hardware], counts: Mapping[str, Sequence[int]]) -> None:
        """Ask the engine about the first sizes of all machines in one call; later questions find the answers."""
        if self.in_full:
            return
        asked = [
            (hardware, each)
            for hardware in machines
            for fleet in counts[hardware.key]
            if self._hopeless(hardware, fleet) is None
            for _, each in concurrency_choices(self.job.campaign, fleet)
        ]
        sweep(self.snapshot, self.spec.workload, asked, self.spec.plan)

    def _hopeless(self, hardware: Hardware, fleet: int) -> Infeasible | None:
        """What needs no engine to be refused: a network nobody states, or memory that cannot hold the bare state."""
        if hardware.largest_count is not None and fleet > hardware.largest_count:
            return _unknown_fabric(hardware, fleet)
        if self.in_full or self.job.plan.cpu_offload:
            return None
        least = state_bytes_at_least(self.spec.workload)
        missing = least - fleet * hardware.accelerator.memory_bytes
        return _too_small(hardware, fleet, least, missing) if missing > 0 else None

    def _plan(self, hardware: Hardware, accelerators: int) -> TrainingResult | Infeasible:
        if self.in_full:
            return train(self.snapshot, self.spec.workload, hardware, accelerators, self.spec.plan)
        return sweep(self.snapshot, self.spec.workload, [(hardware, accelerators)], self.spec.plan)[0]

    def with_nearest(self, hardware: Hardware, fleet: int, refused: Infeasible, at: str) -> Infeasible:
        """The refusal with what to change in the request, field by field, as tried on the engine."""
        concurrent = self.job.campaign.concurrent_runs
        each = max(fleet // concurrent, 1)
        found = nearest(self.snapshot, self.spec.workload, hardware, each, self.spec.plan, refused)
        if found.rule not in RULES:
            return found
        changes = {f"{at}/job/plan/{name}": value for name, value in found.nearest.items() if name != "accelerators"}
        if "accelerators" in found.nearest:
            changes[f"{at}/supply/accelerator_count"] = int(found.nearest["accelerators"]) * concurrent
        return replace(found, nearest=changes)

    def on(
        self, hardware: Hardware, counts: list[int], markets: tuple[str, ...]
    ) -> tuple[list[Found], Infeasible | None]:
        """Runs on one machine: the counts to try, and larger ones while none fits or none keeps the deadline."""
        runs: list[Found] = []
        refusal: Infeasible | None = None
        queue = list(counts)
        limit = min(LARGEST_CLUSTER, hardware.largest_count or LARGEST_CLUSTER)
        deadline = self.item.constraints.deadline_hours
        for _ in range(len(counts) - 1 + MOST_TRIES):
            if not queue:
                break
            count = queue.pop(0)
            found = self._at(hardware, count, markets)
            if isinstance(found, Infeasible):
                refusal = found
            else:
                runs.extend(found)
            in_time = any(deadline is None or run.light["duration_hours"]["p50"] <= deadline for run in runs)
            if self.pinned is None and not queue and not in_time and 2 * count <= limit:
                queue.append(2 * count)
        return runs, refusal

    def _at(self, hardware: Hardware, fleet: int, markets: tuple[str, ...]) -> list[Found] | Infeasible:
        """Runs on a fleet of one size, with as many at a time, up to what was asked for, as finish first."""
        refusal = self._hopeless(hardware, fleet)
        if refusal is not None:
            return refusal
        best: dict[str, Found] = {}
        for runs_at_once, each in concurrency_choices(self.job.campaign, fleet):
            result = self._plan(hardware, each)
            if isinstance(result, Infeasible):
                refusal = result
                continue
            result = scaled(result, self.job, each)
            for market in markets:
                found = self._run(hardware, fleet, each, runs_at_once, result, market)
                if isinstance(found, Infeasible):
                    refusal = found
                elif market not in best or _hours(found) < _hours(best[market]):
                    best[market] = found
        if best:
            return list(best.values())
        assert refusal is not None
        return refusal

    def _run(
        self, hardware: Hardware, fleet: int, each: int, runs_at_once: int, result: TrainingResult, market: str
    ) -> Found | Infeasible:
        level = run_level(
            self.snapshot, self.item, self.spec.workload, result, hardware, each, runs_at_once, self.storage,
            spot=market == SPOT,
        )  # fmt: skip
        if isinstance(level, Infeasible):
            return level
        if level.outcome.duration_hours.p90 > LONGEST_HOURS:
            return _endless(hardware, fleet, level.outcome.duration_hours.p90)
        light = {
            "key": f"{hardware.key}/{fleet}/{market}",
            "kind": "training",
            "market": market,
            "hardware": hardware.key,
            "accelerator": hardware.accelerator.id,
            "accelerators": fleet,
            "duration_hours": band_json(level.outcome.duration_hours),
            "hours": band_json(level.outcome.duration_hours),
            "tokens": level.tokens,
            "energy": level.energy_json(),
        }
        rest = partial(self._rest, hardware, fleet, each, runs_at_once, result, level)
        return Found(light=quantized(light), rest=rest)

    def _rest(
        self,
        hardware: Hardware,
        fleet: int,
        each: int,
        runs_at_once: int,
        result: TrainingResult,
        level: RunLevel,
    ) -> dict[str, Any]:
        """Everything of a run that only a shown option needs."""
        return {
            "architecture": hardware.accelerator.architecture,
            "accelerators_per_run": each,
            "concurrent_runs": runs_at_once,
            "nodes": -(-fleet // hardware.accelerator.accelerators_per_node),
            "fabric": fabric_json(hardware),
            "plan": asdict(result.plan),
            "evidence_class": result.evidence_class,
            "performance": performance_json(self.job, result, level, each),
            "hours_split": dict(level.split),
            "tokens_per_run": level.tokens_per_run,
            "experiments": level.experiments,
            "storage_id": self.storage.id if self.storage else None,
            "storage_bytes": level.storage_bytes,
            "required_read_bytes_per_s": level.outcome.data.required_read_bytes_per_s * runs_at_once,
            "egress_bytes": level.egress_bytes,
            "spare_nodes": level.outcome.spare_nodes,
            "data": data_json(level),
            "checkpoint": checkpoint_json(level),
            "assumptions": [a.stored() for a in self._assumptions(result, level)],
        }

    def _assumptions(self, result: TrainingResult, level: RunLevel) -> list[Assumption]:
        engine = [
            Assumption(id=name, value=value, unit="engine", source="engine calibration", moves=HOURS)
            for name, value in sorted(result.assumptions.items())
            if name != "precision"
        ]
        return [*self.spec.assumptions, *engine, *level.assumptions]


def _endless(hardware: Hardware, fleet: int, hours: float) -> Infeasible:
    return Infeasible(
        rule="duration",
        message=f"one in ten runs on {fleet} x {hardware.accelerator.id} take over {hours:.3g} h with failures and "
        f"restarts; what may take {LONGEST_HOURS:.0e} h has no price. Take fewer accelerators, or less work",
        numbers={"duration_hours": hours},
        nearest={},
    )


def _hours(found: Found) -> float:
    return float(found.light["duration_hours"]["p50"])


def pinned_divisor(job: TrainingJob) -> int:
    """Product of the pinned degrees that partition the accelerators."""
    plan = job.plan
    return math.prod(d for d in (plan.tensor, plan.pipeline, plan.context, plan.data) if d is not None)


def _pinned_count(item: Item, divisor: int, at: str) -> int | None:
    """The caller's count, or the one a fully pinned plan implies; refused when the plan does not divide it."""
    assert isinstance(item.job, TrainingJob)
    plan = item.job.plan
    count = item.supply.accelerator_count
    complete = None not in (plan.tensor, plan.pipeline, plan.data)
    if count is None:
        return divisor * item.job.campaign.concurrent_runs if complete else None
    share = count // item.job.campaign.concurrent_runs
    if share % divisor == 0 and (not complete or divisor == share) and share > 0:
        return count
    runs = item.job.campaign.concurrent_runs
    nearest = divisor * runs if complete else max(divisor, share - share % divisor) * runs
    raise infeasible(
        f"{at}/job/plan",
        "divisibility",
        f"the plan uses tensor x pipeline x context x data = {divisor} accelerators a run, which does not make up "
        f"the {count} of supply.accelerator_count; the nearest count is {nearest}",
        {f"{at}/supply/accelerator_count": nearest},
        product=divisor,
        accelerator_count=count,
    )


def _unknown_fabric(hardware: Hardware, count: int) -> Infeasible:
    largest = hardware.largest_count or 1
    return Infeasible(
        rule="unknown_fabric",
        message=f"no source states the network between servers of {hardware.accelerator.id}; it is quoted for one "
        f"server or scale-up domain ({largest} accelerators), not {count}. State supply.network to go beyond",
        numbers={"largest_count": float(largest), "accelerators": float(count)},
        nearest={"accelerator_count": largest},
    )


def _too_small(hardware: Hardware, fleet: int, least: float, missing: float) -> Infeasible:
    enough = math.ceil(least / hardware.accelerator.memory_bytes)
    return Infeasible(
        rule="memory",
        message=f"the bare training state takes {least:.4g} bytes; {fleet} x {hardware.accelerator.id} have "
        f"{fleet * hardware.accelerator.memory_bytes:.4g}: {missing:.4g} bytes are missing",
        numbers={"missing_bytes": missing, "needed_bytes": least},
        nearest={"accelerator_count": enough},
    )
