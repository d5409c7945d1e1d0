"""What one accelerator of a serving replica holds, and how many sequences its cache admits."""

from dataclasses import dataclass

import numpy as np

from app.engine.serving.calibration import EngineConventions
from app.engine.serving.operators import ACTIVATION_BYTES, Floats, Operators

# live activation buffers of a chunk, in units of tokens x width: hidden, residual, gate and up halves;
# vLLM profiling run (`determine_num_available_blocks`)
CHUNK_BUFFERS = 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory of one accelerator by owner [byte], and the room left for the cache; arrays ``(plans, 1)``."""

    weights: Floats
    workspace: Floats
    reserve: Floats
    cache: Floats
    total: float


def serving_memory(
    o: Operators, engine: EngineConventions, memory_bytes: float, memory_fraction: float, chunk_tokens: float
) -> ServingMemory:
    """Split an accelerator's memory as the engine does at start.

    Parameters
    ----------
    o : Operators
    engine : EngineConventions
    memory_bytes : float [byte]
    memory_fraction : float [1]
    chunk_tokens : float [token]

    Returns
    -------
    ServingMemory
        ``cache`` is negative where the weights do not fit (the missing bytes).

    References
    ----------
    1. Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", 2023.
    """
    workspace = CHUNK_BUFFERS * ACTIVATION_BYTES * chunk_tokens * o.hidden / np.sqrt(o.tensor)
    reserve = np.full_like(o.tensor, engine.reserve_bytes)
    cache = memory_fraction * memory_bytes - o.weights_resident_bytes - workspace - reserve
    return ServingMemory(
        weights=o.weights_resident_bytes, workspace=workspace, reserve=reserve, cache=cache, total=memory_bytes
    )


def sequence_bytes(o: Operators, tokens: Floats, frees_windows: bool = True) -> Floats:
    """Cache bytes of one sequence of the given length on one accelerator [byte], ``(plans, cases)``.

    Parameters
    ----------
    o : Operators
    tokens : Floats
    frees_windows : bool

    Returns
    -------
    Floats

    Notes
    -----
    Windows hold at most their width where the engine frees what lies outside. Pipeline
    stages hold their share of the layers.

    References
    ----------
    1. Ainslie et al. 2023; DeepSeek-AI 2024; Dao and Gu 2024.
    """
    length = tokens[:, :, None]
    cap = o.held_cap[:, None, :] if frees_windows else np.inf
    held = np.minimum(length, cap) * o.kv_bytes_per_token[:, None, :]
    each = held + length * o.index_bytes_per_token[:, None, :] + o.state_bytes[:, None, :]
    return np.asarray((o.attention_layers[:, None, :] * each).sum(axis=2)) / o.pipeline


def admitted_sequences(o: Operators, memory: ServingMemory, tokens: Floats, frees_windows: bool = True) -> Floats:
    """Sequences of the given admitted length that the replica's cache holds (all attention-data ranks).

    Parameters
    ----------
    o : Operators
    memory : ServingMemory
    tokens : Floats
    frees_windows : bool

    Returns
    -------
    Floats

    References
    ----------
    1. Kwon et al. 2023.
    """
    return np.maximum(memory.cache, 0.0) / np.maximum(sequence_bytes(o, tokens, frees_windows), 1.0) * o.data
