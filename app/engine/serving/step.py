"""Time of one engine iteration: decode tokens of many sequences, and a chunk of prefill beside them."""

from dataclasses import dataclass, fields

import numpy as np

from app.engine.flops import CAUSAL_HALF
from app.engine.kernels import distinct_experts, roofline_time
from app.engine.serving.operators import ACTIVATION_BYTES, Floats, Operators

# a tensor-core tile of a matmul is 128 x 128 outputs; CUTLASS documentation, "Efficient GEMM"
TILE = 128.0
# rows of the smallest tile, computed in full however few tokens there are: 16-bit library matmuls use 64, the skinny
# kernels of the quantised formats 32; CUTLASS and Marlin documentation
SMALLEST_TILE = 64.0
SMALLEST_LOW_PRECISION_TILE = 32.0
# tiles that fill a chip once: streaming multiprocessors of H100 SXM, 132; NVIDIA H100 whitepaper
CHIP_TILES = 132.0
# bytes moved by the element-wise kernels of a layer per token and unit of width (two norms, residuals, rotary embedding
# and activation, each read and written in 16 bit); Ivanov et al., "Data Movement Is All You Need", 2021
ELEMENTWISE_BYTES = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Effective rates and overheads of a chip with an engine; arrays ``(plans, 1)`` or ``(plans, operators)``.

    Parameters
    ----------
    launch_s, flops_per_s, tile_waste : array (plans, operators)
        Matmuls outside the experts.
    bandwidth : array [byte/s]
        For weights.
    moe_launch_s, moe_flops_per_s, moe_bandwidth, moe_padding, moe_passes : array
        Grouped expert matmuls.
    attention_launch_s, prefill_flops_per_s, half_length, decode_flops_per_s, cache_bandwidth : array
        Attention kernels.
    layer_s, step_s, sequence_s : array [s]
        Small kernels a layer, scheduling an iteration, sampling and bookkeeping a sequence.
    reduce_s, link_bytes_per_s : array
        All-reduce latency and effective per-direction link rate.

    References
    ----------
    1. Calibration file of the engine (``serving.json``), each value with its rows.
    """

    launch_s: Floats
    flops_per_s: Floats
    tile_waste: Floats
    bandwidth: Floats
    moe_launch_s: Floats
    moe_flops_per_s: Floats
    moe_bandwidth: Floats
    moe_padding: Floats
    moe_passes: Floats
    attention_launch_s: Floats
    prefill_flops_per_s: Floats
    half_length: Floats
    decode_flops_per_s: Floats
    cache_bandwidth: Floats
    raw_bandwidth: Floats
    layer_s: Floats
    step_s: Floats
    sequence_s: Floats
    prefill_token_s: Floats
    reduce_s: Floats
    link_bytes_per_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """One iteration's work per replica; arrays broadcast to ``(plans, cases)``.

    Parameters
    ----------
    sequences : array [sequence]
        Sequences that decode, over the whole replica.
    tokens_per_sequence : array [token]
        Tokens each feeds (1, or draft + 1 when verifying a speculation).
    context : array [token]
        Mean tokens each has in the cache.
    prefill_tokens : array [token]
        Prompt tokens processed beside them, over the whole replica.
    prompt : array [token]
        Length of the prompts these belong to.
    """

    sequences: Floats
    tokens_per_sequence: Floats
    context: Floats
    prefill_tokens: Floats
    prompt: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of one iteration by cause; arrays ``(plans, cases)``."""

    matmul: Floats
    experts: Floats
    attention: Floats
    elementwise: Floats
    communication: Floats
    overhead: Floats

    @property
    def total(self) -> Floats:
        """Sum of the causes [s]."""
        return self.matmul + self.experts + self.attention + self.elementwise + self.communication + self.overhead

    def shares(self) -> dict[str, Floats]:
        """Share of the total by cause [1]."""
        total = self.total
        return {f.name: getattr(self, f.name) / total for f in fields(self)}


