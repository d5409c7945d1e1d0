"""What can run: serving of one item on every machine of its supply, as JSON that pricing can replay."""

import math
from dataclasses import asdict
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible, Latency, ServingResult
from app.engine.run.energy import energy
from app.engine.serving.fleet import hourly_fleet
from app.engine.serving.selection import PLANNED_UTILIZATION
from app.engine.workload import ServingWorkload
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.conditions import power_of
from app.estimates.hardware import Hardware
from app.estimates.job import ServingSpec, serving_spec
from app.estimates.job_schemas import InferenceJob
from app.estimates.physics import quantized, serve, serve_most
from app.estimates.run_json import band_json, fabric_json
from app.estimates.runs import Found, Runs
from app.estimates.schemas import Item
from app.estimates.supply import STEADY, Selection

SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0
MILLISECONDS = 1e3


def serving_runs(snapshot: Snapshot, item: Item, selection: Selection, at: str) -> Runs:
    """Every feasible fleet, and why the other machines cannot serve it."""
    job = item.job
    assert isinstance(job, InferenceJob)
    spec = serving_spec(snapshot, job, f"{at}/job")
    runs: list[Found] = []
    refused: dict[str, Infeasible] = {}
    count = item.supply.accelerator_count
    for hardware in selection.hardware:
        found: list[Found] = []
        for workload in spec.workloads(hardware.accelerator):
            if item.constraints.solve_for == "concurrency":
                fleet = count or hardware.accelerator.accelerators_per_node
                result = serve_most(snapshot, workload, hardware, fleet, spec.plan)
            else:
                result = serve(snapshot, workload, hardware, count, spec.plan)
            result = _enough_replicas(workload, result)
            if isinstance(result, Infeasible):
                refused.setdefault(hardware.key, result)
            else:
                found.append(_run(snapshot, item, spec, hardware, workload, result))
        if found:
            refused.pop(hardware.key, None)
        runs.extend(found)
    return runs, refused


def _enough_replicas(workload: ServingWorkload, result: ServingResult | Infeasible) -> ServingResult | Infeasible:
    """Refuse a given fleet, or a group of pinned stages, that cannot be split into the replicas asked for."""
    least = workload.minimum_replicas
    if isinstance(result, Infeasible) or result.replicas >= least:
        return result
    needed = least * result.accelerators_per_replica
    return Infeasible(
        rule="minimum_replicas",
        message=f"{least} replicas of {result.accelerators_per_replica} accelerators take {needed}; the plan has "
        f"{result.replicas}. Give {needed} accelerators, pin a narrower plan, or ask for fewer replicas",
        numbers={"minimum_replicas": float(least), "replicas": float(result.replicas)},
        nearest={"accelerators": needed},
    )


