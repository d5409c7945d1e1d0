"""Memory of the fullest accelerator of a plan, part by part, and whether it fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.engine.training.architecture import ACTIVATION_BYTES, Architecture
from app.engine.training.hardware_arrays import Hardware
from app.engine.training.plans import PlanArrays

Array = NDArray[np.float64]
Real = float | Array

# full recomputation keeps the input of every layer, and one layer at a time in full (Korthikanti 2022, section 5)
KEPT_BY_FULL_RECOMPUTE = 1.0
# scores, softmax and dropout mask of unfused attention: 5 bytes per head and pair (Korthikanti 2022, equation 1)
UNFUSED_BYTES_PER_SCORE = 5.0
# logits in 16 bits and their fp32 copy, whose memory the gradient takes over, at the end of the forward pass
LOGIT_BYTES_HELD = 6.0
# FSDP keeps the layer at work and the one prefetched gathered (Zhao et al. 2023, section 3.3)
GATHERED_LAYERS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Bytes of each kind of state per parameter.

    Parameters
    ----------
    weights, gradients, optimizer : float or array [byte/parameter]
        Of trained parameters.
    frozen : float or array [byte/parameter]
        Of frozen ones (LoRA base).
    trained_share : float or array
        Share of all parameters that is trained (adapters).
    copies : float or array
        Copies of the frozen weights (1; 2 with a reference model beside a full policy).

    References
    ----------
    1. Rajbhandari et al. 2020, section 3.1 (2 + 2 + 12); Micikevicius et al. 2018 (mixed precision).
    2. Dettmers et al. 2023 (QLoRA).
    """

    weights: Real
    gradients: Real
    optimizer: Real
    frozen: Real
    trained_share: Real
    copies: Real


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryArrays:
    """Bytes of the fullest accelerator of each plan, shape (plans,).

    References
    ----------
    1. Korthikanti et al. 2022; Rajbhandari et al. 2020.
    """

    weights: Array
    gradients: Array
    optimizer: Array
    activations: Array
    logits: Array
    buffers: Array
    reserve: Array
    available: Array

    @property
    def asked(self) -> Array:
        """All parts but the reserve: the same on every machine [byte]."""
        parts = self.weights + self.gradients + self.optimizer + self.activations
        return parts + self.logits + self.buffers

    @property
    def used(self) -> Array:
        """Sum of all parts [byte]."""
        return self.asked + self.reserve

    @property
    def headroom(self) -> Array:
        """What is left, negative where the plan does not fit [byte]."""
        return self.available - self.used


def local_parameters(a: Architecture, p: PlanArrays) -> tuple[Array, Array]:
    """Parameters of one rank of the fullest stage, before data-parallel sharding: dense, and of routed experts.

    Parameters
    ----------
    a : Architecture
    p : PlanArrays, shape (plans,)

    Returns
    -------
    (array, array)

    Notes
    -----
    The first stage holds the input embedding, the last the head; both counted on one stage where there is one.

    References
    ----------
    1. Narayanan et al. 2021, section 2.
    """
    tables = np.where(p.pipeline > 1.0, 1.0, a.tables)
    # an uneven pipeline's fullest stage holds more than its share, but never more than a layer
    chunks = p.pipeline * p.virtual
    share = np.minimum(np.ceil(a.depth / chunks) * p.virtual, np.ceil(a.depth / p.pipeline)) / a.depth
    mixed = np.maximum(a.moe_depth, 1.0)
    share_moe = np.minimum(np.ceil(mixed / chunks) * p.virtual, np.ceil(mixed / p.pipeline)) / mixed
    layers = (a.dense_parameters / p.tensor + a.replicated_parameters) * share
    dense = layers + tables * a.embedding_parameters / p.tensor + a.other_parameters
    experts = a.expert_parameters / (p.expert * p.expert_tensor) * share_moe
    return np.asarray(dense, dtype=np.float64), np.asarray(experts + 0.0 * p.tensor, dtype=np.float64)


