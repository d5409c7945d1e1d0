"""Time of one engine iteration: decode tokens of many sequences, and a chunk of prefill beside them.

What depends on plan, chip and request lengths only is folded into :class:`Costs` once; an iteration is then a few array
operations.
"""

from dataclasses import dataclass, fields

import numpy as np

from app.engine.flops import CAUSAL_HALF
from app.engine.kernels import roofline_time
from app.engine.serving.operators import ACTIVATION_BYTES, Floats, Operators

# a tensor-core tile of a matmul is 128 x 128 outputs; CUTLASS documentation, "Efficient GEMM"
TILE = 128.0
# rows of the smallest tile, computed in full however few tokens there are: 16-bit library matmuls use 64, the skinny
# kernels of the quantised formats 16 (CUTLASS and Marlin documentation), and so do those of AMD in 16 bit (matrix-core
# instructions of 16 rows; AMD CDNA3 ISA, vLLM `wvSplitK`)
SMALLEST_TILE = 64.0
SMALLEST_SKINNY_TILE = 16.0
# tiles that fill a chip once: streaming multiprocessors of H100 SXM, 132; NVIDIA H100 whitepaper
CHIP_TILES = 132.0
# routing is uneven, so that a batch touches fewer experts than an even one. A power law of exponent 1 to 1.2 takes 0.73
# to 0.77 of the balanced time at 16 tokens (kernels.md, "skewed routing"), which an exponent of 0.85 on the tokens
# reproduces; served requests are more alike than that: 0.75 predicts whole sources left out better
ROUTING_SPREAD = 0.75
# bytes moved by the element-wise kernels of a layer per token and unit of width (two norms, residuals, rotary embedding
# and activation, each read and written in 16 bit); Ivanov et al., "Data Movement Is All You Need", 2021
ELEMENTWISE_BYTES = 24.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """Effective rates and overheads of a chip with an engine; arrays ``(plans, 1)`` or ``(plans, operators)``.

    Parameters
    ----------
    launch_s, flops_per_s, tile_waste, tile : array (plans, operators)
        Matmuls outside the experts; rows of the smallest tile.
    bandwidth : array [byte/s]
        For weights.
    moe_launch_s, moe_flops_per_s, moe_bandwidth, moe_padding, moe_passes : array
        Grouped expert matmuls.
    attention_launch_s, prefill_flops_per_s, half_length, decode_flops_per_s, cache_bandwidth : array
        Attention kernels.
    reread : array [1]
        Share of the query heads of a group that read the cache of their own accord rather than once for all.
    layer_s, step_s, sequence_s : array [s]
        Small kernels a layer, scheduling an iteration, sampling and bookkeeping a sequence.
    eager_s : array [s]
        Host time to launch a layer's kernels one by one, where no captured graph covers the iteration.
    overlap : array [1]
        Share of the scheduling that the host does while the accelerator works.
    raw_bandwidth, raw_flops_per_s, raw_moe_flops_per_s : array
        Of the datasheet.
    reduce_s, link_bytes_per_s : array
        All-reduce latency and effective per-direction link rate.

    References
    ----------
    1. Calibration file of the engine (``serving.json``), each value with its rows.
    """

    launch_s: Floats
    flops_per_s: Floats
    tile_waste: Floats
    tile: Floats
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
    reread: Floats
    raw_bandwidth: Floats
    raw_flops_per_s: Floats
    raw_moe_flops_per_s: Floats
    layer_s: Floats
    eager_s: Floats
    overlap: Floats
    step_s: Floats
    sequence_s: Floats
    prefill_token_s: Floats
    reduce_s: Floats
    link_bytes_per_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Token lengths of the requests of each plan; arrays ``(plans, 1)``.

    Parameters
    ----------
    context : array [token]
        Mean tokens a decoding sequence has in the cache.
    prompt : array [token]
        Length over which a prompt's tokens attend.
    tokens_per_sequence : array [token]
        Tokens a decoding sequence feeds a step (1, or draft + 1 when verifying a speculation).
    """

    context: Floats
    prompt: Floats
    tokens_per_sequence: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Coefficients of an iteration's time; arrays ``(plans, operators)`` for matmuls and experts, else ``(plans, 1)``.

    Parameters
    ----------
    copies, launch_s, flop_s, fill, tile, weight_s, token_s, head : array
        Matmuls: copies; seconds of launch, of arithmetic per token, tokens of tile waste, smallest tile; seconds of
        reading the weights once, of activations per token; whether it is the language-model head.
    moe_layers, moe_launch_s, moe_log_miss, moe_flop_token_s, moe_flop_touched_s, moe_byte_token_s, moe_byte_touched_s
        Grouped experts: arithmetic and traffic per token, and per share of the experts touched; ``log(1 - k/E)``.
    attention_launch_s, decode_sequence_s, prefill_token_s : array [s]
        Attention over all layers: launch; per decoding sequence; per prompt token.
    link_s, link_token_s, element_s, element_token_s : array [s]
        Collectives and element-wise kernels: fixed and per token.
    host_s : array [s]
        Launching the kernels of an iteration with prompts, which no captured graph covers.
    overlap : array [1]
        Share of the scheduling that is done beside the accelerator.
    step_s, sequence_s, chunk_token_s : array [s]
        Scheduling: fixed, per sequence, per prompt token.
    ranks, data, pipeline, fed, prompt : array
        Ranks a batch is spread over; widths; tokens a sequence feeds; prompt length.
    mixture : bool
        Whether there are experts at all.

    References
    ----------
    1. Williams et al. 2009 (roofline). 2. Thakur et al. 2005 (collectives).
    """

    copies: Floats
    launch_s: Floats
    flop_s: Floats
    fill: Floats
    tile: Floats
    weight_s: Floats
    token_s: Floats
    head: Floats
    moe_layers: Floats
    moe_launch_s: Floats
    moe_log_miss: Floats
    moe_flop_token_s: Floats
    moe_flop_touched_s: Floats
    moe_byte_token_s: Floats
    moe_byte_touched_s: Floats
    attention_launch_s: Floats
    decode_sequence_s: Floats
    prefill_token_s: Floats
    link_s: Floats
    link_token_s: Floats
    element_s: Floats
    element_token_s: Floats
    host_s: Floats
    overlap: Floats
    step_s: Floats
    sequence_s: Floats
    chunk_token_s: Floats
    ranks: Floats
    data: Floats
    pipeline: Floats
    fed: Floats
    prompt: Floats
    layers: Floats
    mixture: bool


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

    def of(self, case: int) -> dict[str, float]:
        """Seconds by cause of one case of the first plan."""
        return {field.name: float(getattr(self, field.name)[0, case]) for field in fields(self)}


