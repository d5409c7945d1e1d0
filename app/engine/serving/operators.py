"""A transformer sharded by serving plans, as arrays: one row a plan, one column an operator of one accelerator.

Everything here depends on the architecture, the number formats and the plan only; times come in ``step``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.cache import state_elements
from app.engine.flops import recurrence_flops
from app.engine.matmuls import Matmul, layer_matmuls
from app.engine.precision import FORMATS
from app.engine.transformer import (
    LatentAttention,
    LayerGroup,
    MoeMlp,
    SoftmaxAttention,
    Transformer,
)

Floats = NDArray[np.float64]

# activations between kernels and logits stay in 16 bit in every engine; vLLM, TensorRT-LLM and SGLang documentation
ACTIVATION_BYTES = 2.0
# state-space and delta-rule states are kept in 32 bit; Dao and Gu 2024, mamba_ssm reference implementation
STATE_BYTES = 4.0
# sparse indexer keys are cached in FP8; DeepSeek-AI, "DeepSeek-V3.2", 2025
INDEX_BYTES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Precisions:
    """Number formats of the weights, the matmuls' activations, the key-value cache, and weights outside experts.

    Notes
    -----
    Published 4-bit checkpoints of mixture-of-experts models quantise the experts and leave attention in 16 bit; other
    formats are taken to cover every linear layer.

    References
    ----------
    1. NVIDIA ModelOpt checkpoints, ``hf_quant_config.json``, ``exclude_modules``.
    2. OpenAI, "gpt-oss model card", 2025.
    """

    weights: str
    activations: str
    kv: str
    outside_experts: str

    def __post_init__(self) -> None:
        for name in (self.weights, self.activations, self.kv, self.outside_experts):
            if name not in FORMATS:
                raise ValueError(f"unknown number format {name!r}; known: {', '.join(sorted(FORMATS))}")


def checkpoint_precisions(t: Transformer, weights: str, activations: str, kv: str) -> Precisions:
    """Formats as published checkpoints use them (see :class:`Precisions`).

    Parameters
    ----------
    t : Transformer
    weights : str
    activations : str
    kv : str

    Returns
    -------
    Precisions

    References
    ----------
    1. NVIDIA ModelOpt checkpoints, ``hf_quant_config.json``.
    """
    experts_only = weights in ("mxfp4", "nvfp4") and any(isinstance(g.feed_forward, MoeMlp) for g in t.groups)
    return Precisions(
        weights=weights, activations=activations, kv=kv, outside_experts="bf16" if experts_only else weights
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanArrays:
    """Serving plans as equal-length arrays: tensor, pipeline, expert and attention-data parallel widths."""

    tensor: Floats
    pipeline: Floats
    expert: Floats
    data: Floats

    @property
    def accelerators(self) -> Floats:
        """Accelerators of one replica."""
        return self.tensor * self.pipeline * self.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Operators of one accelerator per plan; arrays are ``(plans, operators)``, or ``(plans, 1)`` where summed.

    Parameters
    ----------
    copies, inner, outer : array
        Matmuls: how many times a step runs it (all pipeline stages), inner and output size after sharding.
    weight_bytes : array [byte]
        Of one copy.
    head : array of bool
        True for the language-model head (sampled tokens only).
    moe_layers, moe_inner_bytes, ... : array
        Grouped expert matmuls, one column per kind of MoE layer.
    attention_layers, ... : array
        One column per kind of token mixer.

    References
    ----------
    1. Pope et al., "Efficiently Scaling Transformer Inference", 2022 (sharding of inference operators).
    2. Shazeer 2019; Ainslie et al. 2023; DeepSeek-AI 2024 (cache bytes by attention kind).
    """

    copies: Floats
    inner: Floats
    outer: Floats
    weight_bytes: Floats
    low_precision: Floats
    head: Floats
    moe_layers: Floats
    moe_experts_local: Floats
    moe_active_share: Floats
    moe_weights_per_expert: Floats
    moe_bytes_per_expert: Floats
    moe_width: Floats
    moe_ffn_local: Floats
    moe_active: Floats
    attention_layers: Floats
    kv_bytes_per_token: Floats
    read_cap: Floats
    held_cap: Floats
    index_bytes_per_token: Floats
    state_bytes: Floats
    decode_flops_per_token: Floats
    prefill_flops_per_pair: Floats
    linear_flops_per_token: Floats
    query_group: Floats
    layers: Floats
    hidden: Floats
    all_reduces: Floats
    dispatches: Floats
    tensor: Floats
    pipeline: Floats
    expert: Floats
    data: Floats
    weights_resident_bytes: Floats


