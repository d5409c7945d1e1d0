"""The circumstances calibrated effects depend on: chip, number format, software stack and its date, method, routing."""

from dataclasses import dataclass
from math import log

from app.engine.hardware import Accelerator
from app.engine.precision import FORMATS
from app.engine.workload import TrainingWorkload

# decimal year that a workload without a software date is taken at: the newest rows of the calibration (2026-06)
NEWEST_SOFTWARE_YEAR = 2026.5
# software effects are counted from here, and not beyond the years that were measured
SOFTWARE_ORIGIN_YEAR, SOFTWARE_FIRST_YEAR, SOFTWARE_LAST_YEAR = 2025.5, 2021.0, 2026.7
# layers with experts moved fast in these years (DeepSeek-V3 on 256 B200: 2139 to 3328 tokens/s in nine months)
EXPERTS_FIRST_YEAR = 2025.3
# fused (flash) attention reached the training stacks between its paper (Dao et al. 2022) and early 2023
FUSED_ATTENTION_YEAR = 2023.2
# sequence parallelism beside tensor parallelism came with selective recomputation (Korthikanti et al. 2022)
SEQUENCE_PARALLEL_YEAR = 2022.25
# context parallelism: Ring Attention (Liu et al., October 2023), Megatron-Core 0.5
CONTEXT_PARALLEL_YEAR = 2023.8
# dispatchers that send a token once to each node, whatever number of its experts live there: DeepSeek-V3's own of
# December 2024 (DeepEP), where no stack is named; in NVIDIA's stacks since summer 2025 (Megatron-Core 0.13), with fused
# routing and permutation, without which many small experts wait long
UNNAMED_NODE_DISPATCH_YEAR, NODE_DISPATCH_YEAR = 2024.9, 2025.5
NODE_DISPATCH_FAMILIES, EARLY_EXPERTS_FAMILIES, MANY_EXPERTS = ("megatron", "pytorch", "plain"), ("megatron",), 64
# dropless mixture-of-experts layers without host synchronisation: Megatron-Core 0.16 and later, 2026, with grouped
# matmuls whose sizes stay on the device, which exist in MXFP8 on Blackwell
SYNC_FREE_EXPERTS_YEAR, SYNC_FREE_FAMILIES = 2026.35, ("megatron",)

# a part holds its datasheet clock as far as its power budget lets it: watts per dense 16-bit FLOP/s, counted from the
# H100 SXM's 700 W for 989 TFLOP/s
POWER_ORIGIN_W_PER_FLOP_PER_S = 700.0 / 989.0e12

PRECISION_CLASSES = {
    "bf16": "16bit",
    "fp16": "16bit",
    "tf32": "16bit",
    "fp32": "16bit",
    "fp8": "fp8",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "mxfp4": "nvfp4",
    "int8": "int8",
}

# stacks as families: how much of a step is fused, captured in graphs and overlapped differs between them
STACK_FAMILIES = {
    "megatron": "megatron",
    "nemo": "megatron",
    "megatron-bridge": "megatron",
    "mlperf": "megatron",
    "maxtext": "xla",
    "jax": "xla",
    "xla": "xla",
    "torchtitan": "pytorch",
    "fsdp": "pytorch",
    "pytorch": "pytorch",
    "llm-foundry": "pytorch",
    "automodel": "pytorch",
    "deepspeed": "deepspeed",
    "megatron-deepspeed": "deepspeed",
    "neuron": "neuron",
    "habana": "habana",
    # anyone's own run of an open framework with its defaults: no vendor recipe
    "plain": "plain",
}
VENDOR_FAMILIES = {"Google": "xla", "AWS": "neuron", "Intel": "habana"}
# families that are not a vendor's own tuned recipes: what they lose together stands for one that was not measured
OWN_STACK_FAMILIES = ("pytorch", "deepspeed", "neuron", "habana", "plain")
# families whose attention kernels of the time were written for Ampere (FlashAttention 2: 0.35 of an H100's peak against
# 0.6 of an A100's, Shah et al. 2024) while vendor stacks had rewritten theirs
LATE_ATTENTION_FAMILIES, EARLY_GENERATIONS = ("pytorch", "deepspeed"), ("Ampere", "Ada", "Volta")
UNFUSED_ATTENTION_STACKS = ("megatron-deepspeed",)

