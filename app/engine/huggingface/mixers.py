"""Token mixers of a configuration, layer by layer."""

from dataclasses import replace

from app.engine.errors import EngineInputError
from app.engine.huggingface.blocks import block_mixer, hybrid_pattern, layer_count
from app.engine.huggingface.keys import (
    Config,
    find,
    optional_int,
    optional_mapping,
    per_layer,
    positive_int,
    require_int,
    required_per_layer,
)
from app.engine.transformer import LatentAttention, LinearAttention, Mixer, SoftmaxAttention, StateSpace

# Families whose reference class has biases on the query, key and value projections without saying so in the
# configuration (transformers 5.23 model classes).
QKV_BIAS = frozenset({"qwen2", "qwen2_moe", "qwen2_vl", "gpt2", "gpt_neox", "opt", "bloom", "gpt_bigcode", "phi"})
OUTPUT_BIAS = frozenset({"gpt2", "gpt_neox", "opt", "bloom", "gpt_bigcode", "phi", "gpt_oss"})
# Families whose attention_bias leaves the output projection out.
PLAIN_OUTPUT = ("qwen", "glm4")
HEAD_NORM = ("qwen3", "gemma3", "gemma4", "step3p7")
FULL_NORM = frozenset({"minimax_m2", "olmo2", "olmo3", "olmoe"})

# Every fourth Llama 4 layer has no rotary embedding and attends fully; the others attend in chunks (Llama4TextConfig).
LLAMA4_FULL_EVERY = 4

# Sliding layers before each full one where the pattern is the class default (Gemma3TextConfig: 6).
DEFAULT_SLIDING_PATTERN = {"gemma3_text": 6, "gemma3": 6, "gemma2": 2, "cohere2": 4}


def mixers(config: Config, family: str) -> list[Mixer | None]:
    """Mixer of every layer, in model order; None for layers without one (Nemotron-H).

    Parameters
    ----------
    config : mapping
        Text part of the configuration.
    family : str
        ``model_type``.

    Returns
    -------
    list of Mixer or None

    References
    ----------
    1. Model classes of Hugging Face transformers 5.23.
    """
    layers = layer_count(config)
    if config.get("block_configs"):
        return [block_mixer(config, block) for block in required_per_layer(config, "block_configs", layers)]
    pattern = hybrid_pattern(config, layers)
    if pattern:
        made: dict[str, Mixer] = {"*": _softmax(config, family), "M": _state_space(config)}
        return [made.get(letter) for letter in pattern]
    if config.get("compress_ratios"):
        ratios = required_per_layer(config, "compress_ratios", layers)
        return [_compressed(config, ratio) for ratio in ratios]
    if config.get("kv_lora_rank"):
        latent = _latent(config)
        if config.get("linear_attn_config"):
            return _delta_or_latent(config, latent, layers)
        indexers = per_layer(config, "indexer_types", layers)
        shared = replace(latent, index_heads=0, index_head_dim=0)
        return [shared if kind == "shared" else latent for kind in indexers or [""] * layers]
    kinds = _kinds(config, family, layers)
    made_of = [_of_kind(config, family, kind, index, layers) for index, kind in enumerate(kinds)]
    sparse = optional_mapping(config, "sparse_attention_config")
    return _with_block_selection(sparse, made_of, layers) if sparse else list(made_of)


def _with_block_selection(sparse: Config, made: list[Mixer], layers: int) -> list[Mixer | None]:
    """MiniMax-M3: an indexer picks whole blocks of keys in the layers its frequency list marks."""
    flags = per_layer(sparse, "sparse_attention_freq", layers) or [1] * layers
    selected = require_int(sparse, "sparse_topk_blocks") * require_int(sparse, "sparse_block_size")
    heads, width = require_int(sparse, "sparse_num_index_heads"), require_int(sparse, "sparse_index_dim")
    return [
        replace(mixer, selected_tokens=selected, index_heads=heads, index_head_dim=width)
        if flag and isinstance(mixer, SoftmaxAttention)
        else mixer
        for mixer, flag in zip(made, flags, strict=True)
    ]


