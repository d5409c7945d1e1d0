"""Replicas of one accelerator type that can serve a workload: plans that fit, with rates and the batch they admit."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Accelerator, Fabric
from app.engine.outcome import Infeasible
from app.engine.serving.calibration import EngineConventions, ServingCalibration, Situation
from app.engine.serving.fitting import (
    Plan,
    cached_operators,
    fitting,
    memory_of,
    no_memory,
    no_plan,
    precisions_of,
)
from app.engine.serving.lengths import longest
from app.engine.serving.memory import ServingMemory, admitted_sequences, sequence_bytes
from app.engine.serving.operators import Floats, Operators
from app.engine.serving.plans import enumerate_plans, routed_experts
from app.engine.serving.rates import resolve_rates
from app.engine.serving.regimes import Requests, lengths_of
from app.engine.serving.speculation import accepted_tokens
from app.engine.serving.step import Costs, costs_of
from app.engine.workload import ServingPlanRequest, ServingWorkload

T = TypeVar("T", Operators, Costs, Requests, ServingMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """Plans of one accelerator type that fit; arrays ``(plans, 1)`` or ``(plans, operators)``.

    Parameters
    ----------
    cap : array [request]
        Requests the engine runs at most: room in the cache, and the batch cap.
    sequence_bytes : array [byte]
        Mean cache of one decoding request on one accelerator.
    size : array
        Accelerators of one replica.
    """

    situation: Situation
    engine: EngineConventions
    plans: tuple[Plan, ...]
    operators: Operators
    costs: Costs
    memory: ServingMemory
    requests: Requests
    cap: Floats
    cache_tokens: Floats
    sequence_bytes: Floats
    size: Floats
    frontend_s: float


_ARRAY_FIELDS: dict[type[Any], tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in (Operators, Costs, Requests, ServingMemory)
}


def take(value: T, rows: Sequence[int] | NDArray[np.intp]) -> T:
    """Rows of a dataclass of arrays.

    Parameters
    ----------
    value : T
    rows : Sequence[int] or NDArray[np.intp]

    Returns
    -------
    T

    References
    ----------
    1. NumPy indexing.
    """
    index = np.asarray(rows, dtype=np.intp)
    picked: dict[str, Any] = {}
    for name in _ARRAY_FIELDS[type(value)]:
        array = getattr(value, name)
        picked[name] = array.take(index, axis=0) if isinstance(array, np.ndarray) else array
    return type(value)(**picked)


def subset(replicas: Replicas, rows: NDArray[np.intp]) -> Replicas:
    """Some of the plans.

    Parameters
    ----------
    replicas : Replicas
    rows : array of int

    Returns
    -------
    Replicas

    References
    ----------
    1. NumPy indexing.
    """
    if len(rows) == len(replicas.plans):
        return replicas
    return replace(
        replicas, plans=tuple(replicas.plans[i] for i in rows), operators=take(replicas.operators, rows),
        costs=take(replicas.costs, rows), memory=take(replicas.memory, rows), requests=take(replicas.requests, rows),
        cap=replicas.cap[rows], cache_tokens=replicas.cache_tokens[rows],
        sequence_bytes=replicas.sequence_bytes[rows], size=replicas.size[rows],
    )  # fmt: skip


def check_workload(workload: ServingWorkload) -> Infeasible | None:
    """What no hardware can mend: lengths beyond the model's context.

    Parameters
    ----------
    workload : ServingWorkload

    Returns
    -------
    Infeasible or None

    References
    ----------
    1. Model configuration, ``max_position_embeddings``.
    """
    need = longest(workload.input_tokens) + longest(workload.output_tokens)
    context = workload.transformer.context
    if context is not None and need > context:
        return Infeasible(
            rule="context",
            message=f"requests of {need:.0f} tokens do not fit the model's context of {context} tokens; "
            "shorten input or output, or choose a model with a longer context",
            numbers={"asked_tokens": need, "context_tokens": float(context)},
            nearest={"input_tokens": max(context - longest(workload.output_tokens), 0.0)},
        )
    return None


def prepare(
    workload: ServingWorkload, accelerator: Accelerator, fabric: Fabric | None, request: ServingPlanRequest,
    calibration: ServingCalibration, most_accelerators: int | None,
) -> Replicas | Infeasible:  # fmt: skip
    """Enumerate plans, drop those that do not fit, and resolve rates for the rest.

    Parameters
    ----------
    workload : ServingWorkload
    accelerator : Accelerator
    fabric : Fabric or None
    request : ServingPlanRequest
    calibration : ServingCalibration
    most_accelerators : int or None

    Returns
    -------
    Replicas or Infeasible

    Notes
    -----
    Kept per workload (without its load), hardware, request and calibration: prices and loads change more often.

    References
    ----------
    1. Kwon et al. 2023 (memory). 2. Pope et al. 2022 (plans).
    """
    closed = workload.concurrency is not None
    shape = replace(
        workload,
        requests_per_s=None,
        concurrency=1.0 if closed else None,
        offline=False,
        peak_to_mean=1.0,
        objectives=(),
    )
    return _prepared(shape, accelerator, fabric, request, calibration, most_accelerators)


@lru_cache(maxsize=4096)
def _prepared(
    workload: ServingWorkload, accelerator: Accelerator, fabric: Fabric | None, request: ServingPlanRequest,
    calibration: ServingCalibration, most_accelerators: int | None,
) -> Replicas | Infeasible:  # fmt: skip
    """:func:`prepare` without what does not matter to it: the load and the objectives."""
    precisions = precisions_of(workload)
    if accelerator.dense_peaks.bf16 is None and accelerator.dense_peaks.fp16 is None:
        return Infeasible(
            rule="no_peak", message=f"{accelerator.id} states no 16-bit dense peak", numbers={}, nearest={}
        )
    plans = enumerate_plans(workload.transformer, accelerator, request, most_accelerators)
    if not plans:
        return no_plan(workload, accelerator, request, most_accelerators)
    stack = workload.software.stack or calibration.default_stack
    year = workload.software.released_year or calibration.default_year
    situation = Situation(
        accelerator=accelerator, precisions=precisions, stack=stack, released_year=year,
        experts=routed_experts(workload.transformer),
    )  # fmt: skip
    engine = calibration.engine(stack)
    operators = cached_operators(workload.transformer, precisions, tuple(plans))
    chunk = float(workload.chunked_prefill_tokens or engine.chunk_tokens)
    memory = memory_of(workload, accelerator, operators, engine)
    mean = workload.input_tokens.mean + engine.admitted_output_share * workload.output_tokens.mean
    room = admitted_sequences(operators, memory, np.full_like(operators.tensor, mean), engine.frees_windows)
    fits = fitting(workload, operators, memory, engine)
    if not fits.any():
        return no_memory(workload, accelerator, request, engine, operators, memory, plans, most_accelerators)
    batch_cap = float(request.max_batch or engine.max_sequences) * operators.data
    kept = np.flatnonzero(fits)
    operators = take(operators, kept)
    cap = np.maximum(np.minimum(room, batch_cap)[kept], 1.0)
    tokens = room[kept] * mean
    requests = _requests(workload, operators, chunk, calibration.burst(False), year < engine.mixes_prefill_since)
    return Replicas(
        situation=situation, engine=engine, plans=tuple(plans[i] for i in kept), operators=operators,
        costs=costs_of(operators, resolve_rates(calibration, situation, operators, fabric), lengths_of(requests)),
        memory=take(memory, kept), requests=requests,
        cap=np.floor(cap), cache_tokens=tokens,
        sequence_bytes=sequence_bytes(operators, lengths_of(requests).context) / operators.data,
        size=operators.tensor * operators.pipeline * operators.data,
        frontend_s=calibration.value("frontend_s", situation),
    )  # fmt: skip


def _requests(workload: ServingWorkload, o: Operators, chunk: float, burst: float, apart: bool) -> Requests:
    one = np.ones_like(o.tensor)
    hit = workload.prefix_cache_hit_rate
    prompt = workload.input_tokens.mean
    accepted = accepted_tokens(workload.speculative_tokens, workload.speculative_acceptance)
    closed = workload.concurrency is not None
    return Requests(
        prompt=one * max(prompt * (1.0 - hit), 1.0), cached=one * prompt * hit,
        output=one * workload.output_tokens.mean, chunk=chunk * o.data,
        draft=one * float(workload.speculative_tokens), accepted=one * accepted,
        together=one * (burst if closed else 0.0), apart=one * float(apart),
    )  # fmt: skip
