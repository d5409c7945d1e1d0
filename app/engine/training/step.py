"""Time of one optimizer step of many plans, term by term."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from app.engine.collectives import gather_time, group_link_bytes_per_s, members_in_domain
from app.engine.training.architecture import ACTIVATION_BYTES, Architecture
from app.engine.training.calibration import Coefficients
from app.engine.training.hardware_arrays import SCALE_OUT_LATENCY_S, SCALE_UP_LATENCY_S, Hardware
from app.engine.training.layer import STREAM_SHARE, LayerTimes, absent
from app.engine.training.memory import Formats, local_parameters
from app.engine.training.pipeline import schedule_time
from app.engine.training.plans import PlanArrays

Array = NDArray[np.float64]
Real = float | Array

# gradients are accumulated in place: read and written, 16 bits, by every micro-batch's weight gradient
ACCUMULATE_BYTES = 4.0
# reads and writes of the optimizer per parameter: gradient 4, master weight, two moments 24, weight 2 (Adam, mixed
# precision; Rajbhandari et al. 2020, section 3.1)
OPTIMIZER_BYTES = 30.0
# backward work of the last micro-batch under which gradient traffic can hide (bucketed overlap, Li et al. 2020)
OVERLAP_SHARE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a step processes, as numbers or arrays of jobs.

    Parameters
    ----------
    sequence, document : float or array [token]
        Tokens of a sequence; of one of the documents packed into it, across which attention does not look.
    global_batch : float or array [sequence]
    weight_gradients : float or array
        1 where all weights get a gradient, 0 where they are frozen (adapters).
    extra_forwards : float or array
        Forward passes without gradients beside the trained one (reference and old policy of DPO, GRPO).
    heads : float or array
        Output losses (1 plus the multi-token-prediction layers).

    References
    ----------
    1. Rafailov et al. 2023 (DPO); Shao et al. 2024 (GRPO); Hu et al. 2021 (LoRA).
    """

    sequence: Real
    document: Real
    global_batch: Real
    weight_gradients: Real
    extra_forwards: Real
    heads: Real


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Seconds of one step by cause, shape (plans,); they add up to the step.

    Parameters
    ----------
    matmul, attention, elementwise, head, recompute : array [s]
        Computation, as the fullest accelerator does it.
    tensor, context, expert, pipeline, data : array [s]
        Communication that computation does not hide.
    host : array [s]
        Waiting for kernel launches.
    imbalance, bubble : array [s]
        Waiting for the fullest stage; pipeline fill and drain.
    optimizer, other : array [s]
        Optimizer; data fetch, logging, and jitter between accelerators.

    References
    ----------
    1. Isaev et al. 2023 (Calculon), figure 3 (terms of a step).
    """

    matmul: Array
    attention: Array
    elementwise: Array
    head: Array
    recompute: Array
    tensor: Array
    context: Array
    expert: Array
    pipeline: Array
    data: Array
    host: Array
    imbalance: Array
    bubble: Array
    optimizer: Array
    other: Array

    @property
    def total(self) -> Array:
        """The step [s]."""
        return np.asarray(sum(getattr(self, f.name) for f in fields(self)), dtype=np.float64)


def step_times(
    a: Architecture, p: PlanArrays, layers: LayerTimes, job: Job, hw: Hardware, c: Coefficients, formats: Formats
) -> StepTimes:
    """Time of a step.

    Parameters
    ----------
    a : Architecture
    p : PlanArrays, shape (plans,)
    layers : LayerTimes, shape (plans,)
    job : Job
    hw : Hardware
    c : Coefficients
    formats : Formats

    Returns
    -------
    StepTimes, shape (plans,)

    References
    ----------
    1. Narayanan et al. 2021; Korthikanti et al. 2022; Rajbhandari et al. 2020; Isaev et al. 2023.
    """
    terms = micro_batch_terms(a, p, layers, job, hw, c)
    head = head_time(layers, job)
    batches = micro_batches(p, job)
    stack = sum(terms.values())
    work, imbalance, bubble = schedule_time(stack / a.depth, head, a.depth, p.pipeline, p.virtual, batches)
    spread = batches / p.pipeline
    sent = ACTIVATION_BYTES * p.micro_batch * job.sequence / p.context * a.hidden
    sent = sent / np.where(p.sequence_parallel > 0.0, p.tensor, 1.0)
    beside = p.tensor * p.context * p.data * p.pipeline <= hw.domain
    link = np.where(beside, hw.scale_up_bytes_per_s * c.scale_up_share, hw.scale_out_bytes_per_s * c.scale_out_share)
    hops = 2.0 * batches * p.virtual * (p.pipeline > 1.0)
    pipeline = c.pipeline_exposed * hops * (sent / link + SCALE_OUT_LATENCY_S)
    data, optimizer = _data_parallel(a, p, batches, work / batches, job, hw, c, formats)
    sums = {name: spread * value for name, value in terms.items()}
    partial = work + imbalance + bubble + pipeline + data + optimizer
    doublings = np.maximum(np.log2(hw.accelerators / 8.0), 0.0)
    other = c.step_fixed_s + c.scale_loss * doublings * partial
    return StepTimes(
        head=spread * head,
        pipeline=pipeline,
        data=data,
        imbalance=imbalance,
        bubble=bubble,
        optimizer=optimizer,
        other=other,
        **sums,
    )


def head_time(layers: LayerTimes, job: Job) -> Real:
    """Output projections and losses of one micro-batch, forward and backward.

    Parameters
    ----------
    layers : LayerTimes, shape (plans,)
    job : Job

    Returns
    -------
    float or array [s]

    References
    ----------
    1. Narayanan et al. 2021, section 2.2 (the last stage).
    """
    passes = 2.0 + job.weight_gradients + job.extra_forwards
    return (layers.head * passes + layers.head_memory) * job.heads


def micro_batches(p: PlanArrays, job: Job) -> Array:
    """Micro-batches of one replica in a step; the last round counts in full.

    Parameters
    ----------
    p : PlanArrays, shape (plans,)
    job : Job

    Returns
    -------
    array

    References
    ----------
    1. Narayanan et al. 2021, section 2.
    """
    return np.asarray(np.maximum(np.ceil(job.global_batch / (p.data * p.micro_batch) - 1e-9), 1.0))


def micro_batch_terms(
    a: Architecture, p: PlanArrays, t: LayerTimes, job: Job, hw: Hardware, c: Coefficients
) -> dict[str, Array]:
    """Seconds of one micro-batch through all layers, forward and backward, by cause.

    Parameters
    ----------
    a : Architecture
    p : PlanArrays, shape (plans,)
    t : LayerTimes, shape (plans,)
    job : Job
    hw : Hardware
    c : Coefficients

    Returns
    -------
    mapping of str to array [s]

    References
    ----------
    1. Korthikanti et al. 2022 (what recomputation repeats); Isaev et al. 2023.
    """
    del hw
    full = np.clip(p.recompute - 1.0, 0.0, 1.0)
    selective = np.minimum(p.recompute, 1.0) - full
    again = job.extra_forwards + full
    multiply = t.matmul + t.experts
    backward = 1.0 + job.weight_gradients
    compute = multiply + t.attention + t.elementwise
    unfused = selective * (1.0 - c.fused_attention) * t.attention
    light = selective * 0.3 * t.elementwise
    passes = 2.0 + again
    terms = {
        "matmul": multiply * (1.0 + backward),
        "attention": t.attention + t.attention_backward,
        "elementwise": t.elementwise + t.elementwise_backward,
        "recompute": compute * again + unfused + light,
        "tensor": c.tensor_exposed * t.tensor * passes,
        "context": c.context_exposed * t.context * (passes + 1.0),
        "expert": c.expert_exposed * t.experts_traffic * passes,
    }
    device = np.asarray(sum(terms.values()))
    # launches run ahead of the device and only show where it is faster; a layer with experts waits for its token counts
    # in between, which nothing hides
    launches = c.host_layer_s * a.depth * passes / 2.0
    held = np.maximum(a.experts / p.expert, 1.0)
    waits = c.host_moe_s * (1.0 + c.host_expert * held) * a.moe_depth * passes / 2.0
    ratio = launches / device
    square = ratio * ratio
    terms["host"] = device * (np.sqrt(np.sqrt(1.0 + square * square)) - 1.0) + waits
    return {name: np.asarray(value) for name, value in terms.items()}


def _data_parallel(
    a: Architecture,
    p: PlanArrays,
    batches: Array,
    batch_s: Array,
    job: Job,
    hw: Hardware,
    c: Coefficients,
    formats: Formats,
) -> tuple[Array, Array]:
    dense, experts = local_parameters(a, p)
    replicas = p.data * p.context
    expert_replicas = np.maximum(p.tensor * replicas / (p.expert * p.expert_tensor), 1.0)
    trained = formats.trained_share
    stream = hw.memory_bytes_per_s * STREAM_SHARE
    # reduce-scatter of gradients, all-gather of weights: once a step, or every micro-batch when sharded fully
    once = dense * _per_byte(p.tensor, replicas, hw, c)
    if not absent(a.moe_depth):
        once = once + experts * _per_byte(p.expert, expert_replicas, hw, c)
    fully = p.sharding >= 3.0
    step_bytes = (formats.gradients + ACTIVATION_BYTES) * trained
    gathers = 2.0 + np.clip(p.recompute - 1.0, 0.0, 1.0) + job.extra_forwards
    batch_bytes = gathers * (ACTIVATION_BYTES * trained + formats.frozen * (1.0 - trained)) + ACTIVATION_BYTES * trained
    plain = once * step_bytes
    window = OVERLAP_SHARE * batch_s * p.overlap
    exposed = np.maximum(plain * np.where(p.overlap > 0.0, c.data_exposed, 1.0), plain - window)
    shards = once * batch_bytes
    fully_exposed = batches * np.maximum(c.shard_exposed * shards, shards - OVERLAP_SHARE * batch_s)
    accumulate = job.weight_gradients * ACCUMULATE_BYTES * (dense + experts) / stream * batches
    share = np.where(p.sharding >= 1.0, dense / replicas + experts / expert_replicas, dense + experts)
    update = OPTIMIZER_BYTES * trained * share / stream
    # an offloaded optimizer crosses the host link with gradients and weights, and updates at host memory speed
    update = update + p.offload * trained * share * OPTIMIZER_BYTES / HOST_BYTES_PER_S
    return np.where(fully, fully_exposed, exposed), update + accumulate


# memory bandwidth one accelerator's share of a two-socket host reaches (eight channels of DDR5-4800 over four parts)
HOST_BYTES_PER_S = 5.0e10


def _per_byte(stride: Real, replicas: Array, hw: Hardware, c: Coefficients) -> Array:
    inside = np.minimum(members_in_domain(replicas, stride, hw.domain), replicas)
    scale_up = hw.scale_up_bytes_per_s * c.scale_up_share
    return np.asarray(
        gather_time(
            1.0,
            replicas,
            inside,
            scale_up_bytes_per_s=group_link_bytes_per_s(scale_up, inside, hw.domain, hw.mesh),
            scale_out_bytes_per_s=hw.scale_out_bytes_per_s * c.scale_out_share,
            scale_up_latency_s=0.0 * SCALE_UP_LATENCY_S,
            scale_out_latency_s=0.0 * SCALE_OUT_LATENCY_S,
        )
    )