def _delta_or_latent(config: Config, latent: LatentAttention, layers: int) -> list[Mixer | None]:
    """Kimi Linear: delta attention, and latent attention in the layers listed (counted from 1)."""
    linear = optional_mapping(config, "linear_attn_config")
    heads, width = require_int(linear, "num_heads"), require_int(linear, "head_dim")
    delta = LinearAttention(
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        convolution=require_int(linear, "short_conv_kernel_size"),
        decay_rank=width,
        gate_rank=0 if linear.get("use_full_rank_gate") else width,
    )
    full = set(linear.get("full_attn_layers") or ())
    latent = replace(latent, gated=bool(config.get("mla_use_output_gate")))
    return [latent if index + 1 in full else delta for index in range(layers)]


def _kinds(config: Config, family: str, layers: int) -> list[str]:
    named = per_layer(config, "layer_types", layers)
    if named:
        return [str(kind) for kind in named]
    hybrid = per_layer(config, "hybrid_layer_pattern", layers)
    if hybrid:
        return ["sliding_attention" if flag else "full_attention" for flag in hybrid]
    interval = config.get("full_attention_interval")
    if interval:
        return ["full_attention" if (i + 1) % interval == 0 else "linear_attention" for i in range(layers)]
    if config.get("attention_chunk_size") and family.startswith("llama4"):
        every = LLAMA4_FULL_EVERY
        return ["full_attention" if (i + 1) % every == 0 else "chunked_attention" for i in range(layers)]
    if not config.get("sliding_window") or config.get("use_sliding_window") is False:
        return ["full_attention"] * layers
    pattern = config.get("sliding_window_pattern") or DEFAULT_SLIDING_PATTERN.get(family)
    if pattern:
        return ["full_attention" if (i + 1) % pattern == 0 else "sliding_attention" for i in range(layers)]
    if family.startswith("qwen") and config.get("max_window_layers") is not None:
        dense = int(config["max_window_layers"])
        return ["full_attention" if i < dense else "sliding_attention" for i in range(layers)]
    return ["sliding_attention"] * layers


def _of_kind(config: Config, family: str, kind: str, index: int, layers: int) -> Mixer:
    if kind == "linear_attention":
        return _linear(config)
    full = _softmax(config, family)
    if family.startswith("gemma4"):
        full = _gemma4(config, full, kind, shared=index >= layers - optional_int(config, "num_kv_shared_layers"))
    if kind in ("full_attention", "attention", "global_attention"):
        return full
    if kind == "sliding_attention":
        window = positive_int("sliding_window", config.get("sliding_window"))
        return replace(_sliding_heads(config, full), window=window)
    if kind == "chunked_attention":
        return replace(full, window=positive_int("attention_chunk_size", config.get("attention_chunk_size")))
    raise EngineInputError("layer_types", f"{kind!r} is not a layer kind the engine knows")


def _softmax(config: Config, family: str) -> SoftmaxAttention:
    heads, hidden = require_int(config, "num_attention_heads"), require_int(config, "hidden_size")
    head_dim = config.get("head_dim") or config.get("attention_head_dim") or hidden // heads
    kv_heads = find(config, "num_key_value_heads")
    if kv_heads is None:
        kv_heads = 1 if config.get("multi_query") else heads
    per_head = config.get("qk_norm_type") == "per_head" or (config.get("use_qk_norm") and family == "glm4_moe")
    norm = "head" if per_head or family.startswith(HEAD_NORM) else None
    everywhere = bool(config.get("use_bias")) and family == "starcoder2"
    bias = bool(config.get("attention_bias") or config.get("qkv_bias") or family in QKV_BIAS or everywhere)
    return SoftmaxAttention(
        heads=heads,
        kv_heads=positive_int("num_key_value_heads", kv_heads),
        head_dim=positive_int("head_dim", head_dim),
        value_head_dim=optional_int(config, "v_head_dim", head_dim),
        gated=bool(config.get("attn_output_gate")) or family == "qwen3_next",
        bias=bias,
        output_bias=everywhere
        or family in OUTPUT_BIAS
        or (bool(config.get("attention_bias")) and not family.startswith(PLAIN_OUTPUT)),
        qk_norm="full" if family in FULL_NORM else norm,
        sinks=family == "gpt_oss" or bool(config.get("add_full_attention_sink_bias")),
    )


