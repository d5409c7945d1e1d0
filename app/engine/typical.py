"""A typical dense architecture for a bare parameter count, when nothing else is known of a model."""

import math
from dataclasses import replace

from app.engine.accounting import count_parameters
from app.engine.errors import EngineInputError
from app.engine.transformer import DenseMlp, LayerGroup, MoeMlp, SoftmaxAttention, Transformer

# Layers of the Llama 3 family by parameters: 1B 16, 3B 28, 8B 32, 70B 80, 405B 126 (Grattafiori et al. 2024, table 3,
# and the Llama 3.2 configurations). Between them, and beyond, straight lines in the logarithms.
DEPTHS = ((1.236e9, 16.0), (3.213e9, 28.0), (8.030e9, 32.0), (70.55e9, 80.0), (405.9e9, 126.0))

# Inner width of the gated MLP over the model's width: 14336 / 4096 and 28672 / 8192 (same table).
FFN_RATIO = 3.5
# Key-value heads of every Llama 3 size; 128 wide heads, 64 at the width of the 1B (same table and configurations).
KV_HEADS = 8
HEAD_DIM = 128
SMALL_HEAD_DIM = 64
SMALL_HIDDEN = 2048

# Widths that leave heads divisible by the usual tensor-parallel sizes, as published ones are: (up to, multiples of).
HIDDEN_STEPS = ((1024.0, 256), (2048.0, 512), (math.inf, 1024))

# Vocabulary of Llama 3, tied up to the 3B size; below a billion the 32,000 of Llama 2 and TinyLlama, tied.
VOCAB = 128256
SMALL_VOCAB = 32000
SMALL_MODEL = 1e9
TIED_BELOW = 4e9

# Routed experts of a token: Qwen3, OLMoE, DeepSeek-V3 and Kimi K2 all use eight (their reports).
ACTIVE_EXPERTS = 8

# Range in which the rule was checked to reproduce the asked count within 2 %.
SMALLEST = 3e7
LARGEST = 2e13
# Widths are multiples of the tensor-core tile (NVIDIA, "Matrix Multiplication Background User's Guide", 2023).
FFN_STEP = 64


def typical_transformer(parameters: float, name: str = "") -> Transformer:
    """Typical modern dense architecture with about the asked number of parameters.

    Parameters
    ----------
    parameters : float [parameter]
        Total parameters, input embedding included.
    name : str
        Name to carry.

    Returns
    -------
    Transformer
        Llama-like: grouped-query attention, gated MLP, RMSNorm; within 2 % of the asked count.

    Raises
    ------
    EngineInputError
        Outside 30 million to 20 trillion parameters.

    Notes
    -----
    Depth follows the Llama 3 family, width solves the count, the MLP's width takes the remainder. A real model of the
    same size differs in depth by up to 40 % (Qwen3 8B has 36 layers, Qwen3 32B 64), which moves attention, pipeline and
    communication but not the matrix FLOPs; results from it are labelled as assumed.

    References
    ----------
    1. Grattafiori et al., "The Llama 3 Herd of Models", 2024, table 3.
    2. Qwen Team, "Qwen3 Technical Report", 2025, table 1 (the same ratios within 40 %).
    """
    if not SMALLEST <= parameters <= LARGEST:
        bound = SMALLEST if parameters < SMALLEST else LARGEST
        raise EngineInputError(
            "parameters",
            f"{parameters:.3g} is outside the range for a typical architecture, {SMALLEST:.0g} to {LARGEST:.0g}",
            {"parameters": bound},
        )
    vocab = SMALL_VOCAB if parameters < SMALL_MODEL else VOCAB
    tied = parameters < TIED_BELOW
    layers = max(2, round(_depth(parameters)))
    hidden = _hidden(parameters, layers, vocab * (1 if tied else 2))
    head_dim = SMALL_HEAD_DIM if hidden <= SMALL_HIDDEN else HEAD_DIM
    heads = hidden // head_dim
    kv_heads = math.gcd(heads, KV_HEADS)
    attention = 2 * hidden * head_dim * (heads + kv_heads)
    rest = layers * (attention + 2 * hidden) + hidden + vocab * hidden * (1 if tied else 2)
    ffn = max(FFN_STEP, round((parameters - rest) / (3 * hidden * layers) / FFN_STEP) * FFN_STEP)
    mixer = SoftmaxAttention(heads=heads, kv_heads=kv_heads, head_dim=head_dim, value_head_dim=head_dim)
    return Transformer(
        name=name or f"typical {parameters:.3g}",
        hidden=hidden,
        vocab=vocab,
        tied_embeddings=tied,
        groups=(LayerGroup(count=layers, mixer=mixer, feed_forward=DenseMlp(ffn=ffn)),),
    )


def typical_mixture(parameters: float, active_parameters: float, name: str = "") -> Transformer:
    """Typical mixture of experts with about the asked total and active parameters.

    Parameters
    ----------
    parameters, active_parameters : float [parameter]
        Total, and what one token passes through, input embedding included.
    name : str
        Name to carry.

    Returns
    -------
    Transformer
        Attention of the typical dense model of the active size, and routed experts of which a token visits eight.

    Raises
    ------
    EngineInputError
        When the active parameters are not fewer than the total, or leave no room for experts.

    Notes
    -----
    The total is met within 3 %, in whole experts; the active count within 3 %. Real models differ in how fine their
    experts are, which moves communication and matrix efficiency: results from it are labelled as assumed.

    References
    ----------
    1. Qwen Team 2025 (Qwen3-30B-A3B, 235B-A22B), Muennighoff et al. 2024 (OLMoE), DeepSeek-AI 2024: eight of many.
    """
    if not 0.0 < active_parameters < parameters:
        raise EngineInputError("active_parameters", "must be positive and fewer than the total parameters")
    dense = typical_transformer(active_parameters)
    group = dense.groups[0]
    hollow = replace(dense, groups=(replace(group, feed_forward=None),))
    matrices = 3.0 * dense.hidden * group.count
    rest = count_parameters(hollow).total
    width = round((active_parameters - rest) / matrices / ACTIVE_EXPERTS / FFN_STEP) * FFN_STEP
    if width < FFN_STEP:
        raise EngineInputError("active_parameters", "leave no room for experts beside attention and embeddings")
    experts = max(ACTIVE_EXPERTS + 1, round((parameters - rest) / matrices / width))
    mlp = MoeMlp(experts=experts, active_experts=ACTIVE_EXPERTS, expert_ffn=width)
    return replace(
        dense,
        name=name or f"typical {parameters:.3g} with {active_parameters:.3g} active",
        groups=(replace(group, feed_forward=mlp),),
    )


def _depth(parameters: float) -> float:
    """Layers by interpolation in the logarithms."""
    x = math.log(parameters)
    points = [(math.log(p), math.log(d)) for p, d in DEPTHS]
    index = sum(1 for px, _ in points[1:-1] if x > px)
    (x0, y0), (x1, y1) = points[index], points[index + 1]
    return math.exp(y0 + (x - x0) * (y1 - y0) / (x1 - x0))


def _hidden(parameters: float, layers: int, table_rows: int) -> int:
    """Width that solves the count at the family's ratios, a whole number of heads."""
    quadratic = layers * (2.0 + 3.0 * FFN_RATIO)
    linear = table_rows + 2.0 * layers * KV_HEADS * HEAD_DIM
    exact = (-linear + math.sqrt(linear * linear + 4.0 * quadratic * parameters)) / (2.0 * quadratic)
    step = next(step for bound, step in HIDDEN_STEPS if exact <= bound)
    return max(step, round(exact / step) * step)
