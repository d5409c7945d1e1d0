"""The space of legal plans, grown dimension by dimension as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.engine.training.plans import PlanArrays, sharding_index
from app.engine.workload import TrainingPlanRequest

Array = NDArray[np.float64]
Columns = dict[str, Array]

# tensor parallelism beyond eight needs a wide scale-up domain (Narayanan et al. 2021, section 3.3)
TENSOR_DEGREES, WIDE_TENSOR_DEGREES = (1, 2, 3, 4, 6, 8), (16, 32)
CONTEXT_DEGREES = (1, 2, 4, 8, 16, 32)
# shortest piece of a sequence worth a context rank [token] (MLPerf Llama 2 70B LoRA: 8,192 tokens over eight ranks)
CONTEXT_PIECE_TOKENS = 1024
EXPERT_DEGREES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
# most pipeline stages; layer slots that may stay empty, and how many of them in all (Grattafiori et al. 2024: one layer
# less at each end)
PIPELINE_STAGES, EMPTY_SLOTS, SLOTS_BEYOND_DEPTH = 128, 4, 2
# tokens of a micro-batch beyond which matmuls gain nothing more (kernel curves: half_m below 160 tokens)
MICRO_BATCH_TOKENS = 131072
# what the time of a layer depends on
SHARDING_FIELDS = ("tensor", "context", "expert", "expert_tensor", "micro_batch")
# shares of divisibility a pinned dimension is excused from: a pinned plan is taken as stated
INTEGER_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the plans of one job on one cluster.

    Parameters
    ----------
    accelerators, depth, heads, experts, global_batch, sequence : int
    key_value_heads : int
        Zero where tensor parallelism divides none (latent attention, state spaces).
    widest_tensor : int
        Largest tensor degree beyond eight that stays in a scale-up domain.
    sequence_parallel, context_parallel : bool
        Whether the software shards norms along the sequence beside tensor parallelism; attention too.
    pipelined : bool
        Whether the stack's recipes use pipelines (compiled stacks on a torus shard fully instead).
    interleaved : bool
        Whether the stack's pipelines hold several chunks a stage.

    References
    ----------
    1. Narayanan et al. 2021, section 3.
    """

    accelerators: int
    depth: int
    heads: int
    experts: int
    global_batch: int
    sequence: int
    key_value_heads: int
    widest_tensor: int
    sequence_parallel: bool
    context_parallel: bool
    pipelined: bool
    interleaved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All legal plans of a job on so many accelerators: what does not depend on the hardware.

    Parameters
    ----------
    shardings : mapping of str to array, shape (shardings,)
        Combinations of what a layer's time depends on.
    plans : PlanArrays, shape (plans,)
        Recomputation is left at none: the least that fits is chosen afterwards, since it is also the fastest.
    parent : array of int, shape (plans,)
        The sharding of each plan.

    References
    ----------
    1. Narayanan et al. 2021, section 3.
    """

    shardings: Columns
    plans: PlanArrays
    parent: NDArray[np.intp]


def cross(columns: Columns, name: str, options: Sequence[float]) -> Columns:
    """Every combination of the columns so far with every option of one more.

    Parameters
    ----------
    columns : mapping of str to array
    name : str
    options : sequence of float

    Returns
    -------
    mapping of str to array

    References
    ----------
    1. Cartesian product by repetition.
    """
    size = next(iter(columns.values())).size if columns else 1
    grown = {key: np.repeat(value, len(options)) for key, value in columns.items()}
    grown[name] = np.tile(np.asarray(options, dtype=np.float64), size)
    return grown


def keep(columns: Columns, mask: NDArray[np.bool_]) -> Columns:
    """The combinations under a mask.

    Parameters
    ----------
    columns : Columns
    mask : NDArray[np.bool_]

    Returns
    -------
    Columns

    References
    ----------
    1. Boolean indexing, Harris et al. 2020.
    """
    return {key: value[mask] for key, value in columns.items()}


def _divides(whole: Array | float, part: Array) -> NDArray[np.bool_]:
    ratio = whole / part
    return np.asarray((ratio >= 1.0 - INTEGER_TOLERANCE) & (np.abs(ratio - np.round(ratio)) < INTEGER_TOLERANCE))


def shardings_of(limits: Limits, request: TrainingPlanRequest) -> Columns:
    """Combinations of tensor, context, expert, expert-tensor degree and micro-batch: what a layer's time depends on.

    Parameters
    ----------
    limits : Limits
    request : TrainingPlanRequest

    Returns
    -------
    mapping of str to array, shape (shardings,)

    References
    ----------
    1. Narayanan et al. 2021; Megatron-Core documentation (expert-tensor parallelism).
    """
    n = limits.accelerators
    tensor = [request.tensor] if request.tensor else _tensor_degrees(limits)
    columns = cross({}, "tensor", tensor)
    pieces = max(limits.sequence // CONTEXT_PIECE_TOKENS, 1) if limits.context_parallel else 1
    context = [request.context] if request.context else [c for c in CONTEXT_DEGREES if c <= pieces]
    columns = cross(columns, "context", context)
    columns = keep(columns, _divides(float(n), columns["tensor"] * columns["context"]))
    expert: Sequence[int] = (1,)
    if limits.experts:
        expert = [request.expert] if request.expert else [e for e in EXPERT_DEGREES if limits.experts % e == 0]
    columns = cross(columns, "expert", expert)
    if request.expert_tensor or not limits.experts:
        columns = cross(columns, "expert_tensor", [request.expert_tensor or 1])
    else:
        columns = cross(columns, "wide_experts", [0.0, 1.0])
        wide = columns.pop("wide_experts") > 0.0
        columns["expert_tensor"] = np.where(wide, columns["tensor"], 1.0)
        columns = keep(columns, ~(wide & (columns["tensor"] == 1.0)))
    columns = keep(columns, columns["expert"] * columns["expert_tensor"] <= n)
    batches = [request.micro_batch_sequences] if request.micro_batch_sequences else _micro_batches(limits)
    columns = cross(columns, "micro_batch", batches)
    if not request.micro_batch_sequences:
        small = columns["micro_batch"] * limits.sequence / columns["context"] <= MICRO_BATCH_TOKENS
        columns = keep(columns, small | (columns["micro_batch"] == 1.0))
        if not (request.context or request.data):
            # half the context degree and half the micro-batch on twice the replicas: the same tokens, batches and bytes
            # on every rank, and less traffic
            columns = keep(columns, (columns["context"] == 1.0) | (columns["micro_batch"] % 2.0 == 1.0))
    return columns


def _tensor_degrees(limits: Limits) -> list[int]:
    """Degrees that divide the heads, and either divide the key-value heads or are divided by them."""
    wide = [t for t in WIDE_TENSOR_DEGREES if t <= limits.widest_tensor]
    pairs = limits.key_value_heads
    return [
        t
        for t in (*TENSOR_DEGREES, *wide)
        if t == 1 or (limits.heads % t == 0 and (pairs == 0 or pairs % t == 0 or t % pairs == 0))
    ]


@lru_cache(maxsize=64)
def space_of(limits: Limits, request: TrainingPlanRequest) -> Space:
    """Every legal plan under the pinned fields.

    Parameters
    ----------
    limits : Limits
    request : TrainingPlanRequest

    Returns
    -------
    Space

    Notes
    -----
    Micro-batches of all replicas divide the global batch. Only where no plan does, plans are legal whose last round
    leaves replicas without work.

    References
    ----------
    1. Narayanan et al. 2021, section 3; Rajbhandari et al. 2020.
    """
    shardings = shardings_of(limits, request)
    n = float(limits.accelerators)
    columns = shardings | {"parent": np.arange(shardings["tensor"].size, dtype=np.float64)}
    pairs = _schedules(limits, request)
    columns = cross(columns, "schedule", [float(i) for i in range(len(pairs))])
    for i, name in enumerate(("pipeline", "virtual")):
        columns[name] = np.array([pair[i] for pair in pairs], dtype=np.float64)[columns["schedule"].astype(np.intp)]
    del columns["schedule"]
    ranks = columns["tensor"] * columns["context"] * columns["pipeline"]
    mask = _divides(n, ranks) & _divides(n / columns["pipeline"], columns["expert"] * columns["expert_tensor"])
    columns = keep(columns, mask)
    columns["data"] = n / (columns["tensor"] * columns["context"] * columns["pipeline"])
    at_once = columns["data"] * columns["micro_batch"]
    mask = at_once <= limits.global_batch + INTEGER_TOLERANCE
    if request.data:
        mask &= columns["data"] == request.data
    even = mask & _divides(float(limits.global_batch), at_once)
    columns = keep(columns, even if even.any() else mask)
    columns = cross(columns, "sharding", _sharding_options(request))
    if request.sharding is None:
        # full sharding beside a pipeline gathers weights for every micro-batch: Megatron and DeepSpeed refuse it
        columns = keep(columns, (columns["sharding"] < 3.0) | (columns["pipeline"] == 1.0))
    plans, parent = _finish(columns, limits, request)
    for array in (*shardings.values(), parent, *(getattr(plans, f.name) for f in fields(PlanArrays))):
        array.setflags(write=False)
    return Space(shardings=shardings, plans=plans, parent=parent)


def _schedules(limits: Limits, request: TrainingPlanRequest) -> list[tuple[int, int]]:
    """Pairs of stages and chunks a stage that leave few layer slots empty."""
    n, depth = limits.accelerators, limits.depth
    most = min(depth, n, PIPELINE_STAGES) if limits.pipelined else 1
    stages = [request.pipeline] if request.pipeline else [s for s in range(1, most + 1) if n % s == 0]
    if request.virtual_pipeline:
        several = [s for s in stages if s > 1 or request.virtual_pipeline == 1]
        return [(s, request.virtual_pipeline) for s in several or stages]
    found = []
    for s in stages:
        chunks = range(1, (depth + SLOTS_BEYOND_DEPTH) // s + 1) if limits.interleaved and s > 1 else (1,)
        found += [(s, v) for v in chunks if v == 1 or -(-depth // (s * v)) * s * v - depth <= EMPTY_SLOTS]
    return found


def _micro_batches(limits: Limits) -> list[int]:
    """Divisors of the global batch: what does not divide it leaves ranks without work in the last round."""
    most = max(MICRO_BATCH_TOKENS * CONTEXT_DEGREES[-1] // limits.sequence, 1)
    return [b for b in range(1, min(limits.global_batch, most) + 1) if limits.global_batch % b == 0]


def _sharding_options(request: TrainingPlanRequest) -> list[float]:
    # hybrid sharding takes the time of full sharding and more memory; what stage two saves in memory it would pay in
    # reductions of every micro-batch, which nothing measured here tells
    return [1.0, 3.0] if request.sharding is None else [float(sharding_index(request.sharding))]


def _finish(columns: Columns, limits: Limits, request: TrainingPlanRequest) -> tuple[PlanArrays, NDArray[np.intp]]:
    ones = np.ones_like(columns["tensor"])
    parallel = limits.sequence_parallel if request.sequence_parallel is None else request.sequence_parallel
    parent = columns.pop("parent").astype(np.intp)
    return (
        PlanArrays(
            **columns,
            recompute=0.0 * ones,
            sequence_parallel=np.where(columns["tensor"] > 1.0, float(parallel), 0.0),
            overlap=ones * float(request.overlap is not False),
            offload=ones * float(bool(request.cpu_offload)),
        ),
        parent,
    )


def sharding_plans(columns: Columns, index: NDArray[np.intp], parallel: float) -> PlanArrays:
    """Shardings as plans of one stage and one replica: all that the time of a layer depends on.

    Parameters
    ----------
    columns : mapping of str to array
    index : array of int
        Which of them.
    parallel : float [1]
        1 where sequence parallelism accompanies tensor parallelism.

    Returns
    -------
    PlanArrays

    References
    ----------
    1. Narayanan et al. 2021, section 2.3.
    """
    ones = np.ones(index.size)
    given = {name: columns[name][index] for name in SHARDING_FIELDS}
    others = {f.name: ones for f in fields(PlanArrays) if f.name not in given}
    others["sequence_parallel"] = np.where(given["tensor"] > 1.0, parallel, 0.0)
    return PlanArrays(**given, **others)