def _matmul_columns(
    t: Transformer, precisions: Precisions, plans: PlanArrays
) -> tuple[list[tuple[Floats, ...]], list[LayerGroup]]:
    """Columns (copies, inner, outer, weight_bytes, low_precision, head) of every matmul outside the experts."""
    one = np.ones_like(plans.tensor)
    low = FORMATS[precisions.outside_experts].bytes_per_element
    columns: list[tuple[Floats, ...]] = []
    for group in t.groups:
        for matmul in layer_matmuls(t.hidden, group):
            if matmul.expert:
                continue
            inner, outer = _sharded(matmul, group, plans)
            width = ACTIVATION_BYTES if matmul.role == "router" else low
            quantised = float(width < ACTIVATION_BYTES)
            columns.append(
                (one * group.count * matmul.stored, inner, outer, inner * outer * width, one * quantised, one * 0.0)
            )
    outer = t.vocab / plans.tensor
    columns.append((one, one * t.hidden, outer, t.hidden * outer * ACTIVATION_BYTES, one * 0.0, one))
    return columns, list(t.groups)


def _sharded(matmul: Matmul, group: LayerGroup, plans: PlanArrays) -> tuple[Floats, Floats]:
    """Inner and output size on one tensor-parallel rank; key and value heads are replicated past their number."""
    one = np.ones_like(plans.tensor)
    inner, outer = one * matmul.k, one * matmul.n
    if matmul.split == "k":
        inner = inner / plans.tensor
    elif matmul.split == "n":
        mixer = group.mixer
        if matmul.role == "qkv" and isinstance(mixer, SoftmaxAttention):
            kv = mixer.kv_heads * (mixer.head_dim + (0 if mixer.key_is_value else mixer.value_head_dim))
            share = np.maximum(1.0 / plans.tensor, 1.0 / mixer.kv_heads)
            outer = (matmul.n - kv) / plans.tensor + kv * share
        else:
            outer = outer / plans.tensor
    return inner, outer


def _moe_columns(t: Transformer, precisions: Precisions, plans: PlanArrays) -> list[tuple[Floats, ...]]:
    """Columns of every kind of MoE layer: experts on a rank, their sizes after expert-tensor sharding."""
    width_bytes = FORMATS[precisions.weights].bytes_per_element
    group_width = plans.tensor * plans.data
    columns: list[tuple[Floats, ...]] = []
    for group in t.groups:
        moe = group.feed_forward
        if not isinstance(moe, MoeMlp):
            continue
        expert_tensor = group_width / plans.expert
        matrices = 3.0 if moe.gated else 2.0
        width = float(moe.latent or t.hidden)
        ffn = moe.expert_ffn / expert_tensor
        weights = matrices * width * ffn
        one = np.ones_like(plans.tensor)
        columns.append(
            (
                one * group.count,
                moe.experts / plans.expert,
                one * (moe.active_experts / moe.experts),
                weights,
                weights * width_bytes,
                one * width,
                ffn,
                one * moe.active_experts,
            )
        )
    return columns


def _attention_column(group: LayerGroup, kv_bytes: float, plans: PlanArrays) -> tuple[Floats, ...]:
    """One token mixer's cache bytes and FLOPs on one rank (see :class:`Operators` for the order)."""
    one = np.ones_like(plans.tensor)
    zero = one * 0.0
    match group.mixer:
        case SoftmaxAttention() as a:
            heads = a.heads / plans.tensor
            entry = np.maximum(a.kv_heads / plans.tensor, 1.0) * (
                a.head_dim + (0 if a.key_is_value else a.value_head_dim)
            )
            flops = 2.0 * heads * (a.head_dim + a.value_head_dim)
            compressed = entry * kv_bytes / a.compression if a.compression else zero
            cap = one * (a.window or np.inf)
            kept = one * min(a.window or np.inf, (a.selected_tokens or np.inf) if not a.compression else np.inf)
            shared = heads / np.maximum(a.kv_heads / plans.tensor, 1.0)
            return (one * group.count, entry * kv_bytes, kept, cap, compressed, zero, flops, flops, zero, shared)
        case LatentAttention() as a:
            heads = a.heads / plans.tensor
            latent = a.kv_lora_rank + a.qk_rope_head_dim
            index = one * (INDEX_BYTES * a.index_head_dim if a.index_heads else 0.0)
            index_flops = one * (2.0 * a.index_heads * a.index_head_dim)
            prefill = 2.0 * heads * (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim)
            decode = 2.0 * heads * (latent + a.kv_lora_rank)
            kept = one * (a.selected_tokens or np.inf)
            return (
                one * group.count, one * latent * kv_bytes, kept, one * np.inf, index, zero, decode, prefill,
                index_flops, one,
            )  # fmt: skip
        case None:
            return (zero, zero, one, one, zero, zero, zero, zero, zero, one)
        case recurrent:
            state = STATE_BYTES * state_elements(recurrent) / plans.tensor
            flops = recurrence_flops(recurrent) / plans.tensor
            return (one * group.count, zero, one, one, zero, state, zero, zero, flops, one)


