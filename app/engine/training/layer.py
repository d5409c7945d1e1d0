"""Time of one micro-batch through all layers, for many shardings at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.collectives import all_to_all_time, gather_time, group_link_bytes_per_s, members_in_domain
from app.engine.kernels import attended_tokens, matmul_share, roofline_time, saturation
from app.engine.training.architecture import (
    ACTIVATION_BYTES,
    HIDDEN_PASSES_BACKWARD,
    HIDDEN_PASSES_FORWARD,
    Architecture,
)
from app.engine.training.calibration import Coefficients
from app.engine.training.hardware_arrays import SCALE_OUT_LATENCY_S, SCALE_UP_LATENCY_S, Hardware
from app.engine.training.plans import PlanArrays

Real = float | NDArray[np.float64]

# share of its bandwidth that streaming reaches on HBM (skinny GEMM rows above 140 MB: 0.72 to 0.88)
STREAM_SHARE = 0.8
# fused attention loses on short sequences and small heads: half speed at 384 tokens, at 80 of key plus value size
# (prefill rows of the kernels table, 512 to 16384 tokens, head sizes 64 and 128; 1.3 makes 128 + 128 the unit)
ATTENTION_HALF_TOKENS, ATTENTION_HALF_DIMS, ATTENTION_UNIT = 384.0, 80.0, 1.3125
# backward over forward of fused attention: five matmuls against two, one of them a recomputation (Dao 2022)
ATTENTION_BACKWARD = 2.5
# unfused attention writes and reads scores for scale, mask, softmax, dropout and the product (Korthikanti 2022)
UNFUSED_PASSES_FORWARD, UNFUSED_PASSES_BACKWARD = 8.0, 8.0
# expert permutation: read and write of each routed copy at dispatch and at combine
PERMUTE_PASSES = 4.0
# logits: written in 16 bits, read and written as fp32 for loss and gradient
LOGIT_BYTES_MOVED = 20.0
# half sizes above this are the cost of casting the operand, not of tiles: 2,100 to 4,100 in FP8 against 86 to 250 in
# BF16 (kernel curves)
CAST_HALF_N = 500.0
# tokens of one expert at half speed in grouped matmuls (balanced moe rows of the kernels table on H100 and B200, BF16:
# 0.34 to 0.47 of peak at 256 tokens, 0.55 to 0.66 at 1,024)
EXPERT_HALF_M = 200.0
# a cast reads two bytes and writes one, twice (row-wise and transposed copies, Transformer Engine)
CAST_BYTES = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTimes:
    """Seconds of one micro-batch over all layers (and the head), forward; arrays of shape (plans,).

    Parameters
    ----------
    matmul, experts, attention : array [s]
        Forward.
    attention_backward, elementwise, elementwise_backward : array [s]
        Memory-bound kernels, casts and permutation, forward and backward.
    tensor, context, experts_traffic : array [s]
        Communication of one forward pass, before anything hides it.
    head, head_memory : array [s]
        Output projection forward; loss and gradient of the logits, both ways.

    References
    ----------
    1. Narayanan et al. 2021; Korthikanti et al. 2022.
    """

    matmul: Real
    experts: Real
    attention: Real
    attention_backward: Real
    elementwise: Real
    elementwise_backward: Real
    tensor: Real
    context: Real
    experts_traffic: Real
    head: Real
    head_memory: Real


def layer_times(
    a: Architecture, p: PlanArrays, sequence: Real, document: Real, hw: Hardware, c: Coefficients
) -> LayerTimes:
    """Forward times of one micro-batch on one tensor-parallel group of ranks.

    Parameters
    ----------
    a : Architecture
        Operator axes first; last axis of one or of jobs.
    p : PlanArrays, shape (plans,)
    sequence, document : float or array [token]
        As in :class:`app.engine.training.step.Job`.
    hw : Hardware
    c : Coefficients

    Returns
    -------
    LayerTimes, shape (plans,)

    Notes
    -----
    Tokens of a rank are ``micro_batch * sequence / context``; replicated matmuls run on a tensor rank's share of them.

    References
    ----------
    1. Narayanan et al. 2021, section 2.3; Korthikanti et al. 2022, section 4; DeepSeek-AI 2024, section 3.2.
    """
    tokens = p.micro_batch * sequence / p.context
    matmul, experts = _matmuls(a, p, tokens, hw, c)
    attention, attention_backward = _attention(a, p, tokens, document, hw, c)
    forward, backward = _elementwise(a, p, tokens, hw, c)
    tensor, context, traffic = _traffic(a, p, tokens, hw, c)
    head = 2.0 * tokens * a.hidden * a.vocab / p.tensor
    head_share = c.head_max_share * saturation(tokens, c.curve_half_m)
    return LayerTimes(
        matmul=matmul,
        experts=experts,
        attention=attention,
        attention_backward=attention_backward,
        elementwise=forward,
        elementwise_backward=backward,
        tensor=tensor,
        context=context,
        experts_traffic=traffic,
        head=c.slowdown * head / (hw.wide_flops_per_s * head_share),
        head_memory=LOGIT_BYTES_MOVED * tokens * a.vocab / p.tensor / (hw.memory_bytes_per_s * STREAM_SHARE),
    )


def absent(values: Real) -> bool:
    """Whether a degree is one (a count zero) in all plans, so that its terms need not be computed.

    Parameters
    ----------
    values : float or array [1]

    Returns
    -------
    bool

    References
    ----------
    1. Harris et al. 2020 (array programming): a test of one array is cheaper than a dozen operations on it.
    """
    return not np.any(np.asarray(values))


def _matmuls(a: Architecture, p: PlanArrays, tokens: Real, hw: Hardware, c: Coefficients) -> tuple[Real, Real]:
    dense_only = absent(a.moe_depth)
    routed = a.expert > 0.0
    sharded = p.tensor if dense_only else np.where(routed, p.expert_tensor, p.tensor)
    n = a.n / (1.0 + a.splits_n * (sharded - 1.0))
    k = a.k / (1.0 + a.splits_k * (sharded - 1.0))
    whole = (a.splits_n + a.splits_k) > 0.0
    own = tokens / p.tensor
    m = np.where(whole, tokens, own)
    groups: Real = 1.0
    if not dense_only:
        groups = np.where(routed, np.maximum(a.stored / p.expert, 1.0), 1.0)
        m = np.where(routed, own * p.expert_tensor * a.active / groups, m)
    # what a cast costs falls with the outputs of one input: with sequence parallelism each rank casts its share of the
    # tokens before they are gathered, so that all ranks' outputs count
    cast_once = (c.curve_half_n > CAST_HALF_N) & (p.sequence_parallel > 0.0)
    outputs = np.where(cast_once, a.n, n)
    half_m: Real = c.curve_half_m
    if not dense_only:
        half_m = np.where(routed, np.maximum(half_m, EXPERT_HALF_M), half_m)
    share = matmul_share(
        m, outputs, k, max_share=c.curve_max_share, half_m=half_m, half_n=c.curve_half_n, half_k=c.curve_half_k
    )
    rate = np.where(a.compressed > 0.0, hw.flops_per_s, hw.wide_flops_per_s) * c.matmul_share
    weight, moved = n * k, m * (n + k)
    time = roofline_time(
        2.0 * m * weight / (rate * share), ACTIVATION_BYTES * (weight + moved) / (hw.memory_bytes_per_s * STREAM_SHARE)
    )
    time = time * groups * a.layers
    if dense_only:
        return c.slowdown * np.sum(time, axis=0), 0.0 * p.tensor
    dense = np.sum(np.where(routed, 0.0, time), axis=0)
    experts = np.sum(np.where(routed, time, 0.0), axis=0)
    return c.slowdown * dense, c.slowdown * experts / c.expert_share


def _attention(
    a: Architecture, p: PlanArrays, tokens: Real, document: Real, hw: Hardware, c: Coefficients
) -> tuple[Real, Real]:
    keys = attended_tokens(document, a.attention_window)
    dims = a.attention_heads * a.attention_dims
    shape = saturation(a.attention_dims, ATTENTION_HALF_DIMS) * ATTENTION_UNIT
    core = np.sum(2.0 * a.attention_layers * dims * keys / shape, axis=0) / saturation(document, ATTENTION_HALF_TOKENS)
    work = tokens / p.tensor * (core + a.scan_flops * c.scan)
    fused = c.slowdown * work / (hw.wide_flops_per_s * c.attention_share)
    if not absent(1.0 - c.fused_attention):
        return _with_scores(a, p, tokens, document, hw, c, fused)
    return fused, ATTENTION_BACKWARD * fused


def _with_scores(
    a: Architecture, p: PlanArrays, tokens: Real, document: Real, hw: Hardware, c: Coefficients, fused: Real
) -> tuple[Real, Real]:
    scores = np.sum(a.attention_layers * a.attention_heads, axis=0) * document * tokens / p.tensor
    unfused = (1.0 - c.fused_attention) * ACTIVATION_BYTES * scores / (hw.memory_bytes_per_s * STREAM_SHARE)
    backward = np.where(c.fused_attention > 0.0, ATTENTION_BACKWARD, 2.0)
    return fused + UNFUSED_PASSES_FORWARD * unfused, backward * fused + UNFUSED_PASSES_BACKWARD * unfused


def _elementwise(a: Architecture, p: PlanArrays, tokens: Real, hw: Hardware, c: Coefficients) -> tuple[Real, Real]:
    own = tokens / p.tensor
    hidden = a.hidden_passes * np.where(p.sequence_parallel > 0.0, own, tokens)
    sharded = (a.sharded_elements + a.expert_elements) * own
    permuted = PERMUTE_PASSES * c.permute * a.routed_elements * own * p.expert_tensor
    cast = (
        0.5
        * CAST_BYTES
        * c.quantize
        * ((a.quantized_elements - a.quantized_hidden) * own + a.quantized_hidden * tokens)
    )
    rate = hw.memory_bytes_per_s * STREAM_SHARE
    forward = ACTIVATION_BYTES * (c.elementwise * (HIDDEN_PASSES_FORWARD * hidden + sharded) + permuted) + cast
    backward = ACTIVATION_BYTES * (c.elementwise * (HIDDEN_PASSES_BACKWARD * hidden + 2.0 * sharded) + permuted) + cast
    return c.slowdown * forward / rate, c.slowdown * backward / rate


def _traffic(a: Architecture, p: PlanArrays, tokens: Real, hw: Hardware, c: Coefficients) -> tuple[Real, Real, Real]:
    scale_up, scale_out = hw.scale_up_bytes_per_s * c.scale_up_share, hw.scale_out_bytes_per_s * c.scale_out_share
    nothing: Real = 0.0 * p.tensor
    tensor, context, experts = nothing, nothing, nothing
    if not absent(p.tensor - 1.0):
        tensor = _tensor_traffic(a, p, tokens, hw, scale_up, scale_out)
    if not absent(p.context - 1.0):
        exchanged = ACTIVATION_BYTES * tokens * a.key_value_elements / p.tensor * (p.context - 1.0)
        beside = p.tensor * p.context <= hw.domain
        ring = group_link_bytes_per_s(scale_up, p.context, hw.domain, hw.mesh)
        context = exchanged / np.where(beside, np.where(p.context > 1.0, ring, scale_up), scale_out)
    if not absent(a.moe_depth) and not absent(p.expert - 1.0):
        experts = _expert_traffic(a, p, tokens, hw, scale_up, scale_out, c)
    return tensor, context, experts


def _tensor_traffic(
    a: Architecture, p: PlanArrays, tokens: Real, hw: Hardware, scale_up: Real, scale_out: Real
) -> Real:
    near = members_in_domain(p.tensor, 1.0, hw.domain)
    one = gather_time(
        ACTIVATION_BYTES * tokens * a.hidden,
        p.tensor,
        near,
        scale_up_bytes_per_s=group_link_bytes_per_s(scale_up, near, hw.domain, hw.mesh),
        scale_out_bytes_per_s=scale_out,
        scale_up_latency_s=SCALE_UP_LATENCY_S,
        scale_out_latency_s=SCALE_OUT_LATENCY_S,
    )
    return 2.0 * a.tensor_blocks * one


def _expert_traffic(
    a: Architecture, p: PlanArrays, tokens: Real, hw: Hardware, scale_up: Real, scale_out: Real, c: Coefficients
) -> Real:
    near = members_in_domain(p.expert, p.expert_tensor, hw.domain)
    one = all_to_all_time(
        ACTIVATION_BYTES * a.routed_elements * tokens / p.tensor * p.expert_tensor,
        p.expert,
        near,
        scale_up_bytes_per_s=group_link_bytes_per_s(scale_up, near, hw.domain, hw.mesh),
        scale_out_bytes_per_s=scale_out,
        scale_up_latency_s=SCALE_UP_LATENCY_S * a.moe_depth,
        scale_out_latency_s=SCALE_OUT_LATENCY_S * a.moe_depth,
        copies=np.where(c.node_dispatch > 0.0, np.maximum(a.active_experts, 1.0), 0.0),
    )
    # on a torus an all-to-all crosses its bisection: a ring of g carries g/8 of the traffic of one link (Dally 2004)
    one = one * np.where(hw.torus > 0.0, np.maximum(1.0, np.sqrt(p.expert) / 4.0), 1.0)
    return 2.0 * one
