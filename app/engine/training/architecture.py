"""What the time and memory of training need to know about an architecture, reduced once to small arrays.

Sums over layers are taken here, so that nothing below loops over layers. Fields are floats for one job, or arrays
with a last axis of jobs (:func:`stack`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.engine.matmuls import Matmul, layer_matmuls
from app.engine.transformer import (
    DenseMlp,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    MoeMlp,
    SoftmaxAttention,
    StateSpace,
    Transformer,
)

Array = NDArray[np.float64]
# layers, heads, key plus value head size, window [token]
AttentionKind = tuple[float, float, float, float]

# bf16 activations
ACTIVATION_BYTES = 2.0
# reads and writes of hidden-wide tensors in one layer, forward and backward, with fused norm, residual and dropout:
# two norms (read, write), two residual sums (two reads, one write), the same and the norm's statistics backward
HIDDEN_PASSES_FORWARD, HIDDEN_PASSES_BACKWARD = 10.0, 14.0
# rotary embedding reads and writes queries and keys once each way
ROTARY_PASSES = 2.0
# chunk of the state-space and gated-delta scans; inside it work is quadratic (Dao and Gu 2024, section 6)
SCAN_CHUNK = 256.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """An architecture as sums over its layers.

    Parameters
    ----------
    k, n, stored, active, layers : array, shape (operators,) or (operators, jobs)
        Matmul sizes, copies held, copies a token visits, layers that have it.
    splits_n, splits_k, expert, compressed : array
        1 where tensor parallelism divides n (k); 1 for routed experts; 1 for matmuls in the low-precision format.
    attention_layers, attention_heads, attention_dims, attention_window : array, shape (mixers,) or (mixers, jobs)
        Layers, heads, key plus value head size, window [token] of each kind of softmax attention and sparse indexer.
    scan_flops : float [FLOP/token]
        Forward work of state-space and linear-attention scans over all layers.
    hidden, vocab, depth, moe_depth, tensor_blocks : float
        Width, vocabulary, layers, layers with experts, blocks that tensor parallelism closes with an all-reduce.
    hidden_passes, sharded_elements, expert_elements : float [element/token]
        Elements moved by memory-bound kernels forward over all layers: full width, width divided by tensor
        parallelism, and width of routed copies divided by expert-tensor parallelism.
    experts, active_experts : float
        Routed experts of a layer that has them, and how many of them a token visits.
    routed_elements : float [element/token]
        Elements of routed copies (top-k times width), over all layers: dispatched once, combined once.
    key_value_elements : float [element/token]
        Keys and values of all layers (context parallelism exchanges them).
    quantized_elements : float [element/token]
        Matmul inputs and output gradients that low-precision recipes cast, over all layers, of which
        ``quantized_hidden`` are not divided by tensor parallelism.
    dense_parameters, replicated_parameters, expert_parameters, embedding_parameters : float
        Divided by tensor parallelism; held by every tensor rank; by expert and expert-tensor; one embedding table.
    other_parameters : float
        Outside the text stack.
    tables : float
        Embedding tables: 1 tied, 2 not.
    saved_hidden, saved_sharded, saved_expert_hidden, saved_expert_sharded : float [byte/token]
        Activations kept for the backward pass over all layers without recomputation.
    selective_hidden, selective_sharded, selective_expert_hidden, selective_expert_sharded : float [byte/token]
        The same when norms and activation functions are recomputed.
    """

    k: Array
    n: Array
    stored: Array
    active: Array
    layers: Array
    splits_n: Array
    splits_k: Array
    expert: Array
    compressed: Array
    attention_layers: Array
    attention_heads: Array
    attention_dims: Array
    attention_window: Array
    scan_flops: Array | float
    hidden: Array | float
    vocab: Array | float
    depth: Array | float
    moe_depth: Array | float
    tensor_blocks: Array | float
    hidden_passes: Array | float
    sharded_elements: Array | float
    expert_elements: Array | float
    experts: Array | float
    active_experts: Array | float
    routed_elements: Array | float
    key_value_elements: Array | float
    quantized_elements: Array | float
    quantized_hidden: Array | float
    dense_parameters: Array | float
    replicated_parameters: Array | float
    expert_parameters: Array | float
    embedding_parameters: Array | float
    other_parameters: Array | float
    tables: Array | float
    saved_hidden: Array | float
    saved_sharded: Array | float
    saved_expert_hidden: Array | float
    saved_expert_sharded: Array | float
    selective_hidden: Array | float
    selective_sharded: Array | float
    selective_expert_hidden: Array | float
    selective_expert_sharded: Array | float


def _limit(*tokens: int | None) -> float:
    return float(min((t for t in tokens if t is not None), default=np.inf))


def _indexer(count: float, heads: int, dims: int, window: float = np.inf) -> list[AttentionKind]:
    return [(count, float(heads), float(dims), window)] if heads else []


def _softmax_kinds(count: float, mixer: SoftmaxAttention) -> list[AttentionKind]:
    """The same counts as :func:`app.engine.flops.sequence_core_flops`, kind by kind."""
    heads, width = float(mixer.heads), float(mixer.head_dim + mixer.value_head_dim)
    if mixer.compression is None:
        found = [(count, heads, width, _limit(mixer.window, mixer.selected_tokens))]
        return found + _indexer(count, mixer.index_heads, mixer.index_head_dim, _limit(mixer.window))
    # beside its window a query meets entries that stand for ``compression`` tokens each: so many fewer layers
    entries = count / mixer.compression
    selected = float(mixer.selected_tokens * mixer.compression) if mixer.selected_tokens else np.inf
    found = [(count, heads, width, _limit(mixer.window)), (entries, heads, width, selected)]
    return found + _indexer(entries, mixer.index_heads, mixer.index_head_dim)


def _mixer_sums(group: LayerGroup, sums: dict[str, float], attention: list[AttentionKind]) -> None:
    count = float(group.count)
    match group.mixer:
        case SoftmaxAttention() as mixer:
            queries = mixer.heads * mixer.head_dim
            values = mixer.kv_heads * mixer.value_head_dim
            keys = mixer.kv_heads * mixer.head_dim
            out = mixer.heads * mixer.value_head_dim
            attention += _softmax_kinds(count, mixer)
        case LatentAttention() as mixer:
            head = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim
            queries, keys = mixer.heads * head, mixer.heads * head
            values = out = mixer.heads * mixer.v_head_dim
            attention.append((count, float(mixer.heads), float(head + mixer.v_head_dim), _limit(mixer.selected_tokens)))
            attention += _indexer(count, mixer.index_heads, mixer.index_head_dim)
        case StateSpace() as mixer:
            out = queries = mixer.heads * mixer.head_dim
            keys = values = mixer.groups * mixer.state
            sums["scan_flops"] += count * out * (6.0 * mixer.state + SCAN_CHUNK)
        case LinearAttention() as mixer:
            out = queries = mixer.value_heads * mixer.value_head_dim
            keys = values = mixer.key_heads * mixer.key_head_dim
            sums["scan_flops"] += count * out * (8.0 * mixer.key_head_dim + 2.0 * SCAN_CHUNK)
        case None:
            return
    sums["tensor_blocks"] += count
    sums["key_value_elements"] += count * (keys + values)
    sums["sharded_elements"] += count * (ROTARY_PASSES * (queries + keys) + out)
    kept = queries + keys + values + out
    sums["saved_sharded"] += count * ACTIVATION_BYTES * kept
    if isinstance(group.mixer, LatentAttention):
        # recipes recompute the up-projections from the latents, which are far smaller (DeepSeek-AI 2024, 3.2.3)
        kept = out + (group.mixer.q_lora_rank or queries) + group.mixer.kv_lora_rank + group.mixer.qk_rope_head_dim
    sums["selective_sharded"] += count * ACTIVATION_BYTES * kept


def _feed_forward_sums(hidden: int, group: LayerGroup, sums: dict[str, float]) -> None:
    count = float(group.count)
    match group.feed_forward:
        case DenseMlp() as mlp:
            up, down = mlp.ffn * (2.0 if mlp.gated else 1.0), float(mlp.ffn)
            expert_up = expert_down = routed = 0.0
            sums["tensor_blocks"] += count
        case MoeMlp() as moe:
            factor = 2.0 if moe.gated else 1.0
            up = (moe.shared_ffn + moe.dense_ffn) * factor
            down = float(moe.shared_ffn + moe.dense_ffn)
            expert_up, expert_down = moe.active_experts * moe.expert_ffn * factor, moe.active_experts * moe.expert_ffn
            routed = float(moe.active_experts * (moe.latent or hidden))
            sums["moe_depth"] += count
            sums["experts"], sums["active_experts"] = float(moe.experts), float(moe.active_experts)
            sums["tensor_blocks"] += count * float(up > 0.0)
        case None:
            return
    sums["sharded_elements"] += count * (up + down)
    sums["expert_elements"] += count * (expert_up + expert_down)
    sums["routed_elements"] += count * routed
    sums["saved_sharded"] += count * ACTIVATION_BYTES * (up + down)
    sums["selective_sharded"] += count * ACTIVATION_BYTES * up
    sums["saved_expert_hidden"] += count * ACTIVATION_BYTES * 2.0 * routed
    sums["selective_expert_hidden"] += count * ACTIVATION_BYTES * routed
    sums["saved_expert_sharded"] += count * ACTIVATION_BYTES * (expert_up + expert_down)
    sums["selective_expert_sharded"] += count * ACTIVATION_BYTES * expert_up


def _matmul_sums(matmuls: list[tuple[float, Matmul]], sums: dict[str, float]) -> None:
    for count, matmul in matmuls:
        parameters = count * matmul.k * matmul.n * matmul.stored
        if matmul.expert:
            sums["expert_parameters"] += parameters
        elif matmul.split == "-":
            sums["replicated_parameters"] += parameters
        else:
            sums["dense_parameters"] += parameters
        if matmul.role != "router":
            sums["quantized_elements"] += count * matmul.active * (matmul.k + matmul.n)


@lru_cache(maxsize=512)
def architecture_of(transformer: Transformer, mtp_layers: int = 0) -> Architecture:
    """Reduce a transformer to the sums training needs.

    Parameters
    ----------
    transformer : Transformer
    mtp_layers : int
        Multi-token-prediction layers trained: copies of the last layer kind, each with its own output loss and a
        projection of two widths into one.

    Returns
    -------
    Architecture

    References
    ----------
    1. Narayanan et al. 2021, appendix (parameters and FLOPs); Korthikanti et al. 2022, section 4 (activations).
    2. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2 (multi-token prediction).
    """
    hidden = transformer.hidden
    groups = list(transformer.groups)
    if mtp_layers:
        last = groups[-1]
        groups.append(LayerGroup(count=mtp_layers, mixer=last.mixer, feed_forward=last.feed_forward))
    scalars = {f.name: 0.0 for f in fields(Architecture)}
    attention: list[AttentionKind] = []
    matmuls: list[tuple[float, Matmul]] = []
    for group in groups:
        matmuls += [(float(group.count), matmul) for matmul in layer_matmuls(hidden, group)]
        _mixer_sums(group, scalars, attention)
        _feed_forward_sums(hidden, group, scalars)
    _matmul_sums(matmuls, scalars)
    depth = float(sum(g.count for g in groups))
    halves = sum(g.count * ((g.mixer is not None) + (g.feed_forward is not None)) for g in groups) / 2.0
    scalars |= {
        "hidden": float(hidden),
        "vocab": float(transformer.vocab),
        "depth": depth,
        "hidden_passes": halves * hidden,
        "quantized_hidden": 2.0 * halves * hidden,
        "embedding_parameters": float(hidden) * transformer.vocab,
        "other_parameters": float(transformer.other_parameters),
        "tables": 1.0 if transformer.tied_embeddings else 2.0,
        "saved_hidden": halves * ACTIVATION_BYTES * 4.0 * hidden,
        "selective_hidden": halves * ACTIVATION_BYTES * 2.0 * hidden,
    }
    if mtp_layers:
        matmuls.append((float(mtp_layers), Matmul(role="mtp_projection", k=2 * hidden, n=hidden)))
    arrays = _arrays(matmuls, attention)
    return Architecture(**(scalars | arrays))  # type: ignore[arg-type]


def _arrays(matmuls: list[tuple[float, Matmul]], attention: list[AttentionKind]) -> dict[str, Array]:
    column = [m for _, m in matmuls]
    kinds = np.array(attention or [(0.0, 0.0, 0.0, np.inf)], dtype=np.float64).T
    return {
        "k": np.array([m.k for m in column], dtype=np.float64),
        "n": np.array([m.n for m in column], dtype=np.float64),
        "stored": np.array([m.stored for m in column], dtype=np.float64),
        "active": np.array([m.active for m in column], dtype=np.float64),
        "layers": np.array([count for count, _ in matmuls], dtype=np.float64),
        "splits_n": np.array([m.split == "n" for m in column], dtype=np.float64),
        "splits_k": np.array([m.split == "k" for m in column], dtype=np.float64),
        "expert": np.array([m.expert for m in column], dtype=np.float64),
        "compressed": np.array([m.role != "router" for m in column], dtype=np.float64),
        "attention_layers": kinds[0],
        "attention_heads": kinds[1],
        "attention_dims": kinds[2],
        "attention_window": kinds[3],
    }


OPERATOR_FIELDS = ("k", "n", "stored", "active", "layers", "splits_n", "splits_k", "expert", "compressed")
ATTENTION_FIELDS = ("attention_layers", "attention_heads", "attention_dims", "attention_window")


def stack(architectures: Sequence[Architecture]) -> Architecture:
    """Put jobs side by side: the last axis of every field becomes the job.

    Parameters
    ----------
    architectures : sequence of Architecture

    Returns
    -------
    Architecture
        Operators that a job lacks have zero layers and unit sizes.

    References
    ----------
    1. Array programming: Harris et al., "Array programming with NumPy", Nature 2020.
    """
    values: dict[str, Array] = {}
    for name in (f.name for f in fields(Architecture)):
        columns = [np.asarray(getattr(a, name), dtype=np.float64) for a in architectures]
        if name in OPERATOR_FIELDS or name in ATTENTION_FIELDS:
            depth = max(c.size for c in columns)
            fill = 0.0 if name in ("layers", "attention_layers") else 1.0
            columns = [np.concatenate([c, np.full(depth - c.size, fill)]) for c in columns]
        values[name] = np.stack(columns, axis=-1)
    return Architecture(**values)


def column(architecture: Architecture) -> Architecture:
    """Give operator arrays a trailing axis of one, so that they broadcast over plans.

    Parameters
    ----------
    architecture : Architecture

    Returns
    -------
    Architecture

    References
    ----------
    1. Harris et al. 2020 (broadcasting).
    """
    values = {f.name: getattr(architecture, f.name) for f in fields(Architecture)}
    for name in OPERATOR_FIELDS + ATTENTION_FIELDS:
        values[name] = values[name][:, None]
    return Architecture(**values)


def trained_parameters(architecture: Architecture) -> Array | float:
    """All parameters of the text stack and beside it.

    Parameters
    ----------
    architecture : Architecture

    Returns
    -------
    Array or float

    References
    ----------
    1. Narayanan et al. 2021, appendix.
    """
    a = architecture
    weights = a.dense_parameters + a.replicated_parameters + a.expert_parameters
    return weights + a.tables * a.embedding_parameters + a.other_parameters