def _stack(columns: list[tuple[Floats, ...]], width: int) -> list[Floats]:
    """Turn a list of columns into ``width`` arrays of shape (plans, columns)."""
    return [np.stack([column[i] for column in columns], axis=1) for i in range(width)]


def build_operators(t: Transformer, precisions: Precisions, plans: PlanArrays) -> Operators:
    """Shard an architecture by each of the plans.

    Parameters
    ----------
    t : Transformer
    precisions : Precisions
    plans : PlanArrays
        Widths, each array of shape (plans,).

    Returns
    -------
    Operators

    Notes
    -----
    Experts are split by expert parallelism first, then by tensor parallelism of what is left of the group. The MLA
    latent is replicated on every tensor-parallel rank.

    References
    ----------
    1. Pope et al. 2022. 2. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 3.4.
    """
    matmuls, groups = _matmul_columns(t, precisions, plans)
    moe = _moe_columns(t, precisions, plans) or [tuple(np.zeros_like(plans.tensor) for _ in range(8))]
    kv_bytes = FORMATS[precisions.kv].bytes_per_element
    mixers = [_attention_column(g, kv_bytes, plans) for g in groups if g.mixer is not None]
    copies, inner, outer, weight_bytes, low, head = _stack(matmuls, 6)
    m = _stack(moe, 8)
    a = _stack(mixers or [_attention_column(groups[0], kv_bytes, plans)], 10)
    embeddings = (0.0 if t.tied_embeddings else t.vocab * t.hidden * ACTIVATION_BYTES) / plans.tensor
    expert_weights = (m[0] * m[1] * m[4]).sum(axis=1)
    extra = t.other_parameters * ACTIVATION_BYTES / plans.tensor
    resident = ((copies * weight_bytes).sum(axis=1) + expert_weights + embeddings + extra) / plans.pipeline
    mixer_layers = float(sum(g.count for g in groups if g.mixer is not None))
    mlp_layers = float(sum(g.count for g in groups if g.feed_forward is not None))
    moe_layers = float(sum(g.count for g in groups if isinstance(g.feed_forward, MoeMlp)))
    spread = (plans.data > 1.0).astype(float)
    reduces = np.where(plans.tensor > 1.0, mixer_layers + mlp_layers - moe_layers * spread, 0.0)

    def row(value: Floats) -> Floats:
        return np.asarray(value, dtype=np.float64).reshape(-1, 1)

    one = np.ones_like(plans.tensor)
    return Operators(
        copies=copies, inner=inner, outer=outer, weight_bytes=weight_bytes, low_precision=low, head=head,
        moe_layers=m[0], moe_experts_local=m[1], moe_active_share=m[2], moe_weights_per_expert=m[3],
        moe_bytes_per_expert=m[4], moe_width=m[5], moe_ffn_local=m[6], moe_active=m[7],
        attention_layers=a[0], kv_bytes_per_token=a[1], read_cap=a[2], held_cap=a[3], index_bytes_per_token=a[4],
        state_bytes=a[5], decode_flops_per_token=a[6], prefill_flops_per_pair=a[7], linear_flops_per_token=a[8],
        query_group=a[9], layers=row(one * max(mixer_layers, mlp_layers)), hidden=row(one * t.hidden),
        all_reduces=row(reduces), dispatches=row(moe_layers * spread), tensor=row(plans.tensor),
        pipeline=row(plans.pipeline), expert=row(plans.expert), data=row(plans.data),
        weights_resident_bytes=row(resident),
    )  # fmt: skip
