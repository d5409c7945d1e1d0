"""Transformer accounting: an architecture as layer groups, and its parameters, FLOPs and cache bytes.

An architecture is a tuple of :class:`LayerGroup`; every layer has a token mixer (attention, latent attention,
state space, linear attention or none) and a feed-forward part (dense, mixture of experts or none). Everything that
depends only on the architecture is computed here, once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftmaxAttention:
    """Multi-head, grouped-query or multi-query attention, full or sliding.

    Parameters
    ----------
    heads, kv_heads : int
    head_dim, value_head_dim : int
    window : int or None [token]
        None = full attention.
    gated : bool
        Output gate of the width of the heads (Qwen3-Next, Qwen3.5).
    bias, output_bias : bool
        Biases on the query, key and value projections; on the output projection.
    key_is_value : bool
        Keys double as values: one projection and one cache entry (Gemma 4 full layers, DeepSeek-V4).
    qk_norm : str or None
        ``head`` (one vector of ``head_dim`` each), ``full`` (the projection's whole width) or None.
    sinks : bool
        One learned attention sink a head (GPT-OSS).
    q_lora_rank : int or None
        Queries go through a low-rank pair of matrices (DeepSeek-V4).
    output_groups, output_lora_rank : int
        Block-diagonal low-rank output projection (DeepSeek-V4); rank 0 = one full matrix.
    compression : int or None [token]
        Beyond the window, one compressed cache entry for every ``compression`` tokens (DeepSeek-V4); None = none.
    selected_tokens : int or None
        Compressed entries (or tokens) an indexer keeps per query; None = all.
    index_heads, index_head_dim : int
        The indexer's own small attention; 0 when there is none.
    key_norm : bool
        One vector on the shared key-value projection (DeepSeek-V4).
    shares_cache : bool
        Reuses the keys and values of an earlier layer: no projections for them, no cache (Gemma 4 small models).

    References
    ----------
    1. Vaswani et al., "Attention Is All You Need", 2017.
    2. Shazeer, "Fast Transformer Decoding: One Write-Head is All You Need", 2019.
    3. Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models", 2023.
    """

    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window: int | None = None
    gated: bool = False
    bias: bool = False
    output_bias: bool = False
    key_is_value: bool = False
    qk_norm: str | None = None
    sinks: bool = False
    q_lora_rank: int | None = None
    output_groups: int = 1
    output_lora_rank: int = 0
    compression: int | None = None
    selected_tokens: int | None = None
    index_heads: int = 0
    index_head_dim: int = 0
    key_norm: bool = False
    shares_cache: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentAttention:
    """Multi-head latent attention (MLA): the cache holds one compressed vector a token.

    Parameters
    ----------
    heads : int
    q_lora_rank : int or None
        None = queries are projected directly.
    kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim : int
    selected_tokens : int or None [token]
        Tokens a sparse indexer keeps per query (DeepSeek-V3.2, GLM-5); None = all.
    index_heads, index_head_dim : int
        The indexer's own small attention; 0 when there is none.
    gated : bool
        Output gate of the width of the heads (Kimi K3).

    References
    ----------
    1. DeepSeek-AI, "DeepSeek-V2", 2024; "DeepSeek-V3 Technical Report", 2024.
    """

    heads: int
    q_lora_rank: int | None
    kv_lora_rank: int
    qk_nope_head_dim: int
    qk_rope_head_dim: int
    v_head_dim: int
    selected_tokens: int | None = None
    index_heads: int = 0
    index_head_dim: int = 0
    gated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSpace:
    """Mamba-2 mixer: constant state per sequence.

    References
    ----------
    1. Dao and Gu, "Transformers are SSMs", 2024.
    """

    heads: int
    head_dim: int
    state: int
    groups: int
    convolution: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearAttention:
    """Gated delta-rule linear attention: constant state per sequence.

    Parameters
    ----------
    key_heads, value_heads : int
    key_head_dim, value_head_dim : int
    convolution : int [token]
        Length of the short convolution.
    decay_rank : int
        Decay per channel through a low-rank pair (Kimi delta attention); 0 = one decay a head (gated delta nets).
    gate_rank : int
        Output gate through a low-rank pair; 0 = one full matrix.

    References
    ----------
    1. Yang et al., "Gated Delta Networks", 2024; Kimi Team, "Kimi Linear", 2025.
    """

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    convolution: int
    decay_rank: int = 0
    gate_rank: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp:
    """Plain (two matrices) or gated (three matrices) feed-forward layer of width ``ffn``."""

    ffn: int
    gated: bool = True
    bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeMlp:
    """Mixture of experts.

    Parameters
    ----------
    experts, active_experts : int
        Routed experts, and how many a token visits.
    expert_ffn : int
    shared_ffn : int
        Summed width of the shared experts, 0 when there is none.
    dense_ffn : int
        Width of a dense MLP that runs beside the experts in the same layer (Gemma 4), 0 when there is none.
    latent : int or None
        Width the routed experts work at when it is not the model's (Nemotron-3 latent MoE).
    bias, router_bias : bool
        Biases on every expert's matrices; on the router.
    shared_gate : bool
        A learned scalar gate on the shared expert (Qwen3.5).

    References
    ----------
    1. Shazeer et al., "Outrageously Large Neural Networks", 2017.
    2. DeepSeek-AI, "DeepSeekMoE", 2024.
    """

    experts: int
    active_experts: int
    expert_ffn: int
    shared_ffn: int = 0
    dense_ffn: int = 0
    gated: bool = True
    bias: bool = False
    latent: int | None = None
    router_bias: bool = False
    shared_gate: bool = False


Mixer = SoftmaxAttention | LatentAttention | StateSpace | LinearAttention
FeedForward = DenseMlp | MoeMlp


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Equal layers.

    Parameters
    ----------
    count : int
    mixer : Mixer or None
    feed_forward : FeedForward or None
        Either may be absent (hybrid models alternate them).
    norms : int
        Normalisation vectors of the model's width per layer (2 before-norms, 4 with after-norms).
    other_parameters : int
        Per layer, weights that take part in no large matmul (hyper-connections, compressors, scalars).
    """

    count: int
    mixer: Mixer | None
    feed_forward: FeedForward | None
    norms: int = 2
    other_parameters: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """A decoder-only architecture.

    Parameters
    ----------
    name : str
    hidden, vocab : int
    tied_embeddings : bool
        One table for input and output: counted once in parameters, its matmul still costs.
    groups : tuple of LayerGroup
        In the order of first appearance.
    mtp_layers : int
        Multi-token-prediction layers behind the last one; never in ``parameters``, trained only when asked for.
    other_parameters : int
        Parameters outside the text stack (vision tower, per-layer embeddings): memory, no time per text token.
    parameters_stated : float or None
        Published total, kept beside the computed one where dimensions are incomplete.
    context : int or None [token]
        Longest sequence the model was made for.
    norm_bias : bool
        LayerNorm (weight and bias) instead of RMSNorm.
    positions : int
        Rows of a learned position table (GPT-2, GPT-3, OPT), 0 = none.
    final_parameters : int
        Text weights outside the layers besides tables, final norm and head (hyper-connection collapse).
    """

    name: str
    hidden: int
    vocab: int
    tied_embeddings: bool
    groups: tuple[LayerGroup, ...]
    mtp_layers: int = 0
    other_parameters: int = 0
    parameters_stated: float | None = None
    context: int | None = None
    norm_bias: bool = False
    positions: int = 0
    final_parameters: int = 0

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.vocab < 1 or not self.groups:
            raise ValueError(f"{self.name}: hidden, vocab and layers must be positive")

    @property
    def layers(self) -> int:
        """Number of layers (a hybrid's mixer-only and MLP-only layers count one each)."""
        return sum(g.count for g in self.groups)


def group_layers(layers: Iterable[LayerGroup]) -> tuple[LayerGroup, ...]:
    """Merge equal layers, in order of first appearance.

    Parameters
    ----------
    layers : iterable of LayerGroup
        In model order, usually of count 1.

    Returns
    -------
    tuple of LayerGroup

    References
    ----------
    1. None needed: bookkeeping.
    """
    merged: dict[LayerGroup, int] = {}
    for layer in layers:
        key = replace(layer, count=1)
        merged[key] = merged.get(key, 0) + layer.count
    return tuple(replace(key, count=count) for key, count in merged.items())
