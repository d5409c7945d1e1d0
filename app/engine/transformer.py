"""Transformer accounting: an architecture as layer groups, and its parameters, FLOPs and cache bytes.

An architecture is a tuple of :class:`LayerGroup`; every layer has a token mixer (attention, latent attention,
state space, linear attention or none) and a feed-forward part (dense, mixture of experts or none). Everything that
depends only on the architecture is computed here, once.
"""

from dataclasses import dataclass


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
    bias : bool
        Biases on the query, key and value projections.
    key_is_value : bool
        Keys double as values: one projection and one cache entry (Gemma 4 full layers).

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
    key_is_value: bool = False


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

    References
    ----------
    1. Yang et al., "Gated Delta Networks", 2024.
    """

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    convolution: int


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


Mixer = SoftmaxAttention | LatentAttention | StateSpace | LinearAttention
FeedForward = DenseMlp | MoeMlp


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """``count`` equal layers. ``mixer`` or ``feed_forward`` may be absent (hybrid models alternate them)."""

    count: int
    mixer: Mixer | None
    feed_forward: FeedForward | None


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

    def __post_init__(self) -> None:
        if self.hidden < 1 or self.vocab < 1 or not self.groups:
            raise ValueError(f"{self.name}: hidden, vocab and layers must be positive")

    @property
    def layers(self) -> int:
        """Number of layers (a hybrid's mixer-only and MLP-only layers count one each)."""
        return sum(g.count for g in self.groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matmul:
    """One weight matrix of a layer: ``tokens x k`` by ``k x n``.

    Parameters
    ----------
    role : str
        ``qkv``, ``output``, ``mlp_up``, ``mlp_down``, ``router``, ``expert_up``, ``expert_down``, ``shared_up`` ...
    k, n : int
        Inner and output size of one copy, before sharding.
    stored : int
        Copies held (experts), for parameters and memory.
    active : float
        Copies a token passes through, for FLOPs.
    split : str
        What tensor parallelism divides: ``n`` (column), ``k`` (row), or ``-`` (replicated).
    expert : bool
        Sharded by expert parallelism.
    """

    role: str
    k: int
    n: int
    stored: int = 1
    active: float = 1.0
    split: str = "n"
    expert: bool = False


def mixer_matmuls(hidden: int, mixer: Mixer | None) -> tuple[Matmul, ...]:
    """Weight matrices of a token mixer.

    Parameters
    ----------
    hidden : int
        Model width.
    mixer : Mixer or None

    Returns
    -------
    tuple of Matmul

    References
    ----------
    1. Vaswani et al. 2017; Ainslie et al. 2023; DeepSeek-AI 2024 (V2, V3); Dao and Gu 2024; Yang et al. 2024.
    """
    match mixer:
        case None:
            return ()
        case SoftmaxAttention():
            q = mixer.heads * mixer.head_dim * (2 if mixer.gated else 1)
            kv = mixer.kv_heads * (mixer.head_dim + (0 if mixer.key_is_value else mixer.value_head_dim))
            return (
                Matmul(role="qkv", k=hidden, n=q + kv),
                Matmul(role="output", k=mixer.heads * mixer.value_head_dim, n=hidden, split="k"),
            )
        case LatentAttention():
            qk = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim
            down = mixer.kv_lora_rank + mixer.qk_rope_head_dim + (mixer.q_lora_rank or 0)
            matmuls = [
                Matmul(role="latent_down", k=hidden, n=down, split="-"),
                Matmul(role="query_up", k=mixer.q_lora_rank or hidden, n=mixer.heads * qk),
                Matmul(
                    role="key_value_up",
                    k=mixer.kv_lora_rank,
                    n=mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim),
                ),
                Matmul(role="output", k=mixer.heads * mixer.v_head_dim, n=hidden, split="k"),
            ]
            if mixer.index_heads:
                matmuls.append(
                    Matmul(
                        role="index_query",
                        k=mixer.q_lora_rank or hidden,
                        n=mixer.index_heads * mixer.index_head_dim,
                        split="-",
                    )
                )
                matmuls.append(
                    Matmul(role="index_key", k=hidden, n=mixer.index_head_dim + mixer.index_heads, split="-")
                )
            return tuple(matmuls)
        case StateSpace():
            inner = mixer.heads * mixer.head_dim
            return (
                Matmul(role="state_in", k=hidden, n=2 * inner + 2 * mixer.groups * mixer.state + mixer.heads),
                Matmul(role="state_out", k=inner, n=hidden, split="k"),
            )
        case LinearAttention():
            keys = mixer.key_heads * mixer.key_head_dim
            values = mixer.value_heads * mixer.value_head_dim
            return (
                Matmul(role="linear_in", k=hidden, n=2 * keys + 2 * values + 2 * mixer.value_heads),
                Matmul(role="linear_out", k=values, n=hidden, split="k"),
            )


def feed_forward_matmuls(hidden: int, feed_forward: FeedForward | None) -> tuple[Matmul, ...]:
    """Weight matrices of a feed-forward part.

    Parameters
    ----------
    hidden : int
        Model width.
    feed_forward : FeedForward or None

    Returns
    -------
    tuple of Matmul

    References
    ----------
    1. Shazeer, "GLU Variants Improve Transformer", 2020; DeepSeek-AI, "DeepSeekMoE", 2024.
    """
    match feed_forward:
        case None:
            return ()
        case DenseMlp(ffn=ffn, gated=gated):
            return (
                Matmul(role="mlp_up", k=hidden, n=ffn * (2 if gated else 1)),
                Matmul(role="mlp_down", k=ffn, n=hidden, split="k"),
            )
        case MoeMlp() as moe:
            up = 2 if moe.gated else 1
            width = moe.latent or hidden
            matmuls = [
                Matmul(role="router", k=hidden, n=moe.experts, split="-"),
                Matmul(
                    role="expert_up",
                    k=width,
                    n=moe.expert_ffn * up,
                    stored=moe.experts,
                    active=moe.active_experts,
                    expert=True,
                ),
                Matmul(
                    role="expert_down",
                    k=moe.expert_ffn,
                    n=width,
                    stored=moe.experts,
                    active=moe.active_experts,
                    split="k",
                    expert=True,
                ),
            ]
            if moe.latent:
                matmuls.append(Matmul(role="latent_in", k=hidden, n=moe.latent, split="-"))
                matmuls.append(Matmul(role="latent_out", k=moe.latent, n=hidden, split="-"))
            for role, ffn in (("shared", moe.shared_ffn), ("dense", moe.dense_ffn)):
                if ffn:
                    matmuls.append(Matmul(role=f"{role}_up", k=hidden, n=ffn * up))
                    matmuls.append(Matmul(role=f"{role}_down", k=ffn, n=hidden, split="k"))
            return tuple(matmuls)


def layer_matmuls(hidden: int, group: LayerGroup) -> tuple[Matmul, ...]:
    """All weight matrices of one layer of a group, mixer first.

    References
    ----------
    1. Narayanan et al. 2021, section 2.3 (which matrices tensor parallelism splits, and how).
    """
    return mixer_matmuls(hidden, group.mixer) + feed_forward_matmuls(hidden, group.feed_forward)