def _run(
    snapshot: Snapshot,
    item: Item,
    spec: ServingSpec,
    hardware: Hardware,
    workload: ServingWorkload,
    result: ServingResult,
) -> Found:
    job = spec.job
    is_pinned = item.supply.accelerator_count is not None or item.constraints.solve_for is not None
    fleet = _fleet(spec, result, is_pinned=is_pinned)
    load = job.traffic
    requests = _mean_requests_per_s(spec, result)
    monthly = requests * SECONDS_PER_HOUR * HOURS_PER_MONTH
    output = monthly * load.output_tokens.mean_tokens
    formats = {
        "weights": workload.weights_precision,
        "activations": workload.activations_precision,
        "kv_cache": workload.kv_precision,
    }
    count = fleet["accelerators"]["p50"] + fleet["spare_accelerators"]
    light = {
        "key": f"{hardware.key}/{count}/{'/'.join(formats.values())}",
        "kind": "inference",
        "market": STEADY,
        "hardware": hardware.key,
        "accelerator": hardware.accelerator.id,
        "accelerators": count,
        "months": job.availability.months,
        "fleet": fleet,
        "e2e_ms": result.e2e_s.p95 * MILLISECONDS,
        "users": result.concurrency_per_replica * result.replicas,
        "carries_load": _carries_load(result),
        "energy": _energy(snapshot, item, hardware, result, count),
    }

    def rest() -> dict[str, Any]:
        return {
            "architecture": hardware.accelerator.architecture,
            "nodes": -(-count // hardware.accelerator.accelerators_per_node),
            "fabric": fabric_json(hardware),
            "plan": asdict(result.plan),
            "precision": formats,
            "evidence_class": result.evidence_class,
            "performance": _performance(spec, result, fleet),
            "monthly": {
                "requests": monthly,
                "input_tokens": monthly * load.input_tokens.mean_tokens,
                "output_tokens": output,
            },
            "prefill_share": result.assumptions.get("prefill_time_share"),
            "saturated": result.saturated,
            "objectives_met": "objectives_met" not in result.assumptions,
            "egress_bytes": output * BYTES_PER_OUTPUT_TOKEN,
            "assumptions": [a.stored() for a in _assumptions(spec, result, formats)],
        }

    return Found(light=quantized(light), rest=rest)


def _carries_load(result: ServingResult) -> bool:
    """Whether the whole load is served within every objective."""
    return not result.saturated and "objectives_met" not in result.assumptions


# English text runs at about four bytes a token in byte-pair vocabularies (OpenAI tokenizer guide); JSON framing apart.
BYTES_PER_OUTPUT_TOKEN = 4.0


def _energy(
    snapshot: Snapshot, item: Item, hardware: Hardware, result: ServingResult, accelerators: int
) -> dict[str, Any] | None:
    """Energy of the fleet in a month of 730 hours; waiting replicas draw what waiting nodes draw."""
    busy = min(1.0, result.utilization) * accelerators * HOURS_PER_MONTH
    waiting = accelerators * HOURS_PER_MONTH - busy
    monthly = energy(hardware.accelerator, busy, waiting, power_of(snapshot, item, hardware.accelerator))
    return None if monthly is None else asdict(monthly)


def _mean_requests_per_s(spec: ServingSpec, result: ServingResult) -> float:
    """Requests served at the mean hour; the engine answers for the peak of an open loop."""
    if spec.requests_per_s is None:
        return result.requests_per_s
    return min(spec.requests_per_s, result.requests_per_s)


def _fleet(spec: ServingSpec, result: ServingResult, *, is_pinned: bool) -> dict[str, Any]:
    """Replicas at each quantile of cost (a fast fleet is the cheap one), spares, and replicas by the hour."""
    availability = spec.job.availability
    each = result.accelerators_per_replica
    rate = result.output_tokens_per_s
    exact = _exact_replicas(spec, result)
    scales = {"p10": rate.p50 / rate.p90, "p50": 1.0, "p90": rate.p50 / rate.p10}
    if is_pinned:
        scales = dict.fromkeys(scales, 1.0)
    hourly = {q: _hourly(spec, result, scale, is_pinned=is_pinned) for q, scale in scales.items()}
    least = availability.minimum_replicas
    peak = {q: max(least, result.replicas if s == 1.0 else math.ceil(exact * s - 1e-9)) for q, s in scales.items()}
    replicas = {q: max(n, max(hourly[q], default=0)) for q, n in peak.items()}
    replicas = {
        "p10": min(replicas["p10"], replicas["p50"]),
        "p50": replicas["p50"],
        "p90": max(replicas["p90"], replicas["p50"]),
    }
    return {
        "replicas": replicas,
        "accelerators_per_replica": each,
        "accelerators": {q: n * each for q, n in replicas.items()},
        "spare_accelerators": availability.spare_replicas * each,
        "hourly_replicas": hourly if hourly["p50"] else None,
    }


def _hourly(spec: ServingSpec, result: ServingResult, scale: float, *, is_pinned: bool) -> list[int]:
    """Replicas of each hour of the profile; empty without hourly scaling."""
    weights = spec.job.traffic.hourly_weights
    capacity = _capacity(spec, result)
    scaled = spec.job.availability.autoscaling == "hourly" and not is_pinned and not result.saturated
    if not scaled or not weights or spec.requests_per_s is None or capacity <= 0.0:
        return []
    least = spec.job.availability.minimum_replicas
    fleet = hourly_fleet(spec.requests_per_s, weights, capacity / scale, minimum_replicas=least)
    return list(fleet.replicas)


def _capacity(spec: ServingSpec, result: ServingResult) -> float:
    """Requests a second that one replica is planned for, with the headroom the fleet was sized with.

    With objectives that is what it serves at the peak of the sized fleet; a higher rate would break them.
    """
    highest = PLANNED_UTILIZATION * result.capacity_requests_per_s_per_replica
    at_peak = result.requests_per_s / result.replicas
    return min(highest, at_peak) if spec.job.slo.any else highest


def _exact_replicas(spec: ServingSpec, result: ServingResult) -> float:
    capacity = _capacity(spec, result)
    if spec.requests_per_s is None or capacity <= 0.0 or result.saturated:
        return float(result.replicas)
    return min(float(result.replicas), spec.requests_per_s * spec.peak_to_mean / capacity)


def _output_rate(spec: ServingSpec, result: ServingResult) -> dict[str, float]:
    """Interval of the output rate; an open loop never yields more than its users ask for, however fast the fleet."""
    rate = band_json(result.output_tokens_per_s)
    if spec.requests_per_s is None:
        return rate
    offered = spec.requests_per_s * spec.peak_to_mean * spec.job.traffic.output_tokens.mean_tokens
    return {q: min(v, max(offered, rate["p50"])) for q, v in rate.items()}


def _performance(spec: ServingSpec, result: ServingResult, fleet: dict[str, Any]) -> dict[str, Any]:
    accelerators = result.replicas * result.accelerators_per_replica
    rate = _output_rate(spec, result)
    return {
        "output_tokens_per_second": rate,
        "output_tokens_per_second_per_accelerator": {q: v / accelerators for q, v in rate.items()},
        "requests_per_second": result.requests_per_s,
        "capacity_requests_per_second_per_replica": result.capacity_requests_per_s_per_replica,
        "ttft_ms": _latency(result.ttft_s),
        "tpot_ms": _latency(result.tpot_s),
        "e2e_ms": _latency(result.e2e_s),
        "replicas": fleet["replicas"]["p50"],
        "accelerators_per_replica": result.accelerators_per_replica,
        "concurrency_per_replica": result.concurrency_per_replica,
        "concurrency": result.concurrency_per_replica * result.replicas,
        "kv_cache_tokens": result.kv_cache_tokens,
        "utilization": result.utilization,
        "saturated": result.saturated,
        "time_breakdown": dict(result.time_breakdown),
        "memory_breakdown_bytes": dict(result.memory_breakdown_bytes),
        "bottleneck": result.bottleneck,
        "plan_origin": result.plan_origin,
        "interval_basis": result.evidence_class,
    }


def _latency(latency: Latency) -> dict[str, Any]:
    return {
        "mean": {q: v * MILLISECONDS for q, v in band_json(latency.mean).items()},
        "p50": latency.p50 * MILLISECONDS,
        "p95": latency.p95 * MILLISECONDS,
        "p99": latency.p99 * MILLISECONDS,
    }


def _assumptions(spec: ServingSpec, result: ServingResult, formats: dict[str, str]) -> list[Assumption]:
    asked = spec.job.precision
    auto = [
        Assumption(
            id=f"{part}_precision",
            value=formats[part],
            unit="format",
            source="precision auto: the published format, else FP8 where the accelerator computes in it, else BF16"
            + ("; or one of those allowed" if asked.allow else ""),
            moves=HOURS,
        )
        for part in formats
        if getattr(asked, part) == "auto"
    ]
    engine = [
        Assumption(id=name, value=value, unit="engine", source="engine calibration", moves=HOURS)
        for name, value in sorted(result.assumptions.items())
    ]
    return [*spec.assumptions, *auto, *engine]
