"""Feed-forward parts of a configuration, layer by layer."""

from app.engine.errors import EngineInputError
from app.engine.huggingface.blocks import block_feed_forward, hybrid_pattern, layer_count
from app.engine.huggingface.keys import (
    Config,
    find,
    optional_int,
    per_layer,
    positive_int,
    require_int,
    required_per_layer,
)
from app.engine.transformer import DenseMlp, FeedForward, MoeMlp

# Families with a plain two-matrix MLP (transformers 5.23 model classes); squared ReLU is never gated.
UNGATED = frozenset(
    {"gpt2", "gpt_neox", "opt", "bloom", "falcon", "mpt", "gpt_bigcode", "starcoder2", "phi", "nemotron", "nemotron_h"}
)
MLP_BIAS = frozenset({"gpt2", "gpt_neox", "opt", "bloom", "gpt_bigcode", "phi"})

# GPT-2 and its kin leave the inner width null and use four times the hidden size (GPT2Config.n_inner).
DEFAULT_FFN_RATIO = 4
FOUR_TIMES = frozenset({"gpt2", "bloom", "falcon", "mpt", "gpt_bigcode"})


def feed_forwards(config: Config, family: str) -> list[FeedForward | None]:
    """Feed-forward part of every layer, in model order; None for layers without one (Nemotron-H).

    Parameters
    ----------
    config : mapping
        Text part of the configuration.
    family : str
        ``model_type``.

    Returns
    -------
    list of FeedForward or None

    References
    ----------
    1. Model classes of Hugging Face transformers 5.23.
    """
    layers = layer_count(config)
    experts = find(config, "experts")
    if config.get("block_configs"):
        return [block_feed_forward(config, block) for block in required_per_layer(config, "block_configs", layers)]
    pattern = hybrid_pattern(config, layers)
    if pattern:
        made = {"-": _dense(config, family) if "-" in pattern else None, "E": _moe(config, family) if experts else None}
        return [made.get(letter) for letter in pattern]
    if not experts or config.get("enable_moe_block") is False:
        return [_dense(config, family, _wide(config, index, layers)) for index in range(layers)]
    sparse = _sparse_layers(config, layers)
    moe = _moe(config, family)
    wide = optional_int(config, "intermediate_size_mlp") or optional_int(config, "dense_intermediate_size") or None
    dense = None if all(sparse) else _dense(config, family, wide)
    return [moe if flag else dense for flag in sparse]


def _wide(config: Config, index: int, layers: int) -> int | None:
    """Gemma 4: layers that reuse a cache may have an MLP of twice the width."""
    shared = optional_int(config, "num_kv_shared_layers")
    if config.get("use_double_wide_mlp") and index >= layers - shared:
        return 2 * require_int(config, "intermediate_size")
    return None


def _sparse_layers(config: Config, layers: int) -> list[bool]:
    """Which layers have experts."""
    kinds = per_layer(config, "mlp_layer_types", layers)
    if kinds:
        return [kind != "dense" for kind in kinds]
    flags = per_layer(config, "moe_layer_freq", layers)
    if flags:
        return [bool(flag) for flag in flags]
    first = optional_int(config, "first_k_dense_replace")
    keys = ("moe_layer_freq", "decoder_sparse_step", "interleave_moe_layer_step")
    step = next((positive_int(key, config[key]) for key in keys if config.get(key)), 1)
    dense_only = config.get("mlp_only_layers") or []
    if not isinstance(dense_only, list):
        raise EngineInputError("mlp_only_layers", "must be a list of layer numbers")
    if config.get("first_k_dense_replace") is not None:
        return [i >= first and i % step == 0 for i in range(layers)]
    return [i not in dense_only and (i + 1) % step == 0 for i in range(layers)]


def _gated(config: Config, family: str) -> bool:
    activation = find(config, "mlp_hidden_act") or find(config, "hidden_act") or ""
    return family not in UNGATED and activation != "relu2"


def _dense(config: Config, family: str, ffn: int | None = None) -> DenseMlp:
    if ffn is None and find(config, "intermediate_size") is None and family in FOUR_TIMES:
        ffn = DEFAULT_FFN_RATIO * require_int(config, "hidden_size")
    return DenseMlp(
        ffn=ffn or require_int(config, "intermediate_size"),
        gated=_gated(config, family),
        bias=bool(config.get("mlp_bias"))
        or family in MLP_BIAS
        or (family == "starcoder2" and bool(config.get("use_bias"))),
    )


def _moe(config: Config, family: str) -> MoeMlp:
    expert_ffn = optional_int(config, "expert_ffn") or require_int(config, "intermediate_size")
    shared = optional_int(config, "shared_ffn") or optional_int(config, "shared_experts") * expert_ffn
    if family.startswith("llama4"):
        shared = expert_ffn
    beside = config.get("enable_moe_block") and family.startswith("gemma4")
    return MoeMlp(
        experts=require_int(config, "experts"),
        active_experts=require_int(config, "active_experts"),
        expert_ffn=expert_ffn,
        shared_ffn=shared,
        dense_ffn=require_int(config, "intermediate_size") if beside else 0,
        gated=_gated(config, family),
        bias=family == "gpt_oss",
        router_bias=family == "gpt_oss",
        latent=optional_int(config, "latent_moe") or None,
        shared_gate=family.startswith(("qwen3_5", "qwen3_next", "qwen2_moe")) and shared > 0,
    )
