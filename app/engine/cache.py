"""What serving keeps per sequence: key-value cache entries that grow with the context, and constant states."""

from app.engine.flops import recurrent_state_elements
from app.engine.transformer import LatentAttention, LinearAttention, Mixer, SoftmaxAttention, StateSpace, Transformer


def cache_elements_per_token(mixer: Mixer | None) -> float:
    """Cache elements one token adds in one layer while the layer's cache still grows.

    Parameters
    ----------
    mixer : Mixer or None

    Returns
    -------
    float
        Elements per token and layer: ``2 heads d`` (MHA), ``2 kv_heads d`` (GQA), rank plus rotary width (MLA), the
        indexer's keys included; 0 for constant states.

    References
    ----------
    1. Pope et al., "Efficiently Scaling Transformer Inference", 2022; Shazeer 2019; Ainslie et al. 2023.
    2. DeepSeek-AI, "DeepSeek-V2", 2024, table 1 (576 elements a layer).
    """
    match mixer:
        case SoftmaxAttention(shares_cache=True):
            return 0.0
        case SoftmaxAttention():
            width = mixer.head_dim + (0 if mixer.key_is_value else mixer.value_head_dim)
            index = mixer.index_head_dim if mixer.index_heads and not mixer.compression else 0
            return float(mixer.kv_heads * width + index)
        case LatentAttention():
            return float(
                mixer.kv_lora_rank + mixer.qk_rope_head_dim + (mixer.index_head_dim if mixer.index_heads else 0)
            )
        case _:
            return 0.0


def cached_entries(mixer: Mixer | None, context: float) -> float:
    """Cache entries of one layer for a sequence of ``context`` tokens.

    Parameters
    ----------
    mixer : Mixer or None
    context : float [token]

    Returns
    -------
    float [entry]
        The context itself, capped at the window for sliding layers; a window plus compressed entries for DeepSeek-V4.

    References
    ----------
    1. Beltagy et al. 2020 (window); Jiang et al., "Mistral 7B", 2023, section 2 (rolling buffer).
    """
    match mixer:
        case SoftmaxAttention(window=None):
            return context
        case SoftmaxAttention(window=int(window), compression=compression):
            return min(context, float(window)) + (context / compression if compression else 0.0)
        case LatentAttention():
            return context
        case _:
            return 0.0


def state_elements(mixer: Mixer | None) -> int:
    """Elements of one layer's constant state per sequence: recurrent state and the convolution's tail.

    Parameters
    ----------
    mixer : Mixer or None

    Returns
    -------
    int

    References
    ----------
    1. Dao and Gu 2024 (Mamba-2); Yang et al. 2024 (gated delta networks).
    """
    match mixer:
        case StateSpace():
            channels = mixer.heads * mixer.head_dim + 2 * mixer.groups * mixer.state
        case LinearAttention():
            channels = 2 * mixer.key_heads * mixer.key_head_dim + mixer.value_heads * mixer.value_head_dim
        case _:
            return 0
    return recurrent_state_elements(mixer) + channels * (mixer.convolution - 1)


def cache_bytes_per_sequence(
    transformer: Transformer,
    context: float,
    bytes_per_element: float,
    state_bytes_per_element: float = 4.0,
) -> float:
    """Cache bytes of one sequence of ``context`` tokens, all layers, unsharded.

    Parameters
    ----------
    transformer : Transformer
    context : float [token]
    bytes_per_element : float [byte]
    state_bytes_per_element : float [byte]
        Of recurrent states; engines keep them in 32 bits by default.

    Returns
    -------
    float [byte]

    Notes
    -----
    Per-layer floors of a paged cache (block size) are the serving engine's and not counted here.

    References
    ----------
    1. Kwon et al., "PagedAttention", 2023; the parts' own references.
    """
    total = 0.0
    for group in transformer.groups:
        mixer = group.mixer
        entries = cached_entries(mixer, context) * cache_elements_per_token(mixer)
        if isinstance(mixer, SoftmaxAttention) and mixer.compression and mixer.index_heads:
            entries += context / mixer.compression * mixer.index_head_dim
        total += group.count * (entries * bytes_per_element + state_elements(mixer) * state_bytes_per_element)
    return total


def cache_bytes_per_token(transformer: Transformer, bytes_per_element: float) -> float:
    """Cache bytes that one more token costs in a long context (windows full): the slope of the cache.

    Parameters
    ----------
    transformer : Transformer
    bytes_per_element : float [byte]

    Returns
    -------
    float [byte/token]

    References
    ----------
    1. Pope et al. 2022; DeepSeek-AI 2024 (V2, table 1).
    """
    longest = max(
        (g.mixer.window or 0 for g in transformer.groups if isinstance(g.mixer, SoftmaxAttention)),
        default=0,
    )
    base = float(longest + 1)
    more = cache_bytes_per_sequence(transformer, base + 1.0, bytes_per_element)
    return more - cache_bytes_per_sequence(transformer, base, bytes_per_element)


def cache_read_bytes_per_step(transformer: Transformer, context: float, bytes_per_element: float) -> float:
    """Cache bytes one decoded token reads (sparse selection reads less than is held) [byte/token].

    Parameters
    ----------
    transformer : Transformer
    context : float [token]
    bytes_per_element : float [byte]

    Returns
    -------
    float [byte/token]

    References
    ----------
    1. Pope et al. 2022, section 2.1; DeepSeek-AI, "DeepSeek-V3.2", 2025 (top-k selection, indexer reads all its keys).
    """
    total = cache_bytes_per_sequence(transformer, context, bytes_per_element)
    for group in transformer.groups:
        mixer = group.mixer
        if not isinstance(mixer, SoftmaxAttention | LatentAttention) or not mixer.selected_tokens:
            continue
        width = cache_elements_per_token(mixer)
        compressed = isinstance(mixer, SoftmaxAttention) and mixer.compression
        far = context / compressed if compressed else context
        if mixer.index_heads and not compressed:
            width -= mixer.index_head_dim
        unread = max(0.0, far - mixer.selected_tokens)
        total -= group.count * unread * width * bytes_per_element
    return total
