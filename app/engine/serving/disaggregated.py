"""Disaggregated serving: prefill and decode on replicas of their own, with the cache handed over between them."""

from dataclasses import replace

import numpy as np

from app.engine.hardware import Accelerator, Fabric
from app.engine.outcome import Infeasible, Latency, ServingResult
from app.engine.serving.answer import answer, band, in_flight
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.lengths import variation_squared
from app.engine.serving.loadcurve import load_curve
from app.engine.serving.memory import sequence_bytes
from app.engine.serving.operators import Floats
from app.engine.serving.queueing import prefill_wait_s, tail_factor
from app.engine.serving.regimes import Requests, static_batch_s
from app.engine.serving.replica import Replicas, prepare
from app.engine.serving.selection import choose
from app.engine.serving.speculation import accepted_tokens
from app.engine.workload import ServingPlanRequest, ServingWorkload

# the hand-over of a cache reaches about this share of the link; DistServe and Mooncake report 0.6 to 0.9
TRANSFER_SHARE = 0.7


def search_disaggregated(
    workload: ServingWorkload, accelerator: Accelerator, fabric: Fabric | None, request: ServingPlanRequest,
    calibration: ServingCalibration,
) -> ServingResult | Infeasible:  # fmt: skip
    """Serve with a pinned number of prefill and decode replicas of one width.

    Parameters
    ----------
    workload : ServingWorkload
    accelerator : Accelerator
    fabric : Fabric or None
    request : ServingPlanRequest
        ``prefill_replicas`` and ``decode_replicas`` are set.
    calibration : ServingCalibration

    Returns
    -------
    ServingResult or Infeasible
        ``replicas`` counts the whole group as one; ``accelerators_per_replica`` is all of its accelerators.

    Notes
    -----
    Two stations in tandem: prefill is an M/G/1 queue on each prefill replica; decode runs without interference. The
    slower station bounds the rate.

    References
    ----------
    1. Zhong et al., "DistServe", 2024. 2. Patel et al., "Splitwise", 2024.
    """
    stages = (request.prefill_replicas or 0, request.decode_replicas or 0)
    if min(stages) < 1:
        return Infeasible(
            rule="disaggregation", message=f"prefill and decode replicas count from 1, got {stages}",
            numbers={}, nearest={"prefill_replicas": 1, "decode_replicas": 1},
        )  # fmt: skip
    replicas = prepare(workload, accelerator, fabric, request, calibration, None)
    if isinstance(replicas, Infeasible):
        return replicas
    accepted = accepted_tokens(workload.speculative_tokens, workload.speculative_acceptance)
    prefill = _prefill_alone_s(replicas, replicas.requests)
    without = _without_prefill(replicas.requests)
    decoders = replace(replicas, requests=without)
    total_decode = stages[1]
    curve = load_curve(decoders)
    width = int(replicas.size[0, 0])
    choice = choose(workload, decoders, curve, accepted, total_decode * width)
    result = answer(workload, decoders, choice, request, calibration, accepted)
    row = choice.row
    prefill_rate = stages[0] / float(prefill[row, 0])
    transfer = _transfer_s(replicas, row, accelerator, fabric)
    alone = float(prefill[row, 0])
    if workload.requests_per_s is not None:
        asked = workload.requests_per_s * workload.peak_to_mean
        served = min(asked, prefill_rate, choice.highest_rate * choice.replicas)
        rate = np.array([[served / stages[0]]])
        wait = prefill_wait_s(rate, prefill[row : row + 1], variation_squared(workload.input_tokens))
    else:
        body = result.e2e_s.mean.p50 - result.ttft_s.mean.p50
        served, queue = _closed_tandem(
            workload.concurrency, result.requests_per_s, prefill_rate, alone + transfer, body
        )
        wait = np.array([[queue]])
    return _merge(workload, calibration, result, replicas, stages, served, prefill_rate, prefill, wait, transfer, row)


