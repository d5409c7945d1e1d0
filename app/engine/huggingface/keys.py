"""Names that configurations use for the same thing, and checked access to them."""

from collections.abc import Mapping
from typing import Any

from app.engine.errors import EngineInputError

Config = Mapping[str, Any]

# One meaning, several spellings (transformers 5.23, attribute_map and configuration classes).
ALIASES: dict[str, tuple[str, ...]] = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "model_dim"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "inner_hidden_size"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "latent_moe": ("moe_latent_size", "routed_expert_hidden_size"),
    "context": ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len", "max_sequence_length"),
    "experts": ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts"),
    "active_experts": (
        "num_experts_per_tok",
        "experts_per_token",
        "num_experts_per_token",
        "top_k_experts",
        "moe_k",
        "moe_topk",
    ),
    "expert_ffn": ("moe_intermediate_size", "expert_ffn_hidden_size", "moe_ffn_hidden_size"),
    "shared_experts": ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"),
    "shared_ffn": (
        "shared_expert_intermediate_size",
        "moe_shared_expert_intermediate_size",
        "shared_intermediate_size",
        "share_expert_dim",
    ),
    "mtp_layers": ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules", "mtp_num_layers"),
}


# No dimension of a model comes near these; more is a typing error, and would only take long to count.
LARGEST_DIMENSION = 1_000_000_000
LARGEST_LAYERS = 10_000


def find(config: Config, meaning: str, default: Any = None) -> Any:
    """Value of the first spelling of a meaning that is present and not null, or the default.

    Parameters
    ----------
    config : mapping
    meaning : str
        Key of ``ALIASES``, or a configuration key of one spelling.
    default : value

    Returns
    -------
    value

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    for key in ALIASES.get(meaning, (meaning,)):
        if config.get(key) is not None:
            return config[key]
    return default


def require_int(config: Config, meaning: str) -> int:
    """A positive whole number that must be there.

    Parameters
    ----------
    config : mapping
    meaning : str

    Returns
    -------
    int

    Raises
    ------
    EngineInputError
        Naming the key, when it is missing or not a positive whole number.

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    value = find(config, meaning)
    spellings = ALIASES.get(meaning, (meaning,))
    if value is None:
        also = f" (also read as {', '.join(spellings[1:])})" if len(spellings) > 1 else ""
        raise EngineInputError(
            spellings[0],
            f"the configuration has no {spellings[0]}{also}; the architecture is not determined without it",
        )
    return positive_int(spellings[0], value)


def positive_int(key: str, value: Any) -> int:
    """The value as a positive whole number, or an error that names its key.

    Parameters
    ----------
    key : str
    value : value

    Returns
    -------
    int

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise EngineInputError(key, f"must be a positive whole number, got {value!r}")
    largest = LARGEST_LAYERS if key in ALIASES["num_hidden_layers"] else LARGEST_DIMENSION
    if value > largest:
        raise EngineInputError(key, f"is larger than any model has, at most {largest:,}", {key: largest})
    return value


def optional_int(config: Config, meaning: str, default: int = 0) -> int:
    """A whole number that may be missing; zero and null mean the default.

    Parameters
    ----------
    config : mapping
    meaning : str
    default : int

    Returns
    -------
    int

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    value = find(config, meaning)
    if value is None or value == 0:
        return default
    return positive_int(ALIASES.get(meaning, (meaning,))[0], value)


def per_layer(config: Config, key: str, layers: int) -> list[Any] | None:
    """A list with one entry per layer, or None when the key is absent.

    Parameters
    ----------
    config : mapping
    key : str
    layers : int

    Returns
    -------
    list or None

    Raises
    ------
    EngineInputError
        When the list is shorter than the layers it should describe (longer lists end with prediction layers).

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    value = config.get(key)
    if not isinstance(value, list | tuple | str) or len(value) == 0:
        return None
    if len(value) < layers:
        raise EngineInputError(key, f"describes {len(value)} layers, but the model has {layers}", {key: layers})
    return list(value)[:layers]


def required_per_layer(config: Config, key: str, layers: int) -> list[Any]:
    """A list with one entry per layer that must be there.

    Parameters
    ----------
    config : mapping
    key : str
    layers : int

    Returns
    -------
    list

    Raises
    ------
    EngineInputError
        When it is missing, not a list or too short.

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    values = per_layer(config, key, layers)
    if values is None:
        raise EngineInputError(key, "must be a list with one entry per layer")
    return values


def optional_mapping(config: Config, key: str) -> Config:
    """A nested object that may be missing.

    Parameters
    ----------
    config : mapping
    key : str

    Returns
    -------
    mapping

    Raises
    ------
    EngineInputError
        When there is something else in its place.

    References
    ----------
    1. Attribute maps of the configuration classes of Hugging Face transformers 5.23.
    """
    value = config.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise EngineInputError(key, f"must be a JSON object, got {type(value).__name__}")
    return value