def _attention(o: Operators, r: Rates, n: Lengths) -> tuple[Floats, Floats]:
    """Seconds per decoding sequence and per prompt token over all layers; both are linear in their number."""
    seen = np.minimum(n.context, o.read_cap)
    index = o.index_bytes_per_token
    reads = 1.0 + r.reread * (o.query_group - 1.0)
    read = seen * o.kv_bytes_per_token * reads + n.context * index + 2.0 * o.state_bytes
    # a recurrent layer spends its FLOPs once a token, an indexer once a cached token
    linear = np.where(index > 0.0, n.context, 1.0) * o.linear_flops_per_token
    flops = n.tokens_per_sequence * (seen * o.decode_flops_per_token + linear)
    by_bytes, by_flops = read / r.cache_bandwidth, flops / r.decode_flops_per_s
    decode = (o.attention_layers * np.sqrt(by_bytes * by_bytes + by_flops * by_flops)).sum(axis=1, keepdims=True)
    half = n.prompt * CAUSAL_HALF
    work = np.minimum(half, o.read_cap) * o.prefill_flops_per_pair
    work = work + np.where(index > 0.0, half, 1.0) * o.linear_flops_per_token
    share = 1.0 + r.half_length / np.maximum(n.prompt, 1.0)
    prefill = (o.attention_layers * work).sum(axis=1, keepdims=True) / r.prefill_flops_per_s * share
    return decode, prefill