def matmul_s(o: Operators, r: Rates, tokens: Floats, sampled: Floats) -> Floats:
    """Time of all matmuls outside the experts [s].

    Parameters
    ----------
    o : Operators
    r : Rates
    tokens : array (plans, cases) [token]
        Per attention rank and pipeline micro-batch.
    sampled : array (plans, cases) [token]
        Tokens that reach the language-model head.

    Returns
    -------
    array (plans, cases) [s]

    Notes
    -----
    ``launch + (flops^4 + bytes^4)^(1/4)``; a tile is computed in full, which binds chips with much bandwidth and little
    arithmetic (H20) at a single token. Median error 3 to 10 % on the kernel tables.

    References
    ----------
    1. Williams et al. 2009. 2. aiconfigurator-core 0.12.0 kernel tables.
    """
    m = tokens[:, :, None] + o.head[:, None, :] * (sampled - tokens)[:, :, None]
    inner, outer = o.inner[:, None, :], o.outer[:, None, :]
    tile = SMALLEST_TILE - (SMALLEST_TILE - SMALLEST_LOW_PRECISION_TILE) * o.low_precision
    padded = np.maximum(m, tile[:, None, :])
    fill = r.tile_waste[:, None, :] * (CHIP_TILES * TILE * TILE) / (padded * outer)
    compute = padded * (2.0 * inner * outer / r.flops_per_s[:, None, :]) * (1.0 + fill)
    move = (o.weight_bytes[:, None, :] + m * (ACTIVATION_BYTES * (inner + outer))) / r.bandwidth[:, None, :]
    each = roofline_time(compute, move, r.launch_s[:, None, :])
    return np.asarray((o.copies[:, None, :] * each).sum(axis=2))


def experts_s(o: Operators, r: Rates, group_tokens: Floats) -> Floats:
    """Time of the grouped expert matmuls of one rank [s].

    Parameters
    ----------
    o : Operators
    r : Rates
    group_tokens : array (plans, cases) [token]
        Tokens of the whole expert group (all attention-data ranks).

    Returns
    -------
    array (plans, cases) [s]

    Notes
    -----
    Distinct experts touched: ``E (1 - (1 - k/E)^n)`` for evenly routed tokens.

    References
    ----------
    1. Shazeer et al. 2017. 2. aiconfigurator-core 0.12.0 kernel tables, ``moe``.
    """
    n = group_tokens[:, :, None]
    share = o.moe_active_share[:, None, :]
    touched = o.moe_experts_local[:, None, :] * distinct_experts(n, 1.0, share)
    routed = n * share * o.moe_experts_local[:, None, :]
    weights = o.moe_weights_per_expert[:, None, :]
    per_token = 2.0 * weights / r.moe_flops_per_s[:, None, :]
    compute = per_token * (routed + r.moe_padding[:, None, :] * touched)
    activations = r.moe_passes[:, None, :] * routed * ACTIVATION_BYTES * (o.moe_width + o.moe_ffn_local)[:, None, :]
    move = (touched * o.moe_bytes_per_expert[:, None, :] + activations) / r.moe_bandwidth[:, None, :]
    each = r.moe_launch_s[:, None, :] + np.sqrt(compute * compute + move * move)
    return np.asarray((o.moe_layers[:, None, :] * each).sum(axis=2))


