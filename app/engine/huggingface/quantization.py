"""The quantisation a published model states: which part of it is held in which format."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.errors import EngineInputError
from app.engine.huggingface.keys import Config, optional_mapping
from app.engine.transformer import LinearAttention, StateSpace, Transformer

# Parts of a model that quantisers treat alike.
ROLES = ("attention", "recurrent", "dense", "experts", "shared", "router", "head")

# Lists longer than this come cut from some collections; a part seen in that many layers of a cut list counts as whole.
CUT_LIST = 20
SEEN_LAYERS = 3

ALGORITHMS = {
    "NVFP4": ("nvfp4", "nvfp4"),
    "W4A16_NVFP4": ("nvfp4", None),
    "NVFP4_AWQ": ("nvfp4", "nvfp4"),
    "FP8": ("fp8", "fp8"),
    "FP8_PB_WO": ("fp8", "fp8"),
    "W8A8_SQ_PER_CHANNEL": ("int8", "int8"),
    "W4A16_AWQ": ("int4", None),
    "MXFP8": ("mxfp8", "mxfp8"),
    "MXFP4": ("mxfp4", None),
}
METHODS = {"fp8": ("fp8", "fp8"), "mxfp4": ("mxfp4", None), "awq": ("int4", None), "gptq": ("int4", None)}
KV_FORMATS = {"FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8"}
TORCH_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedQuantization:
    """Number formats of the parts of a published model.

    Parameters
    ----------
    base : str
        Format of everything that is not quantised (embeddings, norms).
    weights : str
        The format most of the matrices are in: the one the model is named after.
    activations : str
        What matmuls compute in: ``base`` for weight-only schemes.
    kv_cache : str or None
        Stated format of the cache; None = not stated.
    parts : mapping of str to str
        Format by part: ``attention``, ``recurrent``, ``dense``, ``experts``, ``shared``, ``router``, ``head``.
    """

    base: str
    weights: str
    activations: str
    kv_cache: str | None
    parts: Mapping[str, str]


def stated_quantization(config: Config, transformer: Transformer, side_file: Config | None) -> StatedQuantization:
    """Read ``quantization_config`` and the ``hf_quant_config.json`` beside it.

    Parameters
    ----------
    config : mapping
        Text part with the whole's own keys under it.
    transformer : Transformer
        For how many layers a part has.
    side_file : mapping or None
        ``hf_quant_config.json``.

    Returns
    -------
    StatedQuantization

    References
    ----------
    1. Hugging Face quantization_config; NVIDIA ModelOpt hf_quant_config; vLLM compressed-tensors config_groups.
    """
    base = TORCH_DTYPES.get(str(config.get("dtype") or config.get("torch_dtype") or "bfloat16"), "bf16")
    inline = optional_mapping(config, "quantization_config") or optional_mapping(config, "compression_config")
    side = optional_mapping(side_file or {}, "quantization")
    merged: dict[str, Any] = {**inline, **{k: v for k, v in side.items() if v is not None}}
    weights, activations = _main_format(merged)
    kv_cache = _kv_format(merged)
    if weights is None:
        return StatedQuantization(
            base=base, weights=base, activations=base, kv_cache=kv_cache, parts=dict.fromkeys(ROLES, base)
        )
    parts = _parts(merged, transformer, base, weights)
    if config.get("expert_dtype") == "fp4" and parts["experts"] == "fp8":
        parts["experts"] = "mxfp4"
    if parts["experts"] != weights and any(g.feed_forward for g in transformer.groups):
        weights = _largest(parts, transformer)
    return StatedQuantization(
        base=base, weights=weights, activations=activations or base, kv_cache=kv_cache, parts=parts
    )


def _main_format(merged: Config) -> tuple[str | None, str | None]:
    algorithm = str(merged.get("quant_algo") or "").upper()
    if algorithm in ALGORITHMS:
        return ALGORITHMS[algorithm]
    layers = _entries(merged, "quantized_layers")
    if algorithm == "MIXED_PRECISION" and layers:
        method = str(merged.get("quant_method"))
        if method in METHODS:
            return METHODS[method]
        listed = Counter(str(entry.get("quant_algo")).upper() for entry in layers.values())
        return ALGORITHMS.get(listed.most_common(1)[0][0], (None, None))
    groups = _entries(merged, "config_groups")
    for group in groups.values():
        held = _bits(group.get("weights"))
        if str(group.get("format", "")).startswith("mxfp4"):
            held = "mxfp4"
        return held, _bits(group.get("input_activations"))
    return METHODS.get(str(merged.get("quant_method") or "").lower(), (None, None))


def _entries(merged: Config, key: str) -> Mapping[str, Config]:
    entries = optional_mapping(merged, key)
    if not all(isinstance(entry, Mapping) for entry in entries.values()):
        raise EngineInputError(f"quantization_config.{key}", "must hold a JSON object for every name")
    return entries


def _bits(entry: object) -> str | None:
    if not isinstance(entry, Mapping):
        return None
    kind = (str(entry.get("type")), str(entry.get("num_bits")))
    return {("float", "8"): "fp8", ("float", "4"): "nvfp4", ("int", "8"): "int8", ("int", "4"): "int4"}.get(kind)


def _kv_format(merged: Config) -> str | None:
    stated = merged.get("kv_cache_quant_algo")
    if stated:
        return KV_FORMATS.get(str(stated).upper())
    scheme = merged.get("kv_cache_scheme")
    return KV_FORMATS.get(scheme.upper()) if isinstance(scheme, str) else _bits(scheme)


def _parts(merged: Config, transformer: Transformer, base: str, weights: str) -> dict[str, str]:
    parts = dict.fromkeys(ROLES, weights)
    parts["router"] = parts["head"] = base
    listed = _entries(merged, "quantized_layers")
    if listed:
        if str(merged.get("quant_method")) not in METHODS:
            parts = dict.fromkeys(ROLES, base)
        for role in ROLES:
            formats = Counter(str(e.get("quant_algo")).upper() for name, e in listed.items() if _role(name) == role)
            if formats:
                parts[role] = ALGORITHMS.get(formats.most_common(1)[0][0], (base, None))[0]
        return parts
    excluded = merged.get("exclude_modules") or merged.get("ignore") or merged.get("modules_to_not_convert") or []
    if not isinstance(excluded, list) or not all(isinstance(name, str) for name in excluded):
        raise EngineInputError("quantization_config", "the modules left out must be a list of names")
    for role, whole in _excluded_roles(tuple(excluded), transformer).items():
        if whole:
            parts[role] = base
    return parts


def _excluded_roles(patterns: tuple[str, ...], transformer: Transformer) -> dict[str, bool]:
    """Parts left out everywhere: by a pattern without a layer number, or layer by layer in at least half of them."""
    recurrent = sum(g.count for g in transformer.groups if isinstance(g.mixer, StateSpace | LinearAttention))
    attention = sum(g.count for g in transformer.groups if g.mixer is not None) - recurrent
    feed_forward = sum(g.count for g in transformer.groups if g.feed_forward is not None)
    layers = {"attention": attention, "recurrent": recurrent}
    seen: dict[str, set[str]] = {}
    whole: dict[str, bool] = {}
    for pattern in patterns:
        role = _role(pattern)
        if role is None:
            continue
        number = re.search(r"layers\.(\d+)", pattern)
        if number is None:
            whole[role] = True
        else:
            seen.setdefault(role, set()).add(number.group(1))
    cut = len(patterns) == CUT_LIST
    for role, numbers in seen.items():
        enough = SEEN_LAYERS if cut else max(1.0, layers.get(role, feed_forward) / 2)
        whole[role] = whole.get(role, False) or len(numbers) >= enough
    return whole


def _role(name: str) -> str | None:
    """Part a module name or pattern belongs to; None for whole layers, towers, norms and prediction layers."""
    if "head" in name.rsplit(".", 1)[-1]:
        return "head"
    if any(word in name for word in ("vision", "visual", "mtp", "norm", "embed")):
        return None
    for role, words in (
        ("shared", ("shared_expert",)),
        ("experts", (".experts",)),
        ("router", ("router", "mlp.gate", "moe.gate", "ffn.gate")),
        ("recurrent", ("linear_attn", "in_proj", "out_proj")),
        ("attention", ("attn", "mixer.q_proj", "mixer.k_proj", "mixer.v_proj", "mixer.o_proj")),
        ("dense", (".mlp", ".ffn")),
    ):
        if any(word in name for word in words):
            return role
    return None


def _largest(parts: Mapping[str, str], transformer: Transformer) -> str:
    """Format of the routed experts where there are any, of the dense parts otherwise."""
    moe = any(type(g.feed_forward).__name__ == "MoeMlp" for g in transformer.groups)
    return parts["experts" if moe else "dense"]
