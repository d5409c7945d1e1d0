"""What a token costs: forward FLOPs of matrices, attention and recurrences. Independent of hardware."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from app.engine import kernels
from app.engine.matmuls import layer_matmuls
from app.engine.transformer import (
    LatentAttention,
    LayerGroup,
    LinearAttention,
    Mixer,
    SoftmaxAttention,
    StateSpace,
    Transformer,
)

# Decay, input and read-out of a recurrent state: FLOPs a state element and token, as Megatron-LM counts its Mamba
# layers (NVIDIA/Megatron-LM megatron/training/training.py, num_floating_point_operations: "7 * ... * d_in * state").
RECURRENCE_FLOPS_PER_STATE_ELEMENT = 7.0

# Share of the full score matrix that causal attention computes; sources also count the full one (see Megatron 2021).
CAUSAL_HALF = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardFlops:
    """Forward pass FLOPs of one token, averaged over a sequence [FLOP/token].

    Parameters
    ----------
    layer_matmuls : float
        Weight matrices of all layers.
    head : float
        Output projection onto the vocabulary.
    attention_core : float
        Scores, values and sparse indexers: grows with the sequence.
    recurrence : float
        State updates of linear and state-space layers.
    """

    layer_matmuls: float
    head: float
    attention_core: float
    recurrence: float

    @property
    def total(self) -> float:
        """Sum of the parts [FLOP/token]."""
        return self.layer_matmuls + self.head + self.attention_core + self.recurrence


def attended_tokens(window: int | None, sequence: float, causal_fraction: float = CAUSAL_HALF) -> float:
    """Mean number of tokens a query attends to over a sequence.

    Parameters
    ----------
    window : int or None [token]
        Sliding window, None = full attention.
    sequence : float [token]
    causal_fraction : float [1]
        0.5 counts the causal half, 1.0 the full score matrix.

    Returns
    -------
    float [token]

    Notes
    -----
    A window's own triangle at the start of the sequence is left out in the same proportion: ``w - w^2 / (2 s)`` at
    0.5 and ``min(w, s)`` at 1.0.

    References
    ----------
    1. Beltagy et al., "Longformer", 2020; Narayanan et al. 2021 (the full-matrix convention).
    """
    if sequence <= 0.0:
        return 0.0
    return float(kernels.attended_tokens(sequence, math.inf if window is None else float(window), causal_fraction))


def attention_core_flops(mixer: Mixer | None, position: float, *, absorbed: bool = False) -> float:
    """FLOPs of scores, weighted values and indexer for one query token with ``position`` tokens before it.

    Parameters
    ----------
    mixer : Mixer or None
    position : float [token]
        Tokens in the context, before windows and sparse selection.
    absorbed : bool
        Latent attention computed on the compressed cache (decode) instead of expanded heads (training, prefill).

    Returns
    -------
    float [FLOP/token]

    References
    ----------
    1. Dao et al., "FlashAttention", 2022 (4 s d per token forward, full matrix).
    2. DeepSeek-AI, "DeepSeek-V2", 2024, section 2.1 (absorption); "DeepSeek-V3.2", 2025 (indexer and selection).
    """
    return _core_flops(
        mixer, lambda limit: position if limit is None else min(position, float(limit)), absorbed=absorbed
    )


def sequence_core_flops(mixer: Mixer | None, sequence: float, causal_fraction: float = CAUSAL_HALF) -> float:
    """The same for the mean query of a training or prefill sequence.

    Parameters
    ----------
    mixer : Mixer or None
    sequence : float [token]
    causal_fraction : float [1]
        0.5 counts the causal half, 1.0 the full score matrix.

    Returns
    -------
    float [FLOP/token]

    References
    ----------
    1. :func:`attended_tokens`, :func:`attention_core_flops`.
    """
    return _core_flops(mixer, lambda limit: attended_tokens(limit, sequence, causal_fraction), absorbed=False)


def _core_flops(mixer: Mixer | None, tokens: Callable[[int | None], float], *, absorbed: bool) -> float:
    """FLOPs of the attention core, where ``tokens`` says how many tokens are met under a limit."""
    match mixer:
        case SoftmaxAttention(compression=int(ratio)):
            # a window, and entries each worth ``ratio`` tokens, of which an indexer keeps some
            limit = mixer.selected_tokens * ratio if mixer.selected_tokens else None
            kept, indexed = tokens(mixer.window) + tokens(limit) / ratio, tokens(None) / ratio
            width = mixer.head_dim + mixer.value_head_dim
        case SoftmaxAttention():
            limits = [limit for limit in (mixer.window, mixer.selected_tokens) if limit is not None]
            kept, indexed = tokens(min(limits, default=None)), tokens(mixer.window)
            width = mixer.head_dim + mixer.value_head_dim
        case LatentAttention():
            kept, indexed = tokens(mixer.selected_tokens), tokens(None)
            rope, rank = mixer.qk_rope_head_dim, mixer.kv_lora_rank
            width = 2 * rank + rope if absorbed else mixer.qk_nope_head_dim + rope + mixer.v_head_dim
        case _:
            return 0.0
    return 2.0 * mixer.heads * width * kept + 2.0 * mixer.index_heads * mixer.index_head_dim * indexed


def recurrence_flops(mixer: Mixer | None) -> float:
    """FLOPs of the state update and read-out of one token [FLOP/token]; 0 for attention.

    Parameters
    ----------
    mixer : Mixer or None

    Returns
    -------
    float [FLOP/token]

    References
    ----------
    1. Dao and Gu 2024 (Mamba-2); Yang et al. 2024 (gated delta rule); count as in Megatron-LM (see the constant).
    """
    return RECURRENCE_FLOPS_PER_STATE_ELEMENT * recurrent_state_elements(mixer)


def recurrent_state_elements(mixer: Mixer | None) -> int:
    """Elements of the recurrent state of one sequence and layer, without the convolution's tail.

    Parameters
    ----------
    mixer : Mixer or None

    Returns
    -------
    int

    References
    ----------
    1. Dao and Gu 2024; Yang et al. 2024.
    """
    match mixer:
        case StateSpace():
            return mixer.heads * mixer.head_dim * mixer.state
        case LinearAttention():
            return mixer.value_heads * mixer.value_head_dim * mixer.key_head_dim
        case _:
            return 0


def forward_flops(
    transformer: Transformer,
    sequence: float,
    *,
    causal_fraction: float = CAUSAL_HALF,
    mtp_layers: int = 0,
) -> ForwardFlops:
    """Forward FLOPs of one token in a training or prefill sequence.

    Parameters
    ----------
    transformer : Transformer
    sequence : float [token]
    causal_fraction : float [1]
        0.5 = causal half (Megatron-Bridge, MaxText today), 1.0 = full matrix (Megatron 2021, NeMo 24).
    mtp_layers : int
        Multi-token-prediction layers trained as well; each adds the last layer, a ``2h x h`` projection and a head.

    Returns
    -------
    ForwardFlops [FLOP/token]

    Notes
    -----
    Training without recomputation costs three times this. Norms, rotary, softmax and activation functions are left
    out (below 1 % of the FLOPs; they cost memory time, see ``kernels``).

    References
    ----------
    1. Narayanan et al. 2021, eq. 3 (with ``causal_fraction=1`` and a plain MLP: its forward quarter).
    2. DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024, section 2.2 (multi-token prediction).
    """
    matmul = core = recurrence = 0.0
    for group in transformer.groups:
        repeats = group.count + (mtp_layers if group is transformer.groups[-1] else 0)
        matmul += repeats * group_matmul_flops(transformer.hidden, group)
        core += repeats * sequence_core_flops(group.mixer, sequence, causal_fraction)
        recurrence += repeats * recurrence_flops(group.mixer)
    matmul += mtp_layers * 4.0 * transformer.hidden**2
    head = 2.0 * transformer.hidden * transformer.vocab * (1 + mtp_layers)
    return ForwardFlops(layer_matmuls=matmul, head=head, attention_core=core, recurrence=recurrence)


def group_matmul_flops(hidden: int, group: LayerGroup) -> float:
    """FLOPs of the weight matrices of one layer for one token.

    Parameters
    ----------
    hidden : int
    group : LayerGroup

    Returns
    -------
    float [FLOP/token]

    References
    ----------
    1. Narayanan et al. 2021, appendix (2 m k n a matrix product).
    """
    return sum(2.0 * m.k * m.n * m.active for m in layer_matmuls(hidden, group))