# which effects a quantity may have; order is from the general to the particular
LEVELS: dict[str, tuple[str, ...]] = {
    "matmul_share": ("all", "vendor", "generation", "precision", "generation_precision", "year", "power"),
    "expert_share": ("all", "vendor", "generation", "precision", "moe_year", "family"),
    "attention_share": ("all", "vendor", "generation", "late_kernels", "year"),
    "elementwise": ("all", "vendor", "generation", "family"),
    "quantize": ("all", "precision"),
    "permute": ("all", "moe_year"),
    "scan": ("all",),
    "host_layer_s": ("all", "family"),
    "host_moe_s": ("all", "routing", "early_experts", "sync_free", "moe_year", "compiled"),
    "host_expert": ("all",),
    "tensor_exposed": ("all", "family"),
    "context_exposed": ("all",),
    "expert_exposed": ("all", "moe_year"),
    "pipeline_exposed": ("all",),
    "data_exposed": ("all",),
    "shard_exposed": ("all", "family"),
    "scale_up_share": (),
    "scale_out_share": (),
    "step_fixed_s": ("all",),
    "scale_loss": ("all",),
    "slowdown": ("own_stack", "family", "method"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The circumstances effects are looked up by: chip, format, software, method, routing."""

    vendor: str
    generation: str
    precision: str
    curve_format: str
    family: str
    stack_named: bool
    fused_attention: bool
    sequence_parallel: bool
    context_parallel: bool
    year: float
    log_power: float
    method: str
    routing: str
    many_experts: bool

    @property
    def early_experts(self) -> bool:
        """Whether many small experts meet a stack of before fused routing and permutation."""
        late = not self.stack_named or self.year >= NODE_DISPATCH_YEAR
        return self.many_experts and self.family in EARLY_EXPERTS_FAMILIES and not late

    @property
    def node_dispatch(self) -> bool:
        """Whether a token is sent once to each node rather than once to each expert."""
        since = NODE_DISPATCH_YEAR if self.stack_named else UNNAMED_NODE_DISPATCH_YEAR
        return self.family in NODE_DISPATCH_FAMILIES and self.year >= since

    @property
    def sync_free(self) -> bool:
        """Whether layers with experts run without waiting for the host."""
        late = self.family in SYNC_FREE_FAMILIES and self.year >= SYNC_FREE_EXPERTS_YEAR
        return late and self.precision == "mxfp8"

    def keys(self, quantity: str) -> list[tuple[str, float]]:
        """Effects of a quantity that apply here: (name, covariate)."""
        found: list[tuple[str, float]] = []
        for level in LEVELS[quantity]:
            match level:
                case "all":
                    found.append((f"{quantity}/all", 1.0))
                case "generation_precision":
                    found.append((f"{quantity}/{level}={self.generation}:{self.precision}", 1.0))
                case "own_stack":
                    found.append((f"{quantity}/own_stack", float(self.family in OWN_STACK_FAMILIES)))
                case "year":
                    year = min(max(self.year, SOFTWARE_FIRST_YEAR), SOFTWARE_LAST_YEAR)
                    found.append((f"{quantity}/year", year - SOFTWARE_ORIGIN_YEAR))
                case "moe_year":
                    year = min(max(self.year, EXPERTS_FIRST_YEAR), SOFTWARE_LAST_YEAR)
                    found.append((f"{quantity}/moe_year", year - SOFTWARE_ORIGIN_YEAR))
                case "compiled":
                    found.append((f"{quantity}/compiled", float(self.family in ("xla", "xla_gpu", "neuron"))))
                case "late_kernels":
                    late = self.family in LATE_ATTENTION_FAMILIES and self.vendor == "NVIDIA"
                    found.append((f"{quantity}/late_kernels", float(late and self.generation not in EARLY_GENERATIONS)))
                case "power":
                    found.append((f"{quantity}/power", self.log_power))
                case "early_experts":
                    found.append((f"{quantity}/early_experts", float(self.early_experts)))
                case "sync_free":
                    found.append((f"{quantity}/sync_free", float(self.sync_free)))
                case _:
                    found.append((f"{quantity}/{level}={getattr(self, level)}", 1.0))
        return found


def setting_of(workload: TrainingWorkload, accelerator: Accelerator) -> Setting:
    """The setting of a workload on an accelerator.

    Parameters
    ----------
    workload : TrainingWorkload
    accelerator : Accelerator

    Returns
    -------
    Setting

    References
    ----------
    1. Calibration rows: effects by generation, precision, software date and stack.
    """
    software = workload.software
    year = NEWEST_SOFTWARE_YEAR if software.released_year is None else software.released_year
    stack = software.stack or ""
    # whatever framework a program is written in, these vendors' compilers make it
    family = VENDOR_FAMILIES.get(accelerator.vendor) or STACK_FAMILIES.get(stack, "megatron")
    if family == "xla" and accelerator.vendor == "NVIDIA":
        family = "xla_gpu"
    unfused = stack in UNFUSED_ATTENTION_STACKS and accelerator.vendor not in VENDOR_FAMILIES
    experts = max(getattr(g.feed_forward, "experts", 0) for g in workload.transformer.groups)
    moe = experts > 0
    method = {"lora": "adapter", "qlora": "adapter"}.get(workload.method, "full")
    return Setting(
        vendor=accelerator.vendor,
        generation=accelerator.architecture,
        precision=PRECISION_CLASSES[workload.precision],
        curve_format=FORMATS[workload.precision].peak,
        family=family,
        stack_named=software.stack is not None,
        fused_attention=year >= FUSED_ATTENTION_YEAR and not unfused,
        sequence_parallel=year >= SEQUENCE_PARALLEL_YEAR and not unfused,
        context_parallel=year >= CONTEXT_PARALLEL_YEAR,
        year=year,
        log_power=_log_power(accelerator),
        method=method,
        routing=(workload.moe_routing or "dropless") if moe else "none",
        many_experts=experts >= MANY_EXPERTS,
    )


def _log_power(accelerator: Accelerator) -> float:
    wide = accelerator.dense_peaks.bf16
    if accelerator.thermal_design_power_w is None or wide is None:
        return 0.0
    return log(accelerator.thermal_design_power_w / wide / POWER_ORIGIN_W_PER_FLOP_PER_S)
