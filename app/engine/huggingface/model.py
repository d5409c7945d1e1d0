"""A published configuration as a :class:`Transformer` and the quantisation it states."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.errors import EngineInputError
from app.engine.huggingface.blocks import block_norms, layer_count
from app.engine.huggingface.feed_forwards import feed_forwards
from app.engine.huggingface.keys import Config, find, optional_int, require_int
from app.engine.huggingface.mixers import mixers
from app.engine.huggingface.quantization import StatedQuantization, stated_quantization
from app.engine.huggingface.vision import vision_parameters
from app.engine.transformer import LayerGroup, MoeMlp, Transformer, group_layers

# Families whose configuration class ties the embeddings unless told otherwise (transformers 5.23).
TIED_BY_DEFAULT = frozenset(
    {
        "gpt2",
        "opt",
        "bloom",
        "mpt",
        "falcon",
        "gpt_bigcode",
        "gemma",
        "gemma2",
        "gemma3_text",
        "gemma3",
        "gemma4",
        "gemma4_text",
    }
)
LAYER_NORM = frozenset({"gpt2", "gpt_neox", "opt", "bloom", "falcon", "gpt_bigcode", "starcoder2", "phi", "nemotron"})
FOUR_NORMS = ("gemma2", "gemma3", "glm4")
ONE_NORM = frozenset({"nemotron_h", "phi"})
LEARNED_POSITIONS = {"gpt2": 0, "gpt_bigcode": 0, "opt": 2}

ENCODERS = frozenset({"bert", "roberta", "t5", "bart", "vit", "clip", "whisper", "mt5", "deberta", "electra"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """What a published configuration says.

    Parameters
    ----------
    transformer : Transformer
    quantization : StatedQuantization
    model_type : str
        The configuration's own ``model_type``.
    """

    transformer: Transformer
    quantization: StatedQuantization
    model_type: str


def read_config(config: Config, *, name: str = "", quantization_file: Config | None = None) -> PublishedModel:
    """Read a Hugging Face ``config.json`` as it is.

    Parameters
    ----------
    config : mapping
        Parsed ``config.json``; multimodal ones keep the language model under ``text_config``.
    name : str
        Name to carry; the configuration's ``_name_or_path`` when empty.
    quantization_file : mapping or None
        Parsed ``hf_quant_config.json`` where the repository has one.

    Returns
    -------
    PublishedModel

    Raises
    ------
    EngineInputError
        When a needed key is missing or impossible; names the key.

    Notes
    -----
    Decoder-only text stacks. Parameter counts are exact for the families in ``tests/data/hf_configs``; unknown families
    are read by their keys as Llama-like layers. Multi-token-prediction layers are counted apart.

    References
    ----------
    1. Configuration and model classes of Hugging Face transformers 5.23.
    """
    if not isinstance(config, Mapping):
        raise EngineInputError("hf_config", "must be the JSON object of a config.json")
    text = _text_part(config)
    family = str(text.get("model_type") or config.get("model_type") or "")
    if family in ENCODERS or text.get("is_encoder_decoder"):
        raise EngineInputError("model_type", f"{family!r} is not a decoder-only language model")
    transformer = _transformer(config, text, family, name)
    both = {**{k: config[k] for k in config if k not in ("text_config", "vision_config")}, **_not_null(text)}
    return PublishedModel(
        transformer=transformer,
        quantization=stated_quantization(both, transformer, quantization_file),
        model_type=str(config.get("model_type") or family),
    )


def _text_part(config: Config) -> Config:
    for key in ("text_config", "llm_config", "language_config"):
        if isinstance(config.get(key), Mapping):
            return config[key]  # type: ignore[no-any-return]
    return config


def _not_null(config: Config) -> dict[str, Any]:
    return {key: value for key, value in config.items() if value is not None}


def _transformer(config: Config, text: Config, family: str, name: str) -> Transformer:
    hidden = require_int(text, "hidden_size")
    layers = layer_count(text)
    hyper = optional_int(text, "hc_mult")
    per_layer = optional_int(text, "hidden_size_per_layer_input")
    groups = []
    for mixer, part in zip(mixers(text, family), feed_forwards(text, family), strict=True):
        moe_scales = part.experts if isinstance(part, MoeMlp) and family.startswith("gemma4") else 0
        extra = _hyper_connections(hyper, hidden) + moe_scales + (2 * hidden * per_layer)
        groups.append(
            LayerGroup(
                count=1,
                mixer=mixer,
                feed_forward=part,
                norms=block_norms(mixer, part) if text.get("block_configs") else _norms(text, family, part),
                other_parameters=extra,
            )
        )
    tied = text.get("tie_word_embeddings", config.get("tie_word_embeddings"))
    head = hyper * hyper * hidden + hyper + 1 if hyper else 0
    head += 2 * hidden if family == "bloom" else 0  # LayerNorm on the embeddings
    if per_layer:
        head += layers * per_layer * hidden + per_layer
    return Transformer(
        name=name or str(config.get("_name_or_path") or text.get("_name_or_path") or family),
        hidden=hidden,
        vocab=require_int(text, "vocab_size"),
        tied_embeddings=family in TIED_BY_DEFAULT if tied is None else bool(tied),
        groups=group_layers(groups),
        mtp_layers=optional_int(text, "mtp_layers"),
        other_parameters=vision_parameters(config, str(config.get("model_type") or ""), hidden)
        + optional_int(text, "vocab_size_per_layer_input") * layers * per_layer,
        context=find(text, "context"),
        norm_bias=family in LAYER_NORM,
        positions=_positions(text, family),
        final_parameters=head,
    )


def _hyper_connections(streams: int, hidden: int) -> int:
    """Two hyper-connections a layer (DeepSeek-V4): a projection of all streams, its base and three scales."""
    if not streams:
        return 0
    width = (2 + streams) * streams
    return 2 * (width * streams * hidden + width + 3)


def _norms(text: Config, family: str, part: object) -> int:
    per_layer = optional_int(text, "hidden_size_per_layer_input")
    if family == "falcon":
        # one norm where attention and MLP run side by side, two in the newer decoder
        return 1 if text.get("parallel_attn", True) and not text.get("new_decoder_architecture") else 2
    if family.startswith("gemma4"):
        # four, and with experts three more and the router's scale vector; one for per-layer inputs
        return (8 if isinstance(part, MoeMlp) else 4) + (1 if per_layer else 0)
    if family.startswith(FOUR_NORMS) and family != "glm4_moe":
        return 4
    return 1 if family in ONE_NORM else 2


def _positions(text: Config, family: str) -> int:
    """Rows of a learned position table."""
    if family not in LEARNED_POSITIONS:
        return 0
    return require_int(text, "context") + LEARNED_POSITIONS[family]
