"""Weight matrices of a layer: shapes, copies, and how tensor and expert parallelism divide them."""

from dataclasses import dataclass

from app.engine.transformer import (
    DenseMlp,
    FeedForward,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    Mixer,
    MoeMlp,
    SoftmaxAttention,
    StateSpace,
)


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
            return _softmax_matmuls(hidden, mixer)
        case LatentAttention():
            return _latent_matmuls(hidden, mixer)
        case StateSpace():
            inner = mixer.heads * mixer.head_dim
            return (
                Matmul(role="state_in", k=hidden, n=2 * inner + 2 * mixer.groups * mixer.state + mixer.heads),
                Matmul(role="state_out", k=inner, n=hidden, split="k"),
            )
        case LinearAttention():
            return _linear_matmuls(hidden, mixer)


def _linear_matmuls(hidden: int, mixer: LinearAttention) -> tuple[Matmul, ...]:
    keys = mixer.key_heads * mixer.key_head_dim
    values = mixer.value_heads * mixer.value_head_dim
    # queries, keys, values, write strengths; then decay and output gate, each perhaps the first of a low-rank pair
    width = 2 * keys + values + mixer.value_heads
    width += (mixer.decay_rank or mixer.value_heads) + (mixer.gate_rank or values)
    matmuls = [Matmul(role="linear_in", k=hidden, n=width)]
    for rank, columns in ((mixer.decay_rank, keys), (mixer.gate_rank, values)):
        if rank:
            matmuls.append(Matmul(role="linear_gate", k=rank, n=columns))
    return (*matmuls, Matmul(role="linear_out", k=values, n=hidden, split="k"))


def _softmax_matmuls(hidden: int, mixer: SoftmaxAttention) -> tuple[Matmul, ...]:
    q = mixer.heads * mixer.head_dim * (2 if mixer.gated else 1)
    kv = mixer.kv_heads * (mixer.head_dim + (0 if mixer.key_is_value else mixer.value_head_dim))
    kv = 0 if mixer.shares_cache else kv
    out = mixer.heads * mixer.value_head_dim
    if mixer.q_lora_rank:
        matmuls = [
            Matmul(role="latent_down", k=hidden, n=mixer.q_lora_rank + kv, split="-"),
            Matmul(role="query_up", k=mixer.q_lora_rank, n=q),
        ]
    else:
        matmuls = [Matmul(role="qkv", k=hidden, n=q + kv)]
    if mixer.output_lora_rank:
        rank = mixer.output_groups * mixer.output_lora_rank
        matmuls.append(
            Matmul(
                role="output_down",
                k=out // mixer.output_groups,
                n=mixer.output_lora_rank,
                stored=mixer.output_groups,
                active=mixer.output_groups,
            )
        )
        matmuls.append(Matmul(role="output", k=rank, n=hidden, split="k"))
    else:
        matmuls.append(Matmul(role="output", k=out, n=hidden, split="k"))
    if mixer.compression:
        # values and gates; the fine ratio keeps two overlapping series and compresses for its indexer too
        series = 2 if mixer.index_heads else 1
        width = 2 * series * (mixer.head_dim + mixer.index_head_dim)
        matmuls.append(Matmul(role="compress", k=hidden, n=width, split="-"))
    if mixer.index_heads:
        width = mixer.index_heads * mixer.index_head_dim
        matmuls.append(Matmul(role="index_query", k=mixer.q_lora_rank or hidden, n=width, split="-"))
        # keys of their own, or with compression (which makes them) only the heads' weights
        columns = mixer.index_heads if mixer.compression else mixer.index_head_dim
        matmuls.append(Matmul(role="index_key", k=hidden, n=columns, split="-"))
    return tuple(matmuls)


def _latent_matmuls(hidden: int, mixer: LatentAttention) -> tuple[Matmul, ...]:
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
    if mixer.gated:
        matmuls.append(Matmul(role="output_gate", k=hidden, n=mixer.heads * mixer.v_head_dim))
    if mixer.index_heads:
        matmuls.append(
            Matmul(
                role="index_query",
                k=mixer.q_lora_rank or hidden,
                n=mixer.index_heads * mixer.index_head_dim,
                split="-",
            )
        )
        matmuls.append(Matmul(role="index_key", k=hidden, n=mixer.index_head_dim + mixer.index_heads, split="-"))
    return tuple(matmuls)


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

    Parameters
    ----------
    hidden : int
        Model width.
    group : LayerGroup

    Returns
    -------
    tuple of Matmul

    References
    ----------
    1. Narayanan et al. 2021, section 2.3 (which matrices tensor parallelism splits, and how).
    """
    return mixer_matmuls(hidden, group.mixer) + feed_forward_matmuls(hidden, group.feed_forward)