def attention_s(o: Operators, r: Rates, it: Iteration, ranks: Floats) -> Floats:
    """Time of the attention kernels of decode and prefill [s].

    Parameters
    ----------
    o, r : Operators, Rates
    it : Iteration
    ranks : array (plans, 1)
        Attention-data ranks times pipeline micro-batches a sequence is spread over.

    Returns
    -------
    array (plans, cases) [s]

    References
    ----------
    1. Dao 2022, 2023 (FlashAttention). 2. DeepSeek-AI 2024 (absorbed MLA decode). 3. kernel tables.
    """
    s = (it.sequences / ranks)[:, :, None]
    context, length = it.context[:, :, None], it.prompt[:, :, None]
    seen = np.minimum(context, o.read_cap[:, None, :])
    kv, index = o.kv_bytes_per_token[:, None, :], o.index_bytes_per_token[:, None, :]
    read = s * (seen * kv + context * index + 2.0 * o.state_bytes[:, None, :])
    queries = s * it.tokens_per_sequence[:, :, None]
    flops = queries * (
        seen * o.decode_flops_per_token[:, None, :]
        + (context + 1.0) * o.linear_flops_per_token[:, None, :] * (index > 0)
    )
    by_bytes = read / r.cache_bandwidth[:, :, None]
    by_flops = flops / r.decode_flops_per_s[:, :, None]
    decode = np.sqrt(by_bytes * by_bytes + by_flops * by_flops)
    tokens = (it.prefill_tokens / ranks)[:, :, None]
    pairs = tokens * np.minimum(length * CAUSAL_HALF, o.read_cap[:, None, :])
    index_pairs = tokens * np.where(index > 0.0, length * CAUSAL_HALF, 1.0)
    work = pairs * o.prefill_flops_per_pair[:, None, :] + index_pairs * o.linear_flops_per_token[:, None, :]
    prefill = work / r.prefill_flops_per_s[:, :, None] * (1.0 + r.half_length[:, :, None] / np.maximum(length, 1.0))
    launches = r.attention_launch_s[:, :, None] * ((s > 0.0) * 1.0 + (tokens > 0.0) * 1.0)
    return np.asarray((o.attention_layers[:, None, :] * (launches + decode + prefill)).sum(axis=2))


def communication_s(o: Operators, r: Rates, tokens: Floats) -> Floats:
    """Time of tensor-parallel all-reduces, expert dispatch and combine, and pipeline hand-over [s].

    Parameters
    ----------
    o, r : Operators, Rates
    tokens : array (plans, cases) [token]
        Per attention rank.

    Returns
    -------
    array (plans, cases) [s]

    References
    ----------
    1. Thakur et al. 2005 (all-reduce moves 2 (n-1)/n of the buffer). 2. kernel tables, ``custom_allreduce``.
    """
    payload = tokens * o.hidden * ACTIVATION_BYTES
    ring = 2.0 * (o.tensor - 1.0) / o.tensor
    reduce = o.all_reduces * (r.reduce_s + ring * payload / r.link_bytes_per_s)
    active = o.moe_active.max(axis=1, keepdims=True)
    spread = np.minimum(active, o.expert) * (o.expert - 1.0) / np.maximum(o.expert, 1.0)
    exchange = 2.0 * o.dispatches * (r.reduce_s + spread * payload / r.link_bytes_per_s)
    hand_over = (o.pipeline - 1.0) * (r.reduce_s + payload / r.link_bytes_per_s)
    return np.asarray(reduce + exchange + hand_over)


def step_seconds(o: Operators, r: Rates, it: Iteration) -> StepTime:
    """Time of one iteration by cause.

    Parameters
    ----------
    o : Operators
    r : Rates
    it : Iteration

    Returns
    -------
    StepTime
        Arrays ``(plans, cases)`` [s].

    Notes
    -----
    With pipeline stages the batch is cut into as many micro-batches as stages; the time is that of one micro-batch
    through all stages, during which every sequence advances one token.

    References
    ----------
    1. Yu et al., "Orca", 2022 (iteration-level batching). 2. Agrawal et al., "Sarathi-Serve", 2024 (mixed steps).
    """
    ranks = o.data * o.pipeline
    fed = it.sequences * it.tokens_per_sequence
    tokens = (fed + it.prefill_tokens) / ranks
    prompts = it.prefill_tokens / np.maximum(it.prompt, 1.0)
    matmul = matmul_s(o, r, tokens, (fed + prompts) / ranks)
    experts = experts_s(o, r, (fed + it.prefill_tokens) / o.pipeline)
    attention = attention_s(o, r, it, ranks)
    elementwise = o.layers * (r.layer_s + tokens * o.hidden * (ELEMENTWISE_BYTES / r.raw_bandwidth))
    overhead = r.step_s + r.sequence_s * it.sequences / o.data + r.prefill_token_s * it.prefill_tokens / o.data
    return StepTime(
        matmul=matmul,
        experts=experts,
        attention=attention,
        elementwise=elementwise,
        communication=communication_s(o, r, tokens),
        overhead=np.broadcast_to(overhead, matmul.shape),
    )
