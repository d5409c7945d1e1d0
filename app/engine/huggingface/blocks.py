"""Architectures described layer by layer: Nemotron-H block types, and blocks found by architecture search."""

from collections.abc import Mapping

from app.engine.errors import EngineInputError
from app.engine.huggingface.keys import Config, find, optional_mapping, per_layer, require_int
from app.engine.transformer import DenseMlp, FeedForward, Mixer, SoftmaxAttention

# Letters of hybrid_override_pattern and words of layers_block_type (NemotronHConfig).
BLOCK_LETTERS = {"mamba": "M", "attention": "*", "mlp": "-", "moe": "E"}

# DeciLM rounds an MLP's width up to a multiple of 256 of two thirds of its multiple (modeling_decilm.py).
FFN_MULTIPLE = 256
GATED_SHARE = 2.0 / 3.0


def layer_count(config: Config) -> int:
    """Number of layers: stated, or as many as there are block types.

    Parameters
    ----------
    config : mapping

    Returns
    -------
    int

    References
    ----------
    1. NemotronHConfig of Hugging Face transformers 5.23.
    """
    blocks = config.get("layers_block_type")
    if find(config, "num_hidden_layers") is None and blocks:
        return len(blocks)
    return require_int(config, "num_hidden_layers")


def hybrid_pattern(config: Config, layers: int) -> str:
    """Letters of the block kinds, one a layer; empty for models whose layers have both parts.

    Parameters
    ----------
    config : mapping
    layers : int

    Returns
    -------
    str

    Raises
    ------
    EngineInputError
        For a kind that is not known.

    References
    ----------
    1. NemotronHConfig of Hugging Face transformers 5.23.
    """
    key = "hybrid_override_pattern" if config.get("hybrid_override_pattern") else "layers_block_type"
    kinds = per_layer(config, key, layers) or []
    letters = [BLOCK_LETTERS.get(str(kind), str(kind)) for kind in kinds]
    unknown = sorted(set(letters) - set(BLOCK_LETTERS.values()))
    if unknown:
        raise EngineInputError(key, f"{unknown[0]!r} is not a layer kind the engine knows")
    return "".join(letters)


def block_mixer(config: Config, block: Config) -> Mixer | None:
    """Attention of one block found by architecture search.

    Parameters
    ----------
    config : mapping
    block : mapping
        Entry of ``block_configs``.

    Returns
    -------
    Mixer or None
        None where the block has none.

    References
    ----------
    1. NVIDIA, Llama-3.3-Nemotron-Super-49B, modeling_decilm.py (heads in a group, no-op and linear replacements).
    """
    attention = optional_mapping(_block(block), "attention")
    if attention.get("no_op"):
        return None
    if attention.get("replace_with_linear"):
        raise EngineInputError("block_configs", "attention replaced by a linear layer is not a kind the engine knows")
    heads, hidden = require_int(config, "num_attention_heads"), require_int(config, "hidden_size")
    head_dim = hidden // heads
    return SoftmaxAttention(
        heads=heads,
        kv_heads=heads // require_int(attention, "n_heads_in_group"),
        head_dim=head_dim,
        value_head_dim=head_dim,
        window=attention.get("window_length"),
    )


def block_feed_forward(config: Config, block: Config) -> FeedForward | None:
    """MLP of one block found by architecture search.

    Parameters
    ----------
    config : mapping
    block : mapping

    Returns
    -------
    FeedForward or None
        None where the block has none.

    References
    ----------
    1. NVIDIA, Llama-3.3-Nemotron-Super-49B, modeling_decilm.py (width from ffn_mult).
    """
    ffn = optional_mapping(_block(block), "ffn")
    if ffn.get("no_op"):
        return None
    multiple = ffn.get("ffn_mult")
    if ffn.get("replace_with_linear") or not isinstance(multiple, int | float) or multiple <= 0:
        raise EngineInputError("block_configs", "every block with an MLP needs a positive ffn_mult")
    width = int(GATED_SHARE * multiple * require_int(config, "hidden_size"))
    return DenseMlp(ffn=-(-width // FFN_MULTIPLE) * FFN_MULTIPLE)


def _block(block: object) -> Config:
    if not isinstance(block, Mapping):
        raise EngineInputError("block_configs", "must hold a JSON object for every layer")
    return block


def block_norms(mixer: Mixer | None, part: FeedForward | None) -> int:
    """Normalisation vectors of such a block: one before each part it has.

    Parameters
    ----------
    mixer : Mixer or None
    part : FeedForward or None

    Returns
    -------
    int

    References
    ----------
    1. NVIDIA, Llama-3.3-Nemotron-Super-49B, modeling_decilm.py.
    """
    return int(mixer is not None) + int(part is not None)
