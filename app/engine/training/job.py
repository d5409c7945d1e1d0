"""A training workload as the numbers a step and its memory need."""

from app.engine.accounting import adapter_parameters
from app.engine.precision import FORMATS
from app.engine.training.architecture import Architecture, trained_parameters
from app.engine.training.memory import Formats
from app.engine.training.step import Job
from app.engine.workload import Adapter, TrainingWorkload

# bytes per trained parameter: 16-bit weights and gradients, fp32 master weight and two Adam moments
# (Rajbhandari et al. 2020, section 3.1)
WEIGHT_BYTES, GRADIENT_BYTES, OPTIMIZER_STATE_BYTES = 2.0, 2.0, 12.0
# stacks that accumulate gradients in fp32 by default (Megatron-LM with --bf16, DeepSpeed, FSDP mixed precision);
# vendor recipes reduce and accumulate in 16 bits
WIDE_GRADIENT_BYTES, WIDE_GRADIENT_FAMILIES = 4.0, ("plain", "deepspeed", "pytorch")
# forward passes without gradients beside the trained one: DPO scores a reference policy (Rafailov et al. 2023),
# GRPO the old policy and a reference (Shao et al. 2024)
EXTRA_FORWARDS = {"dpo": 1.0, "grpo": 2.0}
# frozen copies of the weights held beside the trained ones, 16 bits each: the reference policy
REFERENCE_BYTES = {"dpo": 2.0, "grpo": 2.0}
ADAPTER_METHODS = ("lora", "qlora")


def job_of(workload: TrainingWorkload) -> Job:
    """What a step of the workload processes.

    Parameters
    ----------
    workload : TrainingWorkload

    Returns
    -------
    Job

    References
    ----------
    1. Hu et al. 2021 (LoRA); Rafailov et al. 2023 (DPO); Shao et al. 2024 (GRPO); DeepSeek-AI 2024 (MTP).
    """
    return Job(
        sequence=float(workload.sequence_length),
        document=float(min(workload.document_tokens or workload.sequence_length, workload.sequence_length)),
        global_batch=float(workload.global_batch_sequences),
        weight_gradients=0.0 if workload.method in ADAPTER_METHODS else 1.0,
        extra_forwards=EXTRA_FORWARDS.get(workload.method, 0.0),
        heads=1.0 + workload.mtp_layers,
    )


def formats_of(workload: TrainingWorkload, architecture: Architecture, family: str = "megatron") -> Formats:
    """Bytes per parameter of each kind of state.

    Parameters
    ----------
    workload : TrainingWorkload
    architecture : Architecture
    family : str
        Software family, as in :class:`app.engine.training.calibration.Setting`.

    Returns
    -------
    Formats

    References
    ----------
    1. Rajbhandari et al. 2020; Hu et al. 2021; Dettmers et al. 2023.
    """
    frozen, trained = 0.0, 1.0
    if workload.method in ADAPTER_METHODS:
        adapter = workload.adapter or Adapter()
        base = "int4" if workload.method == "qlora" and adapter.base_precision == "bf16" else adapter.base_precision
        frozen = FORMATS[base].bytes_per_element
        pairs = adapter_parameters(workload.transformer, adapter.rank, adapter.targets)
        trained = pairs / float(trained_parameters(architecture))
    return Formats(
        weights=WEIGHT_BYTES,
        gradients=WIDE_GRADIENT_BYTES if family in WIDE_GRADIENT_FAMILIES else GRADIENT_BYTES,
        optimizer=OPTIMIZER_STATE_BYTES,
        frozen=frozen,
        trained_share=min(trained, 1.0),
        copies=REFERENCE_BYTES.get(workload.method, 0.0),
    )
