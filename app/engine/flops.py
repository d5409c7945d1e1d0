"""What a token costs: forward FLOPs of matrices, attention and recurrences. Independent of hardware."""

import math
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


def attention_core_flops(mixer: Mixer | None, attended: float, *, absorbed: bool = False) -> float:
    """FLOPs of scores and weighted values for one query token that attends to ``attended`` tokens.

    Parameters
    ----------
    mixer : Mixer or None
    attended : float [token]
        Tokens in reach of the query, before any sparse selection.
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
    match mixer:
        case SoftmaxAttention():
            width = mixer.head_dim + mixer.value_head_dim
            indexed = attended / mixer.compression if mixer.compression else attended
            index = 2.0 * mixer.index_heads * mixer.index_head_dim * indexed
            return 2.0 * mixer.heads * width * _kept(mixer, attended) + index
        case LatentAttention():
            rope, rank = mixer.qk_rope_head_dim, mixer.kv_lora_rank
            width = 2 * rank + rope if absorbed else mixer.qk_nope_head_dim + rope + mixer.v_head_dim
            kept = min(attended, float(mixer.selected_tokens)) if mixer.selected_tokens else attended
            return 2.0 * mixer.heads * width * kept + 2.0 * mixer.index_heads * mixer.index_head_dim * attended
        case _:
            return 0.0


def _kept(mixer: SoftmaxAttention, attended: float) -> float:
    """Cache entries a query reads: the window, and beyond it compressed entries, selected ones when indexed."""
    if mixer.window is None:
        return min(attended, float(mixer.selected_tokens)) if mixer.selected_tokens else attended
    near = min(attended, float(mixer.window))
    if mixer.compression is None:
        return near
    far = attended / mixer.compression
    return near + (min(far, float(mixer.selected_tokens)) if mixer.selected_tokens else far)


def reach(mixer: Mixer | None, sequence: float, causal_fraction: float = CAUSAL_HALF) -> float:
    """Mean tokens in reach of a query of this mixer: a plain window limits it, compressed far entries do not.

    Parameters
    ----------
    mixer : Mixer or None
    sequence : float [token]
    causal_fraction : float [1]

    Returns
    -------
    float [token]

    References
    ----------
    1. :func:`attended_tokens`.
    """
    window = mixer.window if isinstance(mixer, SoftmaxAttention) and mixer.compression is None else None
    return attended_tokens(window, sequence, causal_fraction)


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
        core += repeats * attention_core_flops(group.mixer, reach(group.mixer, sequence, causal_fraction))
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
