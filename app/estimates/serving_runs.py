"""What can run: serving of one item on every machine of its supply, as JSON that pricing can replay."""

import math
from dataclasses import asdict
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible, Latency, ServingResult
from app.engine.run.energy import energy
from app.estimates.assumptions import HOURS, Assumption
from app.estimates.conditions import power_of
from app.estimates.job import ServingSpec, serving_spec
from app.estimates.job_schemas import InferenceJob
from app.estimates.physics import quantized, serve
from app.estimates.runs import Found, Runs
from app.estimates.schemas import Item
from app.estimates.supply import STEADY, Hardware, Selection
from app.estimates.training_runs import band_json, fabric_json

SECONDS_PER_HOUR = 3600.0
HOURS_PER_MONTH = 730.0
MILLISECONDS = 1e3
# Twelve halvings bring a concurrency within 0.03 % of the range searched.
HALVINGS = 12
MOST_CONCURRENCY = 1_000_000.0


def serving_runs(snapshot: Snapshot, item: Item, selection: Selection, at: str) -> Runs:
    """Every feasible fleet, and why the other machines cannot serve it."""
    job = item.job
    assert isinstance(job, InferenceJob)
    spec = serving_spec(snapshot, job, f"{at}/job")
    runs: list[Found] = []
    refused: dict[str, Infeasible] = {}
    count = item.supply.accelerator_count
    for hardware in selection.hardware:
        if item.constraints.solve_for == "concurrency":
            answer = _most_users(snapshot, spec, hardware, count)
        else:
            workload = spec.workload(hardware.accelerator)
            answer = serve(snapshot, workload, hardware, count, spec.plan), spec.concurrency
        result, concurrency = answer
        if isinstance(result, Infeasible):
            refused[hardware.key] = result
        else:
            runs.append(_run(snapshot, item, spec, hardware, result, concurrency))
    return runs, refused


def _most_users(
    snapshot: Snapshot, spec: ServingSpec, hardware: Hardware, count: int | None
) -> tuple[ServingResult | Infeasible, float | None]:
    """Most concurrent requests a fleet holds under the objectives, by halving."""
    fleet = count or hardware.accelerator.accelerators_per_node
    low, high = 1.0, MOST_CONCURRENCY
    workload = spec.workload(hardware.accelerator, concurrency=low)
    best = serve(snapshot, workload, hardware, fleet, spec.plan)
    if isinstance(best, Infeasible) or best.saturated:
        return best, low
    for _ in range(HALVINGS + 8):
        middle = math.floor(math.sqrt(low * high))
        if middle <= low:
            break
        workload = spec.workload(hardware.accelerator, concurrency=float(middle))
        result = serve(snapshot, workload, hardware, fleet, spec.plan)
        if isinstance(result, Infeasible) or result.saturated:
            high = float(middle)
        else:
            low, best = float(middle), result
    return best, low


def _run(
    snapshot: Snapshot,
    item: Item,
    spec: ServingSpec,
    hardware: Hardware,
    result: ServingResult,
    concurrency: float | None,
) -> Found:
    job = spec.job
    fleet = _fleet(spec, result, is_pinned=item.supply.accelerator_count is not None)
    load = job.traffic
    requests = result.requests_per_s
    monthly = requests * SECONDS_PER_HOUR * HOURS_PER_MONTH
    output = monthly * load.output_tokens.mean_tokens
    workload = spec.workload(hardware.accelerator)
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
            "performance": _performance(result, concurrency, fleet),
            "monthly": {
                "requests": monthly,
                "input_tokens": monthly * load.input_tokens.mean_tokens,
                "output_tokens": output,
            },
            "prefill_share": result.time_breakdown.get("prefill"),
            "saturated": result.saturated,
            "egress_bytes": output * BYTES_PER_OUTPUT_TOKEN,
            "assumptions": [a.stored() for a in _assumptions(spec, result, formats)],
        }

    return Found(light=quantized(light), rest=rest)


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


def _fleet(spec: ServingSpec, result: ServingResult, *, is_pinned: bool) -> dict[str, Any]:
    """Replicas at each quantile of cost (a fast fleet is the cheap one), spares, and the share of hours they run."""
    availability = spec.job.availability
    each = result.accelerators_per_replica
    rate = result.output_tokens_per_s
    needed = {"p10": rate.p50 / rate.p90, "p50": 1.0, "p90": rate.p50 / rate.p10}
    exact = _exact_replicas(spec, result)
    replicas = {
        q: result.replicas if is_pinned or q == "p50" else max(1, math.ceil(exact * scale))
        for q, scale in needed.items()
    }
    replicas = {q: max(n, availability.minimum_replicas) for q, n in replicas.items()}
    replicas["p10"] = min(replicas["p10"], replicas["p50"])
    replicas["p90"] = max(replicas["p90"], replicas["p50"])
    return {
        "replicas": replicas,
        "accelerators_per_replica": each,
        "accelerators": {q: n * each for q, n in replicas.items()},
        "spare_accelerators": availability.spare_replicas * each,
        "active_share": _active_share(spec, replicas["p50"], exact),
    }


def _exact_replicas(spec: ServingSpec, result: ServingResult) -> float:
    capacity = result.capacity_requests_per_s_per_replica
    if spec.requests_per_s is None or capacity <= 0.0 or result.saturated:
        return float(result.replicas)
    return min(float(result.replicas), spec.requests_per_s * spec.peak_to_mean / capacity)


def _active_share(spec: ServingSpec, replicas: int, exact: float) -> float:
    """Share of replica-hours that run when replicas follow the hour; 1 without hourly scaling."""
    weights = spec.job.traffic.hourly_weights
    if spec.job.availability.autoscaling != "hourly" or not weights or replicas < 1:
        return 1.0
    peak = max(weights)
    floor = spec.job.availability.minimum_replicas
    running = [min(replicas, max(floor, math.ceil(exact * w / peak))) for w in weights]
    return sum(running) / (replicas * len(weights))


def _performance(result: ServingResult, concurrency: float | None, fleet: dict[str, Any]) -> dict[str, Any]:
    accelerators = result.replicas * result.accelerators_per_replica
    return {
        "output_tokens_per_second": band_json(result.output_tokens_per_s),
        "output_tokens_per_second_per_accelerator": {
            q: v / accelerators for q, v in band_json(result.output_tokens_per_s).items()
        },
        "requests_per_second": result.requests_per_s,
        "capacity_requests_per_second_per_replica": result.capacity_requests_per_s_per_replica,
        "ttft_ms": _latency(result.ttft_s),
        "tpot_ms": _latency(result.tpot_s),
        "e2e_ms": _latency(result.e2e_s),
        "replicas": fleet["replicas"]["p50"],
        "accelerators_per_replica": result.accelerators_per_replica,
        "concurrency_per_replica": result.concurrency_per_replica,
        "concurrency": concurrency,
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
            source="precision auto: the published format, else FP8 where the accelerator computes in it, else BF16",
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