def _links(o: Operators, r: Rates) -> tuple[Floats, Floats]:
    """Fixed seconds and seconds per token of all-reduces, expert dispatch and combine, and pipeline hand-over."""
    ring = 2.0 * (o.tensor - 1.0) / o.tensor
    active = o.moe_active.max(axis=1, keepdims=True)
    spread = np.minimum(active, o.expert) * (o.expert - 1.0) / np.maximum(o.expert, 1.0)
    stages = o.pipeline - 1.0
    fixed = r.reduce_s * (o.all_reduces + 2.0 * o.dispatches + stages)
    payloads = o.all_reduces * ring + 2.0 * o.dispatches * spread + stages
    return fixed, payloads * o.hidden * ACTIVATION_BYTES / r.link_bytes_per_s


def costs_of(o: Operators, r: Rates, n: Lengths) -> Costs:
    """Fold operators, rates and lengths into the coefficients of an iteration.

    Parameters
    ----------
    o : Operators
    r : Rates
    n : Lengths

    Returns
    -------
    Costs

    Notes
    -----
    A tile of a matmul is computed in full, which binds chips with much bandwidth and little arithmetic (H20) at one
    token. An all-reduce moves ``2 (n-1)/n`` of the buffer.

    References
    ----------
    1. Williams et al. 2009. 2. Dao 2023. 3. DeepSeek-AI 2024 (absorbed MLA decode). 4. Thakur et al. 2005.
    5. Shazeer et al. 2017 (experts). 6. aiconfigurator-core 0.12.0 kernel tables.
    """
    decode, prefill = _attention(o, r, n)
    fixed, per_token = _links(o, r)
    flop = 2.0 * o.moe_weights_per_expert / r.moe_flops_per_s
    reached = o.moe_active_share * o.moe_experts_local
    activations = ACTIVATION_BYTES * r.moe_passes * (o.moe_width + o.moe_ffn_local)
    return Costs(
        copies=o.copies,
        launch_s=r.launch_s,
        flop_s=2.0 * o.inner * o.outer / r.flops_per_s,
        fill=r.tile_waste * (CHIP_TILES * TILE * TILE) / o.outer,
        tile=r.tile,
        weight_s=o.weight_bytes / r.bandwidth,
        token_s=ACTIVATION_BYTES * (o.inner + o.outer) / r.bandwidth,
        head=o.head,
        moe_layers=o.moe_layers,
        moe_launch_s=r.moe_launch_s,
        moe_log_miss=np.log1p(-np.minimum(o.moe_active_share, 1.0 - 1e-12)),
        moe_flop_token_s=flop * reached,
        moe_flop_touched_s=flop * r.moe_padding * o.moe_experts_local,
        moe_byte_token_s=activations * reached / r.moe_bandwidth,
        moe_byte_touched_s=o.moe_experts_local * o.moe_bytes_per_expert / r.moe_bandwidth,
        attention_launch_s=r.attention_launch_s * o.attention_layers.sum(axis=1, keepdims=True),
        decode_sequence_s=decode,
        prefill_token_s=prefill,
        link_s=fixed,
        link_token_s=per_token,
        element_s=o.layers * r.layer_s,
        element_token_s=o.layers * o.hidden * (ELEMENTWISE_BYTES / r.raw_bandwidth),
        host_s=o.layers * r.eager_s,
        overlap=r.overlap,
        step_s=r.step_s,
        sequence_s=r.sequence_s / o.data,
        chunk_token_s=r.prefill_token_s / o.data,
        ranks=o.data * o.pipeline,
        data=o.data,
        pipeline=o.pipeline,
        fed=n.tokens_per_sequence,
        prompt=np.maximum(n.prompt, 1.0),
        layers=o.layers,
        mixture=bool(o.moe_layers.any()),
    )


