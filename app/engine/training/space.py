"""The space of legal plans, grown dimension by dimension as arrays."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.training.plans import PlanArrays, sharding_index
from app.engine.workload import TrainingPlanRequest

Array = NDArray[np.float64]
Columns = dict[str, Array]

# tensor parallelism beyond eight crosses nodes or starves the matmuls (Narayanan et al. 2021, section 3.3)
TENSOR_DEGREES = (1, 2, 4, 8)
CONTEXT_DEGREES = (1, 2, 4, 8, 16, 32)
# shortest piece of a sequence worth a context rank [token] (MLPerf Llama 2 70B LoRA: 8,192 tokens over eight ranks)
CONTEXT_PIECE_TOKENS = 1024
EXPERT_DEGREES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
VIRTUAL_DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 20, 24)
# what the coarse pass tries of them: enough to tell the degrees apart, which is what it is for
COARSE_VIRTUAL_DEGREES, COARSE_EXPERT_DEGREES = (1, 4), (1, 4, 16, 64, 256)
# tokens of a micro-batch beyond which matmuls gain nothing more (kernel curves: half_m below 160 tokens)
MICRO_BATCH_TOKENS = 131072
# shares of divisibility a pinned dimension is excused from: a pinned plan is taken as stated
INTEGER_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What bounds the plans of one job on one cluster.

    Parameters
    ----------
    accelerators, depth, heads, experts, global_batch, sequence, domain : int
    sequence_parallel, context_parallel : bool
        Whether the software shards norms along the sequence beside tensor parallelism; attention too.
    adapters : bool
        Whether only adapters are trained (no gradient traffic to shard for).
    pipelined : bool
        Whether the stack's recipes use pipelines (compiled stacks on a torus shard fully instead).
    interleaved : bool
        Whether the stack's pipelines hold several chunks a stage.
    coarse : bool
        Whether to try few micro-batches and chunks only, to find the degrees.

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
    domain: int
    sequence_parallel: bool
    context_parallel: bool
    adapters: bool
    pipelined: bool
    interleaved: bool
    coarse: bool = False


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
    tensor = [request.tensor] if request.tensor else [t for t in TENSOR_DEGREES if limits.heads % t == 0 or t == 1]
    columns = cross({}, "tensor", tensor)
    pieces = max(limits.sequence // CONTEXT_PIECE_TOKENS, 1) if limits.context_parallel else 1
    context = [request.context] if request.context else [c for c in CONTEXT_DEGREES if c <= pieces]
    columns = cross(columns, "context", context)
    columns = keep(columns, _divides(float(n), columns["tensor"] * columns["context"]))
    expert: Sequence[int] = (1,)
    if limits.experts:
        expert = (
            [request.expert]
            if request.expert
            else [e for e in (COARSE_EXPERT_DEGREES if limits.coarse else EXPERT_DEGREES) if limits.experts % e == 0]
        )
    columns = cross(columns, "expert", expert)
    if request.expert_tensor or not limits.experts or limits.coarse:
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


def plans_of(limits: Limits, request: TrainingPlanRequest, shardings: Columns) -> tuple[PlanArrays, NDArray[np.intp]]:
    """Legal plans over the given shardings, and the sharding each one uses.

    Parameters
    ----------
    limits : Limits
    request : TrainingPlanRequest
    shardings : mapping of str to array

    Returns
    -------
    (PlanArrays, array of int), shape (plans,)
        Recomputation is left at none: the least that fits is chosen afterwards, since it is also the fastest.

    References
    ----------
    1. Narayanan et al. 2021, section 3; Rajbhandari et al. 2020.
    """
    n, depth = float(limits.accelerators), limits.depth
    columns = shardings | {"parent": np.arange(shardings["tensor"].size, dtype=np.float64)}
    stages = [request.pipeline] if request.pipeline else (_stages(limits) if limits.pipelined else [1])
    columns = cross(columns, "pipeline", stages)
    ranks = columns["tensor"] * columns["context"] * columns["pipeline"]
    columns = keep(columns, _divides(n, ranks))
    columns["data"] = n / (columns["tensor"] * columns["context"] * columns["pipeline"])
    mask = _divides(n / columns["pipeline"], columns["expert"] * columns["expert_tensor"])
    if request.data:
        mask &= columns["data"] == request.data
    at_once = columns["data"] * columns["micro_batch"]
    mask &= at_once <= limits.global_batch + INTEGER_TOLERANCE
    if not request.micro_batch_sequences:
        mask &= _divides(float(limits.global_batch), at_once)
    columns = keep(columns, mask)
    if request.virtual_pipeline:
        columns = cross(columns, "virtual", [request.virtual_pipeline])
    else:
        columns = cross(columns, "virtual", _virtual_options(limits))
        chunks = columns["pipeline"] * columns["virtual"]
        slack = np.ceil(depth / chunks) * chunks - depth
        sensible = (columns["pipeline"] > 1.0) & (chunks <= depth + 2) & (slack <= 4.0)
        columns = keep(columns, sensible | (columns["virtual"] == 1.0))
    columns = cross(columns, "sharding", _sharding_options(limits, request))
    free = request.sharding is None
    if free:
        # full sharding beside a pipeline gathers weights once per micro-batch and stage: never the best plan
        columns = keep(columns, (columns["sharding"] < 3.0) | (columns["pipeline"] == 1.0))
    return _finish(columns, limits, request)


def _virtual_options(limits: Limits) -> Sequence[int]:
    if not limits.interleaved:
        return (1,)
    return COARSE_VIRTUAL_DEGREES if limits.coarse else VIRTUAL_DEGREES


def _micro_batches(limits: Limits) -> list[int]:
    """Divisors of the global batch: what does not divide it leaves ranks without work in the last round."""
    most = max(MICRO_BATCH_TOKENS * CONTEXT_DEGREES[-1] // limits.sequence, 1)
    found = [b for b in range(1, min(limits.global_batch, most) + 1) if limits.global_batch % b == 0]
    return [b for b in found if b & (b - 1) == 0] if limits.coarse else found


def _stages(limits: Limits) -> list[int]:
    n = limits.accelerators
    if limits.coarse:
        return [s for s in range(1, min(limits.depth, n, 128) + 1) if n % s == 0 and s & (s - 1) == 0] or [1]
    return [s for s in range(1, min(limits.depth, n, 128) + 1) if n % s == 0]


def _sharding_options(limits: Limits, request: TrainingPlanRequest) -> list[float]:
    if request.sharding is not None:
        return [float(sharding_index(request.sharding))]
    options = [1.0, 3.0]
    if limits.accelerators > limits.domain > 1 and not limits.coarse:
        options.append(4.0)
    return options


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
