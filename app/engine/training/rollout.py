"""Generation phase of reinforcement learning: memory-bound decoding on the training cluster."""

import math

from app.engine.training.architecture import architecture_of, trained_parameters
from app.engine.training.hardware_arrays import Hardware
from app.engine.workload import Rollout, TrainingWorkload

# weights may take this share of memory while generating; the rest holds the cache (Kwon et al. 2023, vLLM)
WEIGHT_SHARE = 0.55
# share of the memory bandwidth decode reaches with launch and sampling included (kernels table: skinny GEMMs 0.56 to
# 0.7 at one token when launch time is not separated)
DECODE_SHARE = 0.6
# share of the dense peak the prefill of the prompts reaches
PREFILL_SHARE = 0.45
GENERATION_BYTES = 2.0


def generation_time(workload: TrainingWorkload, rollout: Rollout, hardware: Hardware) -> float:
    """Time to generate the answers of one step on all accelerators.

    Parameters
    ----------
    workload : TrainingWorkload
    rollout : Rollout
    hardware : Hardware

    Returns
    -------
    float [s]

    Notes
    -----
    Closed form: the fewest accelerators a replica needs, equal shares of the sequences, weights and half of the
    final cache read once a token. Lengths are means: a long tail of answers is not modelled, so this is a lower bound.

    References
    ----------
    1. Pope et al., "Efficiently Scaling Transformer Inference", 2022; Shao et al. 2024 (GRPO).
    """
    a = architecture_of(workload.transformer)
    accelerators, memory = float(hardware.accelerators), float(hardware.memory_bytes)
    weights = GENERATION_BYTES * float(trained_parameters(a))
    replica = min(2.0 ** max(math.ceil(math.log2(weights / (WEIGHT_SHARE * memory))), 0), accelerators)
    cache = GENERATION_BYTES * float(a.key_value_elements)
    length = rollout.prompt_tokens + rollout.output_tokens
    sequences = workload.global_batch_sequences * replica / accelerators
    room = max((0.9 * memory * replica - weights) / (cache * length), 1.0)
    waves = max(math.ceil(sequences / room), 1)
    batch = min(sequences, room)
    read = weights + batch * cache * (rollout.prompt_tokens + 0.5 * rollout.output_tokens)
    decode = waves * rollout.output_tokens * read / (replica * float(hardware.memory_bytes_per_s) * DECODE_SHARE)
    matmul = 2.0 * float((a.k * a.n * a.active * a.layers).sum())
    prompts = sequences / max(rollout.samples_per_prompt, 1) * rollout.prompt_tokens
    return decode + prompts * matmul / (replica * float(hardware.wide_flops_per_s) * PREFILL_SHARE)
