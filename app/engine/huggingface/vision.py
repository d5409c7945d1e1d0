"""Parameters outside the text stack: vision towers and their projectors."""

import math

from app.engine.errors import EngineInputError
from app.engine.huggingface.keys import Config, optional_mapping, positive_int

# Llama4VisionConfig of transformers 5.23: what a configuration without its own vision part means.
LLAMA4_VISION = {
    "hidden_size": 768,
    "num_hidden_layers": 34,
    "intermediate_size": 5632,
    "vision_output_dim": 7680,
    "image_size": 448,
    "patch_size": 14,
    "num_channels": 3,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
}

RGB = 3

# Inner width of a plain vision transformer over its width (Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021).
PLAIN_FFN_RATIO = 4


def vision_parameters(config: Config, family: str, text_hidden: int) -> int:
    """Parameters of the vision tower and projector of a multimodal configuration.

    Parameters
    ----------
    config : mapping
        The whole configuration.
    family : str
        ``model_type`` of the whole.
    text_hidden : int
        Width of the text stack.

    Returns
    -------
    int
        0 for text models; for towers of an unknown class, a plain transformer encoder of the stated size.

    References
    ----------
    1. Vision classes of Hugging Face transformers 5.23 (qwen3_vl, qwen3_5, gemma4, kimi_k25, llama4).
    """
    vision = optional_mapping(config, "vision_config")
    if family == "llama4":
        return _llama4({**LLAMA4_VISION, **vision}, text_hidden)
    if not vision:
        return 0
    if "deepstack_visual_indexes" in vision:
        return _qwen(vision)
    if family.startswith("gemma4"):
        return _gemma4(vision, text_hidden)
    if "vt_hidden_size" in vision:
        return _kimi(vision, text_hidden)
    return _plain(vision, text_hidden)


def _size(vision: Config, key: str) -> int:
    return positive_int(f"vision_config.{key}", vision.get(key))


def _list(vision: Config, key: str) -> list[int]:
    value = vision.get(key)
    if not isinstance(value, list) or not all(isinstance(entry, int) for entry in value):
        raise EngineInputError(f"vision_config.{key}", "must be a list of whole numbers")
    return value


def _block(hidden: int, ffn: int) -> int:
    """Encoder block with biases and two LayerNorms."""
    return 4 * (hidden * hidden + hidden) + 2 * hidden * ffn + ffn + hidden + 4 * hidden


def _qwen(v: Config) -> int:
    hidden, patch = _size(v, "hidden_size"), _size(v, "patch_size")
    embed = _size(v, "in_channels") * _size(v, "temporal_patch_size") * patch * patch * hidden + hidden
    merged = hidden * _size(v, "spatial_merge_size") ** 2
    projector = merged * merged + merged + merged * _size(v, "out_hidden_size") + _size(v, "out_hidden_size")
    deep = len(_list(v, "deepstack_visual_indexes")) * (projector + 2 * merged)
    table = _size(v, "num_position_embeddings") * hidden
    layers = _size(v, "depth") * _block(hidden, _size(v, "intermediate_size"))
    return embed + table + layers + projector + 2 * hidden + deep


def _gemma4(v: Config, text_hidden: int) -> int:
    hidden, heads, head_dim = _size(v, "hidden_size"), _size(v, "num_attention_heads"), _size(v, "head_dim")
    attention = 2 * hidden * heads * head_dim + 2 * hidden * _size(v, "num_key_value_heads") * head_dim + 2 * head_dim
    layer = attention + 3 * hidden * _size(v, "intermediate_size") + 4 * hidden
    embed = RGB * _size(v, "patch_size") ** 2 * hidden + 2 * _size(v, "position_embedding_size") * hidden
    return int(embed + _size(v, "num_hidden_layers") * layer + hidden * text_hidden)


def _kimi(v: Config, text_hidden: int) -> int:
    hidden = _size(v, "vt_hidden_size")
    merged = hidden * math.prod(_list(v, "merge_kernel_size"))
    table = _size(v, "init_pos_emb_height") * _size(v, "init_pos_emb_width") * hidden
    embed = RGB * _size(v, "patch_size") ** 2 * hidden + hidden + table
    projector = merged * merged + merged + merged * text_hidden + text_hidden + 2 * hidden
    layers = _size(v, "vt_num_hidden_layers") * _block(hidden, _size(v, "vt_intermediate_size"))
    return embed + layers + 2 * hidden + projector


def _llama4(v: Config, text_hidden: int) -> int:
    hidden = _size(v, "hidden_size")
    patches = (_size(v, "image_size") // _size(v, "patch_size")) ** 2 + 1
    embed = _size(v, "num_channels") * _size(v, "patch_size") ** 2 * hidden + hidden + patches * hidden + 4 * hidden
    adapter = _size(v, "intermediate_size") * _size(v, "projector_input_dim") + _size(v, "projector_output_dim") ** 2
    layers = _size(v, "num_hidden_layers") * _block(hidden, _size(v, "intermediate_size"))
    return int(embed + layers + adapter + _size(v, "vision_output_dim") * text_hidden)


def _plain(v: Config, text_hidden: int) -> int:
    hidden = _size(v, "hidden_size" if v.get("hidden_size") is not None else "embed_dim")
    layers = _size(v, "num_hidden_layers" if v.get("num_hidden_layers") is not None else "depth")
    ffn = _size(v, "intermediate_size") if v.get("intermediate_size") is not None else PLAIN_FFN_RATIO * hidden
    return int(layers * _block(hidden, ffn) + hidden * text_hidden)
