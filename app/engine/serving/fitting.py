"""Whether a model fits: the plans that hold it, and what would where none does."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Accelerator
from app.engine.outcome import Infeasible
from app.engine.precision import FORMATS
from app.engine.serving.calibration import EngineConventions
from app.engine.serving.lengths import longest
from app.engine.serving.memory import ServingMemory, admitted_sequences, sequence_bytes, serving_memory
from app.engine.serving.operators import Floats, Operators, Precisions, build_operators, checkpoint_precisions
from app.engine.serving.plans import enumerate_plans, plan_arrays
from app.engine.transformer import Transformer
from app.engine.workload import ServingPlanRequest, ServingWorkload

Plan = tuple[int, int, int, int]
# formats to try where the asked one is too large, widest first; each has curves of its own
NARROWER = ("fp8", "int8", "nvfp4", "int4")


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


def memory_of(
    workload: ServingWorkload, accelerator: Accelerator, operators: Operators, engine: EngineConventions
) -> ServingMemory:
    """What the workload's settings leave of the accelerator's memory, by plan.

    Parameters
    ----------
    workload : ServingWorkload
    accelerator : Accelerator
    operators : Operators
    engine : EngineConventions

    Returns
    -------
    ServingMemory

    References
    ----------
    1. Kwon et al. 2023.
    """
    chunk = float(workload.chunked_prefill_tokens or engine.chunk_tokens)
    fraction = workload.memory_fraction or engine.memory_fraction
    return serving_memory(operators, engine, accelerator.memory_bytes, fraction, chunk)


def _longest_request(workload: ServingWorkload, operators: Operators) -> Floats:
    return np.full_like(operators.tensor, longest(workload.input_tokens) + longest(workload.output_tokens))


def fitting(
    workload: ServingWorkload, operators: Operators, memory: ServingMemory, engine: EngineConventions
) -> NDArray[np.bool_]:
    """Which plans hold the weights and one request of the longest length on every rank.

    Parameters
    ----------
    workload : ServingWorkload
    operators : Operators
    memory : ServingMemory
    engine : EngineConventions

    Returns
    -------
    array of bool (plans,)

    References
    ----------
    1. Kwon et al. 2023.
    """
    top = _longest_request(workload, operators)
    return np.asarray((admitted_sequences(operators, memory, top, engine.frees_windows) >= operators.data)[:, 0])


def _smallest(
    workload: ServingWorkload, accelerator: Accelerator, request: ServingPlanRequest, engine: EngineConventions,
    most: int | None,
) -> int | None:  # fmt: skip
    """Accelerators of the smallest replica that holds the weights and one request; None = none does."""
    plans = enumerate_plans(workload.transformer, accelerator, request, most)
    if not plans:
        return None
    operators = cached_operators(workload.transformer, precisions_of(workload), tuple(plans))
    fits = fitting(workload, operators, memory_of(workload, accelerator, operators, engine), engine)
    size = operators.tensor * operators.pipeline * operators.data
    return int(size[fits].min()) if fits.any() else None


def _narrower(
    workload: ServingWorkload, accelerator: Accelerator, request: ServingPlanRequest, engine: EngineConventions,
    most: int | None,
) -> str | None:  # fmt: skip
    """The widest narrower weight format the accelerator computes in that fits the accelerators at hand."""
    held = FORMATS[workload.weights_precision].bytes_per_element
    for name in NARROWER:
        known = getattr(accelerator.dense_peaks, FORMATS[name].peak) is not None
        if not known or FORMATS[name].bytes_per_element >= held:
            continue
        if _smallest(replace(workload, weights_precision=name), accelerator, request, engine, most):
            return name
    return None


def no_plan(
    workload: ServingWorkload, accelerator: Accelerator, request: ServingPlanRequest, most: int | None
) -> Infeasible:
    """Widths that divide nothing, and the smallest that would do.

    Parameters
    ----------
    workload : ServingWorkload
    accelerator : Accelerator
    request : ServingPlanRequest
    most : int or None

    Returns
    -------
    Infeasible

    References
    ----------
    1. Pope et al. 2022 (plans).
    """
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


def no_memory(
    workload: ServingWorkload, accelerator: Accelerator, request: ServingPlanRequest, engine: EngineConventions,
    o: Operators, memory: ServingMemory, plans: list[Plan], most: int | None,
) -> Infeasible:  # fmt: skip
    """Missing bytes of the plan that comes closest, and the nearest count and format that fit.

    Parameters
    ----------
    workload : ServingWorkload
    accelerator : Accelerator
    request : ServingPlanRequest
    engine : EngineConventions
    o : Operators
    memory : ServingMemory
    plans : list of Plan
    most : int or None
        Accelerators at hand.

    Returns
    -------
    Infeasible

    References
    ----------
    1. Kwon et al. 2023.
    """
    top = _longest_request(workload, o)
    need = sequence_bytes(o, top)
    missing = (need - memory.cache)[:, 0]
    best = int(np.argmin(missing))
    resident = float(memory.weights[best, 0])
    available = (workload.memory_fraction or engine.memory_fraction) * accelerator.memory_bytes
    enough = _smallest(workload, accelerator, request, engine, None)
    narrower = _narrower(workload, accelerator, request, engine, most)
    return Infeasible(
        rule="memory",
        message=(
            f"{workload.transformer.name} in {workload.weights_precision} does not fit {accelerator.id}: with "
            f"tensor {plans[best][0]}, pipeline {plans[best][1]}, data {plans[best][3]} weights take "
            f"{resident / 1e9:.1f} GB and one request of {top[best, 0]:.0f} tokens {need[best, 0] / 1e9:.2f} GB of "
            f"{available / 1e9:.1f} GB usable per accelerator; {missing[best] / 1e9:.1f} GB are missing"
            + (f"; {enough} accelerators hold it" if enough else "")
            + (f"; {narrower} weights fit" if narrower else "")
        ),
        numbers={
            "missing_bytes": float(missing[best]), "available_bytes": available, "weights_bytes": resident,
            "cache_bytes_per_request": float(need[best, 0]), "workspace_bytes": float(memory.workspace[best, 0]),
        },
        nearest=({"accelerators": enough} if enough else {}) | ({"weights": narrower} if narrower else {}),
    )  # fmt: skip
