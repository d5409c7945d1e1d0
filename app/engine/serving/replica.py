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
from app.engine.serving.lengths import longest
from app.engine.serving.memory import ServingMemory, admitted_sequences, sequence_bytes, serving_memory
from app.engine.serving.operators import Floats, Operators, Precisions, build_operators, checkpoint_precisions
from app.engine.serving.plans import enumerate_plans, plan_arrays, routed_experts
from app.engine.serving.rates import resolve_rates
from app.engine.serving.regimes import Requests, lengths_of
from app.engine.serving.speculation import accepted_tokens
from app.engine.serving.step import Costs, costs_of
from app.engine.transformer import Transformer
from app.engine.workload import ServingPlanRequest, ServingWorkload

Plan = tuple[int, int, int, int]
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


@lru_cache(maxsize=512)
def cached_operators(t: Transformer, precisions: Precisions, plans: tuple[Plan, ...]) -> Operators:
    """Operators of a set of plans; they depend on the architecture only and are kept.

    Parameters
    ----------
    t : Transformer
    precisions : Precisions
    plans : tuple[Plan, ...]

    Returns
    -------
    Operators

    References
    ----------
    1. Pope et al. 2022.
    """
    return build_operators(t, precisions, plan_arrays(list(plans)))


def precisions_of(workload: ServingWorkload) -> Precisions:
    """Number formats of a workload, as published checkpoints use them.

    Parameters
    ----------
    workload : ServingWorkload

    Returns
    -------
    Precisions

    References
    ----------
    1. NVIDIA ModelOpt checkpoints, ``hf_quant_config.json``.
    """
    return checkpoint_precisions(
        workload.transformer, workload.weights_precision, workload.activations_precision, workload.kv_precision
    )


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
        return _no_plan(workload, accelerator, request, most_accelerators)
    stack = workload.software.stack or calibration.default_stack
    year = workload.software.released_year or calibration.default_year
    situation = Situation(
        accelerator=accelerator, precisions=precisions, stack=stack, released_year=year,
        experts=routed_experts(workload.transformer),
    )  # fmt: skip
    engine = calibration.engine(stack)
    operators = cached_operators(workload.transformer, precisions, tuple(plans))
    chunk = float(workload.chunked_prefill_tokens or engine.chunk_tokens)
    fraction = workload.memory_fraction or engine.memory_fraction
    memory = serving_memory(operators, engine, accelerator.memory_bytes, fraction, chunk)
    top = np.full_like(operators.tensor, longest(workload.input_tokens) + longest(workload.output_tokens))
    mean = workload.input_tokens.mean + engine.admitted_output_share * workload.output_tokens.mean
    room = admitted_sequences(operators, memory, np.full_like(top, mean), engine.frees_windows)
    fits = (admitted_sequences(operators, memory, top, engine.frees_windows) >= operators.data)[:, 0]
    if not fits.any():
        return _no_memory(workload, accelerator, operators, memory, top, plans, fraction)
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


def _no_plan(
    workload: ServingWorkload, accelerator: Accelerator, request: ServingPlanRequest, most: int | None
) -> Infeasible:
    free = enumerate_plans(workload.transformer, accelerator, ServingPlanRequest(), most)
    nearest = free[0] if free else (1, 1, 1, 1)
    return Infeasible(
        rule="divisibility",
        message=f"no serving plan on {accelerator.id} has tensor {request.tensor}, pipeline {request.pipeline}, expert "
        f"{request.expert} and data {request.data} within {most or 'any number of'} accelerators and divides the "
        "model's heads, layers and experts",
        numbers={"accelerators": float(most or 0)},
        nearest={"tensor": nearest[0], "pipeline": nearest[1], "expert": nearest[2], "data": nearest[3]},
    )


def _no_memory(
    workload: ServingWorkload, accelerator: Accelerator, o: Operators, memory: ServingMemory, top: Floats,
    plans: list[Plan], fraction: float,
) -> Infeasible:  # fmt: skip
    """Missing bytes of the plan that comes closest, and the nearest precision or width that would fit."""
    need = sequence_bytes(o, top)
    missing = (need - memory.cache)[:, 0]
    best = int(np.argmin(missing))
    resident = float(memory.weights[best, 0])
    available = fraction * accelerator.memory_bytes
    return Infeasible(
        rule="memory",
        message=(
            f"{workload.transformer.name} in {workload.weights_precision} does not fit {accelerator.id}: with "
            f"tensor {plans[best][0]}, pipeline {plans[best][1]}, data {plans[best][3]} weights take "
            f"{resident / 1e9:.1f} GB and one request of {top[best, 0]:.0f} tokens {need[best, 0] / 1e9:.2f} GB of "
            f"{available / 1e9:.1f} GB usable per accelerator; {missing[best] / 1e9:.1f} GB are missing"
        ),
        numbers={
            "missing_bytes": float(missing[best]), "available_bytes": available, "weights_bytes": resident,
            "cache_bytes_per_request": float(need[best, 0]), "workspace_bytes": float(memory.workspace[best, 0]),
        },
        nearest={"tensor": plans[best][0], "accelerators": int(np.prod([plans[best][i] for i in (0, 1, 3)]))},
    )  # fmt: skip