def memory_of(
    a: Architecture, p: PlanArrays, sequence: Real, global_batch: Real, hw: Hardware, formats: Formats, fused: Real
) -> MemoryArrays:
    """Memory of each plan.

    Parameters
    ----------
    a : Architecture
    p : PlanArrays, shape (plans,)
    sequence : float or array [token]
    global_batch : float or array [sequence]
    hw : Hardware
    formats : Formats
    fused : float or array
        1 where attention is fused.

    Returns
    -------
    MemoryArrays, shape (plans,)

    References
    ----------
    1. Rajbhandari et al. 2020; Korthikanti et al. 2022; Zhao et al. 2023.
    """
    dense, experts = local_parameters(a, p)
    replicas = p.data * p.context
    expert_replicas = np.maximum(p.tensor * replicas / (p.expert * p.expert_tensor), 1.0)
    # hybrid sharding divides inside the scale-up domain only
    span = np.where(p.sharding == 4.0, np.clip(np.floor(hw.domain / p.tensor), 1.0, replicas), replicas)
    expert_span = np.minimum(span, expert_replicas)

    def shard(stage: float) -> Array:
        on = p.sharding >= stage
        return np.asarray(dense / np.where(on, span, 1.0) + experts / np.where(on, expert_span, 1.0))

    trained = formats.trained_share
    all_sharded = p.sharding >= 3.0
    layer = (dense + experts) / np.maximum(a.depth / p.pipeline, 1.0)
    gathered = np.where(all_sharded, GATHERED_LAYERS * ACTIVATION_BYTES * layer, 0.0)
    host = p.offload > 0.0
    weights = shard(3.0) * (formats.weights * trained + formats.frozen * (1.0 - trained) + formats.copies) + gathered
    activations, working = _activations(a, p, sequence, global_batch, fused)
    tokens = p.micro_batch * sequence / p.context
    zero = 0.0 * p.tensor
    return MemoryArrays(
        weights=weights,
        gradients=shard(2.0) * formats.gradients * trained,
        optimizer=np.where(host, 0.0, shard(1.0) * formats.optimizer * trained),
        activations=activations,
        logits=LOGIT_BYTES_HELD * tokens * a.vocab / p.tensor + zero,
        buffers=working + 2.0 * ACTIVATION_BYTES * tokens * a.hidden,
        reserve=hw.reserve_bytes + zero,
        available=hw.memory_bytes * hw.allocatable_share + zero,
    )


def _activations(
    a: Architecture, p: PlanArrays, sequence: Real, global_batch: Real, fused: Real
) -> tuple[Array, Array]:
    tokens = p.micro_batch * sequence / p.context
    own = tokens / p.tensor
    plain = np.where(p.sequence_parallel > 0.0, own, tokens)
    routed = own * p.expert_tensor
    scores = np.sum(a.attention_layers * a.attention_heads, axis=0) * UNFUSED_BYTES_PER_SCORE * sequence * own
    none = a.saved_hidden * plain + a.saved_sharded * own + a.saved_expert_hidden * routed
    none = none + a.saved_expert_sharded * own + (1.0 - fused) * scores
    selective = a.selective_hidden * plain + a.selective_sharded * own + a.selective_expert_hidden * routed
    selective = selective + a.selective_expert_sharded * own
    full = KEPT_BY_FULL_RECOMPUTE * ACTIVATION_BYTES * a.hidden * a.depth * plain
    level = p.recompute
    partial = np.clip(level - 1.0, 0.0, 1.0)
    kept = np.where(level == 0.0, none, selective * (1.0 - partial) + full * partial)
    batches = np.maximum(global_batch / (p.data * p.micro_batch), 1.0)
    # 1F1B keeps one micro-batch per later stage; interleaving adds (p - 1)/(p v) of that (Narayanan 2021, 2.2)
    flight = np.where(p.virtual > 1.0, p.pipeline * (1.0 + (p.pipeline - 1.0) / (p.pipeline * p.virtual)), p.pipeline)
    flight = np.minimum(flight, batches)
    working = np.where(p.recompute > 0.0, none, 0.0) / a.depth
    return kept / p.pipeline * flight, working