def _sliding_heads(config: Config, full: SoftmaxAttention) -> SoftmaxAttention:
    """Heads of sliding layers where they differ (MiMo-V2)."""
    return replace(
        full,
        heads=optional_int(config, "swa_num_attention_heads", full.heads),
        kv_heads=optional_int(config, "swa_num_key_value_heads", full.kv_heads),
        head_dim=optional_int(config, "swa_head_dim", full.head_dim),
        value_head_dim=optional_int(config, "swa_v_head_dim", full.value_head_dim),
        sinks=full.sinks or bool(config.get("add_swa_attention_sink_bias")),
    )


def _gemma4(config: Config, full: SoftmaxAttention, kind: str, *, shared: bool) -> SoftmaxAttention:
    if kind == "full_attention":
        head_dim = optional_int(config, "global_head_dim", full.head_dim)
        full = replace(
            full,
            kv_heads=optional_int(config, "num_global_key_value_heads", full.kv_heads),
            head_dim=head_dim,
            value_head_dim=head_dim,
            key_is_value=bool(config.get("attention_k_eq_v")),
        )
    return replace(full, shares_cache=shared)


def _latent(config: Config) -> LatentAttention:
    return LatentAttention(
        heads=require_int(config, "num_attention_heads"),
        q_lora_rank=optional_int(config, "q_lora_rank") or None,
        kv_lora_rank=require_int(config, "kv_lora_rank"),
        qk_nope_head_dim=require_int(config, "qk_nope_head_dim"),
        qk_rope_head_dim=require_int(config, "qk_rope_head_dim"),
        v_head_dim=require_int(config, "v_head_dim"),
        selected_tokens=optional_int(config, "index_topk") or None,
        index_heads=optional_int(config, "index_n_heads"),
        index_head_dim=optional_int(config, "index_head_dim"),
    )


def _compressed(config: Config, ratio: int) -> SoftmaxAttention:
    """DeepSeek-V4: a window, and beyond it entries compressed by ``ratio``; the fine ratio has an indexer."""
    if isinstance(ratio, bool) or not isinstance(ratio, int) or ratio < 0:
        raise EngineInputError("compress_ratios", f"holds whole numbers from 0, got {ratio!r}")
    head_dim = require_int(config, "head_dim")
    indexed = 0 < ratio < require_int(config, "sliding_window")
    return SoftmaxAttention(
        heads=require_int(config, "num_attention_heads"),
        kv_heads=require_int(config, "num_key_value_heads"),
        head_dim=head_dim,
        value_head_dim=head_dim,
        window=require_int(config, "sliding_window"),
        key_is_value=True,
        key_norm=True,
        sinks=True,
        q_lora_rank=require_int(config, "q_lora_rank"),
        output_groups=require_int(config, "o_groups"),
        output_lora_rank=require_int(config, "o_lora_rank"),
        compression=ratio or None,
        selected_tokens=require_int(config, "index_topk") if indexed else None,
        index_heads=require_int(config, "index_n_heads") if indexed else 0,
        index_head_dim=require_int(config, "index_head_dim") if indexed else 0,
    )


def _linear(config: Config) -> LinearAttention:
    return LinearAttention(
        key_heads=require_int(config, "linear_num_key_heads"),
        value_heads=require_int(config, "linear_num_value_heads"),
        key_head_dim=require_int(config, "linear_key_head_dim"),
        value_head_dim=require_int(config, "linear_value_head_dim"),
        convolution=require_int(config, "linear_conv_kernel_dim"),
    )


def _state_space(config: Config) -> StateSpace:
    return StateSpace(
        heads=require_int(config, "mamba_num_heads"),
        head_dim=require_int(config, "mamba_head_dim"),
        state=require_int(config, "ssm_state_size"),
        groups=require_int(config, "n_groups"),
        convolution=require_int(config, "conv_kernel"),
    )
