"""Parameters outside the text stack: vision towers and their projectors."""

from app.engine.huggingface.keys import Config

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
    vision = config.get("vision_config") or {}
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


def _block(hidden: int, ffn: int) -> int:
    """Encoder block with biases and two LayerNorms."""
    return 4 * (hidden * hidden + hidden) + 2 * hidden * ffn + ffn + hidden + 4 * hidden


def _qwen(v: Config) -> int:
    hidden, patch = v["hidden_size"], v["patch_size"]
    embed = v["in_channels"] * v["temporal_patch_size"] * patch * patch * hidden + hidden
    merged = hidden * v["spatial_merge_size"] ** 2
    projector = merged * merged + merged + merged * v["out_hidden_size"] + v["out_hidden_size"]
    deep = len(v["deepstack_visual_indexes"]) * (projector + 2 * merged)
    table = v["num_position_embeddings"] * hidden
    return int(embed + table + v["depth"] * _block(hidden, v["intermediate_size"]) + projector + 2 * hidden + deep)


def _gemma4(v: Config, text_hidden: int) -> int:
    hidden, heads, head_dim = v["hidden_size"], v["num_attention_heads"], v["head_dim"]
    attention = 2 * hidden * heads * head_dim + 2 * hidden * v["num_key_value_heads"] * head_dim + 2 * head_dim
    layer = attention + 3 * hidden * v["intermediate_size"] + 4 * hidden
    embed = RGB * v["patch_size"] ** 2 * hidden + 2 * v["position_embedding_size"] * hidden
    return int(embed + v["num_hidden_layers"] * layer + hidden * text_hidden)


def _kimi(v: Config, text_hidden: int) -> int:
    hidden = v["vt_hidden_size"]
    merged = hidden * v["merge_kernel_size"][0] * v["merge_kernel_size"][1]
    embed = RGB * v["patch_size"] ** 2 * hidden + hidden + v["init_pos_emb_height"] * v["init_pos_emb_width"] * hidden
    projector = merged * merged + merged + merged * text_hidden + text_hidden + 2 * hidden
    return int(embed + v["vt_num_hidden_layers"] * _block(hidden, v["vt_intermediate_size"]) + 2 * hidden + projector)


def _llama4(v: Config, text_hidden: int) -> int:
    hidden = v["hidden_size"]
    patches = (v["image_size"] // v["patch_size"]) ** 2 + 1
    embed = v["num_channels"] * v["patch_size"] ** 2 * hidden + hidden + patches * hidden + 4 * hidden
    adapter = v["intermediate_size"] * v["projector_input_dim"] + v["projector_output_dim"] ** 2
    layers = v["num_hidden_layers"] * _block(hidden, v["intermediate_size"])
    return int(embed + layers + adapter + v["vision_output_dim"] * text_hidden)


def _plain(v: Config, text_hidden: int) -> int:
    hidden = v.get("hidden_size") or v.get("embed_dim") or 0
    layers = v.get("num_hidden_layers") or v.get("depth") or 0
    ffn = v.get("intermediate_size") or 4 * hidden
    return int(layers * _block(hidden, ffn) + hidden * text_hidden)