def _closed_tandem(
    concurrency: float | None, decode_rate: float, prefill_rate: float, first_s: float, body_s: float
) -> tuple[float, float]:
    """Rate of a closed loop over both stations, and the wait at the prefill station [s].

    Little's law over the whole cycle: with ``n`` requests in the loop, ``n = rate x (wait + first + body)``.
    """
    if concurrency is None:
        return min(decode_rate, prefill_rate), 0.0
    free = concurrency / (first_s + body_s)
    served = min(free, decode_rate, prefill_rate)
    return served, max(concurrency / served - first_s - body_s, 0.0) if served == prefill_rate else 0.0


def _merge(
    workload: ServingWorkload, calibration: ServingCalibration, result: ServingResult, replicas: Replicas,
    stages: tuple[int, int], served: float, prefill_rate: float, prefill: Floats, wait: Floats, transfer: float,
    row: int,
) -> ServingResult:  # fmt: skip
    """Result of the group: decode's figures with the first token of the prefill station."""
    size = int(replicas.size[row, 0])
    first = replicas.frontend_s + float(prefill[row, 0]) + transfer
    mean_wait = float(wait[0, 0])
    busy = np.array([[min(served / prefill_rate, 0.999)]])
    tail = {
        p: first + mean_wait * float(tail_factor(np.array([1.0 - p / 100.0]), busy)[0, 0]) for p in (50.0, 95.0, 99.0)
    }
    evidence = result.evidence_class
    ttft = Latency(
        mean=band(calibration, "ttft", evidence, first + mean_wait), p50=tail[50.0], p95=tail[95.0], p99=tail[99.0]
    )
    capacity = min(prefill_rate, result.capacity_requests_per_s_per_replica * stages[1])
    open_loop = workload.requests_per_s is not None
    offered = (workload.requests_per_s or 0.0) * workload.peak_to_mean if open_loop else served
    decode_share = served / max(result.requests_per_s, 1e-12)
    shift = ttft.mean.p50 - result.ttft_s.mean.p50
    e2e = result.e2e_s
    whole = Latency(
        mean=band(calibration, "e2e", evidence, max(e2e.mean.p50 + shift, 1e-9)),
        p50=max(e2e.p50 + shift, 1e-9), p95=max(e2e.p95 + shift, 1e-9), p99=max(e2e.p99 + shift, 1e-9),
    )  # fmt: skip
    return replace(
        result,
        plan=replace(result.plan, prefill_replicas=stages[0], decode_replicas=stages[1]),
        replicas=1,
        accelerators_per_replica=size * sum(stages),
        output_tokens_per_s=band(calibration, "output_tokens_per_s", evidence, served * workload.output_tokens.mean),
        requests_per_s=served,
        capacity_requests_per_s_per_replica=capacity,
        ttft_s=ttft,
        e2e_s=whole,
        concurrency_per_replica=workload.concurrency or in_flight(served, whole),
        saturated=result.saturated or decode_share < 1.0 - 1e-9 or offered > capacity * (1.0 + 1e-9),
        utilization=offered / capacity,
        assumptions={**result.assumptions, "cache_transfer_s": transfer},
    )  # fmt: skip


def _prefill_alone_s(replicas: Replicas, requests: Requests) -> Floats:
    """Time of one prompt on an otherwise idle replica [s]."""
    one = np.ones_like(replicas.size)
    alone = replace(requests, output=one)
    total, _ = static_batch_s(replicas.costs, alone, one, one)
    return total


def _without_prefill(requests: Requests) -> Requests:
    """Requests as a decode replica sees them: the whole prompt is in the cache."""
    one = np.ones_like(requests.prompt)
    return replace(requests, prompt=one, cached=requests.cached + requests.prompt)


def _transfer_s(replicas: Replicas, row: int, accelerator: Accelerator, fabric: Fabric | None) -> float:
    """Time to hand one request's cache over [s]; every accelerator sends its own part."""
    o, q = replicas.operators, replicas.requests
    held = float(sequence_bytes(o, q.prompt + q.cached)[row, 0])
    outside = fabric.bytes_per_s_per_accelerator if fabric else accelerator.scale_out_bytes_per_s_per_accelerator
    return held / (TRANSFER_SHARE * (outside or accelerator.pcie_bytes_per_s))
