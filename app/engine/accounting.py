"""What an architecture holds: parameters, counted to the last one. Independent of hardware."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.engine.matmuls import feed_forward_matmuls, layer_matmuls, mixer_matmuls
from app.engine.transformer import (
    DenseMlp,
    LatentAttention,
    LayerGroup,
    LinearAttention,
    Mixer,
    MoeMlp,
    SoftmaxAttention,
    StateSpace,
    Transformer,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Parameters of a model.

    Parameters
    ----------
    total : int
        Everything held, towers outside the text stack included, multi-token-prediction layers not.
    active : int
        What one text token passes through, both embeddings included.
    active_without_input_embedding : int
        The same without the input table when it is not tied to the head (what most model cards print).
    embedding, head : int
        Input table; output matrix (0 when tied).
    routed_experts : int
        Held in all routed experts (what expert parallelism shards).
    other : int
        Outside the text stack.
    """

    total: int
    active: int
    active_without_input_embedding: int
    embedding: int
    head: int
    routed_experts: int
    other: int


def vector_parameters(transformer: Transformer, group: LayerGroup) -> int:
    """Parameters of one layer outside its matrices: norms, biases, convolutions, gates, sinks.

    Parameters
    ----------
    transformer : Transformer
    group : LayerGroup

    Returns
    -------
    int
        Parameters per layer.

    References
    ----------
    1. Reference model classes of Hugging Face transformers 5.24 (llama, qwen3, gpt_oss, deepseek_v3, nemotron_h ...).
    """
    norms = group.norms * transformer.hidden * (2 if transformer.norm_bias else 1)
    return norms + _mixer_vectors(transformer.hidden, group.mixer) + _mlp_vectors(transformer, group)


def _mixer_vectors(hidden: int, mixer: Mixer | None) -> int:
    match mixer:
        case None:
            return 0
        case SoftmaxAttention():
            return _softmax_vectors(hidden, mixer)
        case LatentAttention():
            index = 2 * mixer.index_head_dim if mixer.index_heads else 0
            return (mixer.q_lora_rank or 0) + mixer.kv_lora_rank + index
        case StateSpace():
            inner = mixer.heads * mixer.head_dim
            channels = inner + 2 * mixer.groups * mixer.state
            return channels * (mixer.convolution + 1) + 3 * mixer.heads + inner
        case LinearAttention():
            channels = 2 * mixer.key_heads * mixer.key_head_dim + mixer.value_heads * mixer.value_head_dim
            decay = mixer.key_heads * mixer.key_head_dim if mixer.decay_rank else mixer.value_heads
            return channels * mixer.convolution + decay + mixer.value_heads + mixer.value_head_dim


def _softmax_vectors(hidden: int, mixer: SoftmaxAttention) -> int:
    queries = mixer.heads * mixer.head_dim
    keys = 0 if mixer.shares_cache else mixer.kv_heads * mixer.head_dim
    values = 0 if mixer.shares_cache or mixer.key_is_value else mixer.kv_heads * mixer.value_head_dim
    total = queries * (2 if mixer.gated else 1) + keys + values if mixer.bias else 0
    total += hidden if mixer.output_bias else 0
    head_norms = mixer.head_dim * (1 if mixer.shares_cache else 2)
    total += {"head": head_norms, "full": queries + keys, None: 0}[mixer.qk_norm]
    total += mixer.heads if mixer.sinks else 0
    total += (mixer.q_lora_rank or 0) + (mixer.head_dim if mixer.key_norm else 0)
    if mixer.index_heads and not mixer.compression:
        total += 2 * mixer.index_head_dim
    if mixer.compression:
        series = 2 if mixer.index_heads else 1
        width = mixer.head_dim + mixer.index_head_dim
        total += mixer.compression * series * width + width
    return total


def _mlp_vectors(transformer: Transformer, group: LayerGroup) -> int:
    match group.feed_forward:
        case DenseMlp(ffn=ffn, gated=gated, bias=True):
            return ffn * (2 if gated else 1) + transformer.hidden
        case MoeMlp() as moe:
            expert = moe.expert_ffn * (2 if moe.gated else 1) + transformer.hidden if moe.bias else 0
            router = moe.experts if moe.router_bias else 0
            return moe.experts * expert + router + (transformer.hidden if moe.shared_gate else 0)
        case _:
            return 0


def count_parameters(transformer: Transformer) -> ParameterCount:
    """Count the parameters of an architecture exactly.

    Parameters
    ----------
    transformer : Transformer

    Returns
    -------
    ParameterCount

    Notes
    -----
    Checked to the parameter against the reference classes for the published configurations in ``tests/data``.
    Non-trained buffers (rotary tables, expert balance biases) are not parameters.

    References
    ----------
    1. Narayanan et al., "Efficient Large-Scale Language Model Training on GPU Clusters", SC 2021, eq. 2.
    2. Hugging Face transformers 5.24, reference classes.
    """
    hidden = transformer.hidden
    held = active = routed = 0
    for group in transformer.groups:
        vectors = vector_parameters(transformer, group) + group.other_parameters
        matmuls = layer_matmuls(hidden, group)
        stored = sum(m.k * m.n * m.stored for m in matmuls)
        idle = sum(m.k * m.n * (m.stored - m.active) for m in matmuls if m.expert)
        match group.feed_forward:
            case MoeMlp(bias=True) as moe:
                expert_bias = moe.expert_ffn * (2 if moe.gated else 1) + hidden
                idle += (moe.experts - moe.active_experts) * expert_bias
            case _:
                pass
        held += group.count * (stored + vectors)
        active += group.count * (stored + vectors - round(idle))
        routed += group.count * sum(m.k * m.n * m.stored for m in matmuls if m.expert)
    embedding = transformer.vocab * hidden
    head = 0 if transformer.tied_embeddings else embedding
    norm = hidden * (2 if transformer.norm_bias else 1)
    outside = embedding + head + transformer.positions * hidden + norm + transformer.final_parameters
    return ParameterCount(
        total=held + outside + transformer.other_parameters,
        active=active + outside,
        active_without_input_embedding=active + outside - (embedding if head else 0),
        embedding=embedding,
        head=head,
        routed_experts=routed,
        other=transformer.other_parameters,
    )


def adapter_parameters(transformer: Transformer, rank: int, targets: Iterable[str] = ("attention", "mlp")) -> int:
    """Parameters of low-rank adapters on a model's matrices.

    Parameters
    ----------
    transformer : Transformer
    rank : int
    targets : iterable of str
        ``attention``: matrices of the token mixers; ``mlp``: of the feed-forward parts, routers left out.

    Returns
    -------
    int

    Notes
    -----
    One pair of rank-r matrices for each matrix, ``r (k + n)``; the routed experts of a layer share one pair.

    References
    ----------
    1. Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, section 4.
    """
    wanted = set(targets)
    total = 0
    for group in transformer.groups:
        matmuls = mixer_matmuls(transformer.hidden, group.mixer) if "attention" in wanted else ()
        matmuls += feed_forward_matmuls(transformer.hidden, group.feed_forward) if "mlp" in wanted else ()
        total += group.count * rank * sum(m.k + m.n for m in matmuls if m.role != "router")
    return total