def _matmul(c: Costs, tokens: Floats, sampled: Floats) -> Floats:
    """Time of all matmuls outside the experts [s]: ``launch + (flops^4 + bytes^4)^(1/4)`` each."""
    m = tokens[:, :, None] + c.head[:, None, :] * (sampled - tokens)[:, :, None]
    compute = c.flop_s[:, None, :] * (np.maximum(m, c.tile[:, None, :]) + c.fill[:, None, :])
    move = c.weight_s[:, None, :] + m * c.token_s[:, None, :]
    each = roofline_time(compute, move, c.launch_s[:, None, :])
    return np.asarray(np.einsum("pco,po->pc", each, c.copies))


def _experts(c: Costs, group_tokens: Floats) -> Floats:
    """Time of the grouped experts of one rank [s].

    Evenly routed tokens touch ``1 - (1 - k/E)^n`` of them; unevenly routed ones as many as ``n^0.75`` even ones.
    """
    n = group_tokens[:, :, None]
    touched = -np.expm1(n**ROUTING_SPREAD * c.moe_log_miss[:, None, :])
    compute = n * c.moe_flop_token_s[:, None, :] + touched * c.moe_flop_touched_s[:, None, :]
    move = n * c.moe_byte_token_s[:, None, :] + touched * c.moe_byte_touched_s[:, None, :]
    each = c.moe_launch_s[:, None, :] + np.sqrt(compute * compute + move * move)
    return np.asarray(np.einsum("pco,po->pc", each, c.moe_layers))


def step_seconds(c: Costs, sequences: Floats, prefill_tokens: Floats) -> StepTime:
    """Time of one iteration by cause.

    Parameters
    ----------
    c : Costs
    sequences : array (plans, cases) [sequence]
        Sequences that decode, over the whole replica.
    prefill_tokens : array (plans, cases) [token]
        Prompt tokens processed beside them, over the whole replica.

    Returns
    -------
    StepTime
        Arrays ``(plans, cases)`` [s].

    Notes
    -----
    With pipeline stages the batch is cut into as many micro-batches as stages; the time is that of one micro-batch
    through all stages, during which every sequence advances one token. Engines capture pure decode iterations as
    graphs; one with prompts is launched kernel by kernel and lasts at least as long as the host takes to do so, and to
    schedule the next where the engine does that meanwhile. ``overhead`` is what the host adds to the time of the
    accelerator.

    References
    ----------
    1. Yu et al., "Orca", 2022 (iteration-level batching). 2. Agrawal et al., "Sarathi-Serve", 2024 (mixed steps).
    """
    fed = sequences * c.fed
    tokens = (fed + prefill_tokens) / c.ranks
    sampled = (fed + prefill_tokens / c.prompt) / c.ranks
    each, chunk = sequences / c.ranks, prefill_tokens / c.ranks
    launches = (sequences > 0.0) * c.attention_launch_s + (prefill_tokens > 0.0) * c.attention_launch_s
    matmul = _matmul(c, tokens, sampled)
    experts = _experts(c, (fed + prefill_tokens) / c.pipeline) if c.mixture else np.zeros_like(tokens)
    attention = launches + each * c.decode_sequence_s + chunk * c.prefill_token_s
    elementwise = c.element_s + tokens * c.element_token_s
    communication = c.link_s + tokens * c.link_token_s
    device = matmul + experts + attention + elementwise + communication
    scheduling = c.step_s + c.sequence_s * sequences + c.chunk_token_s * prefill_tokens
    launched = np.where(prefill_tokens > 0.0, c.host_s, 0.0)
    both = roofline_time(device, launched + c.overlap * scheduling, 0.0)
    return StepTime(
        matmul=matmul,
        experts=experts,
        attention=attention,
        elementwise=elementwise,
        communication=communication,
        overhead=both - device + (1.0 - c.overlap) * scheduling,
    )
