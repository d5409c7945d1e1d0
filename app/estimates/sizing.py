"""How many accelerators are worth trying when nobody said: enough to hold the state, and enough to finish in time.

These are first guesses that choose which clusters the engine is asked about; what is quoted is the engine's answer.
"""

import math

from app.engine.accounting import count_parameters
from app.engine.hardware import Accelerator
from app.engine.precision import FORMATS
from app.engine.workload import TrainingWorkload
from app.estimates.hardware import Hardware

SECONDS_PER_HOUR = 3600.0
# Bytes of state per parameter: BF16 weights and gradients, FP32 master weights and two Adam moments (Rajbhandari et
# al. 2020, ZeRO, section 3.1); an adapter keeps the base model only.
TRAINED_STATE_BYTES = 16.0
# The least state of mixed-precision Adam: BF16 weights as the only copy beside two FP32 moments and FP32 master weights
# sharded away are still twelve bytes a parameter over the whole cluster.
LEAST_STATE_BYTES = 12.0
# Six FLOPs per active parameter and token (Kaplan et al. 2020), four where the base is frozen.
FLOPS_FULL, FLOPS_FROZEN = 6.0, 4.0
# Mid-range model FLOPs utilisation of published runs (Narayanan et al. 2021; Grattafiori et al. 2024: 0.38 to 0.43).
GUESSED_UTILIZATION = 0.38
# Share of memory that state may take in the guess; activations and reserve need the rest.
STATE_SHARE = 0.8
# Without a deadline, clusters are sized to finish in about a month.
DEFAULT_HORIZON_HOURS = 720.0
# Without a deadline, up to three such months still rank, in case the guess of the speed was off.
PATIENCE = 3.0
# How far the guessed speed may lie below the engine's.
GUESS_SLACK = 2.0
# Rungs above the guess: a cluster is dearer the larger it is beyond the sizes whose state is sharded well.
TOP_OVER_GUESS = 2
LARGEST_CLUSTER = 32_768


def smallest_holding(workload: TrainingWorkload, accelerator: Accelerator) -> int:
    """Accelerators that hold the training state, spread evenly."""
    parameters = float(count_parameters(workload.transformer).total)
    if workload.adapter is not None:
        per_parameter = FORMATS[workload.adapter.base_precision].bytes_per_element
    else:
        per_parameter = TRAINED_STATE_BYTES
    return max(1, math.ceil(parameters * per_parameter / (STATE_SHARE * accelerator.memory_bytes)))


def state_bytes_at_least(workload: TrainingWorkload) -> float:
    """Bytes no plan can do without on the accelerators: weights, gradients and optimizer, nothing else [byte]."""
    parameters = float(count_parameters(workload.transformer).total)
    if workload.adapter is not None:
        return parameters * FORMATS[workload.adapter.base_precision].bytes_per_element
    return parameters * LEAST_STATE_BYTES


def enough_for(workload: TrainingWorkload, accelerator: Accelerator, tokens: float, hours: float) -> int:
    """Accelerators that train so many tokens in so many hours at the guessed utilisation."""
    peak = _peak(workload, accelerator)
    flops = FLOPS_FROZEN if workload.adapter is not None else FLOPS_FULL
    work = flops * float(count_parameters(workload.transformer).active) * tokens
    return max(1, math.ceil(work / (GUESSED_UTILIZATION * peak * hours * SECONDS_PER_HOUR)))


def _peak(workload: TrainingWorkload, accelerator: Accelerator) -> float:
    peaks = accelerator.dense_peaks
    asked = getattr(peaks, FORMATS[workload.precision].peak, None)
    return float(asked or peaks.bf16 or peaks.fp16 or peaks.fp32 or 1.0)


def rounded_up(accelerators: int, per_node: int) -> int:
    """The next power of two inside a node, then whole nodes by powers of two: counts that plans divide."""
    if accelerators <= per_node:
        return min(per_node, 1 << (accelerators - 1).bit_length())
    # whole-number division: beyond 2**53 a float would round down, and a ladder of such sizes never ends
    nodes = -(-accelerators // per_node)
    return per_node * (1 << (nodes - 1).bit_length())


def counts_to_try(
    workload: TrainingWorkload,
    hardware: Hardware,
    tokens: float,
    deadline_hours: float | None,
    pinned: int | None,
    divisor: int,
    least_top: int,
) -> list[int]:
    """Cluster sizes to ask the engine about, smallest first: one ladder of doublings, with a deadline and without.

    A deadline only cuts sizes off the bottom of the ladder and adds to its top, so no constraint finds a cheaper size
    that the free question never saw.

    Parameters
    ----------
    deadline_hours : float or None
        None = up to :data:`PATIENCE` times a month.
    pinned : int or None
        The caller's count, then the only one.
    divisor : int
        Product of the pinned plan degrees: a cluster is a multiple of it.
    least_top : int
        The ladder goes up to this many accelerators at least.
    """
    if pinned is not None:
        return [pinned]
    per_node = hardware.accelerator.accelerators_per_node
    longest = deadline_hours or PATIENCE * DEFAULT_HORIZON_HOURS
    holding = smallest_holding(workload, hardware.accelerator)
    # the guess of the speed may be off by two: one rung below it may still be in time
    slowest = enough_for(workload, hardware.accelerator, tokens, GUESS_SLACK * longest)
    usual = enough_for(workload, hardware.accelerator, tokens, min(longest, DEFAULT_HORIZON_HOURS))
    count = rounded_up(max(holding, slowest), per_node)
    top = max(least_top, TOP_OVER_GUESS * rounded_up(max(holding, usual), per_node))
    most = min(LARGEST_CLUSTER, hardware.largest_count or LARGEST_CLUSTER)
    counts = {_multiple(count, divisor)}
    while count < top:
        count = rounded_up(count + 1, per_node)
        counts.add(_multiple(count, divisor))
    kept = sorted(c for c in counts if c <= most)
    return kept or [_multiple(most, divisor) if divisor <= most else divisor]


def _multiple(count: int, divisor: int) -> int:
    return count if count % divisor == 0 else divisor * -(-count // divisor)
