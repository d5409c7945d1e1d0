"""Calibrated parameters of the training engine, and how they are found for a given chip, format and software.

Every quantity has a base value with a physical meaning and, on a log scale, effects that add up from the general to
the particular: global, vendor, generation, precision, stack. A part without rows of its own takes what its vendor
and the whole share, and says so in its evidence class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from app.engine.hardware import Accelerator
from app.engine.kernels import MatmulCurve
from app.engine.precision import FORMATS
from app.engine.workload import TrainingWorkload

Real = float | NDArray[np.float64]

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
# dropless mixture-of-experts layers without host synchronisation: Megatron-Core 0.16 and later, 2026
SYNC_FREE_EXPERTS_YEAR = 2026.35

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
# families whose attention kernels of the time were written for Ampere (FlashAttention 2: 0.35 of an H100's peak against
# 0.6 of an A100's, Shah et al. 2024) while vendor stacks had rewritten theirs
LATE_ATTENTION_FAMILIES, EARLY_GENERATIONS = ("pytorch", "deepspeed"), ("Ampere", "Ada", "Volta")
UNFUSED_ATTENTION_STACKS = ("megatron-deepspeed",)

# generations that borrow a neighbour's matmul curve where they have none of their own
CURVE_NEIGHBOURS = {
    "Ada": "Hopper",
    "Ada Lovelace": "Hopper",
    "Rubin": "Blackwell Ultra",
    "Blackwell Ultra": "Blackwell",
    "Blackwell": "Blackwell Ultra",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """Everything the time of a step depends on beside datasheet, architecture and plan.

    Parameters
    ----------
    matmul_share, expert_share, attention_share : float or array
        Share of an isolated kernel's rate kept in training (power limit, neighbours); the same for grouped expert
        matmuls on top of it; share of the dense 16-bit peak of fused attention.
    elementwise, quantize, permute : float or array
        Bytes moved by memory-bound kernels, by casts, by expert permutation, relative to the ideal count.
    scan : float or array
        Time of state-space and linear-attention scans relative to the same FLOPs in fused attention.
    host_layer_s, host_moe_s : float or array [s]
        Time the host needs to launch one layer's forward and backward; the same for a layer with experts.
    tensor_exposed, context_exposed, expert_exposed, pipeline_exposed, data_exposed, shard_exposed : float or array
        Share of each kind of traffic that computation does not hide.
    scale_up_share, scale_out_share : float or array
        Share of the link rate that collectives reach.
    step_fixed_s : float or array [s]
        Time of a step that nothing else explains (data fetch, logging, clipping).
    scale_loss : float or array
        Relative loss for each doubling of the accelerators beyond eight (jitter, stragglers).
    slowdown : float or array
        Factor on computation of an ordinary stack against a tuned one.
    curve_* : float or array
        The matmul curve, as in :class:`app.engine.kernels.MatmulCurve`; ``head_*`` the one of the 16-bit head.
    fused_attention : float or array
        1 where attention does not write its scores to memory.

    References
    ----------
    1. Narayanan et al. 2021; Korthikanti et al. 2022; Rajbhandari et al. 2020; calibration rows in the catalog.
    """

    matmul_share: Real
    expert_share: Real
    attention_share: Real
    elementwise: Real
    quantize: Real
    permute: Real
    scan: Real
    host_layer_s: Real
    host_moe_s: Real
    tensor_exposed: Real
    context_exposed: Real
    expert_exposed: Real
    pipeline_exposed: Real
    data_exposed: Real
    shard_exposed: Real
    scale_up_share: Real
    scale_out_share: Real
    step_fixed_s: Real
    scale_loss: Real
    slowdown: Real
    curve_max_share: Real
    curve_half_m: Real
    curve_half_n: Real
    curve_half_k: Real
    head_max_share: Real
    fused_attention: Real


# base values before any fit: order of magnitude from the references of each field
BASES: dict[str, float] = {
    "matmul_share": 0.9,
    "expert_share": 0.8,
    "attention_share": 0.45,
    "elementwise": 1.2,
    "quantize": 0.5,
    "permute": 1.5,
    "scan": 4.0,
    "host_layer_s": 1.0e-3,
    "host_moe_s": 3.0e-3,
    "tensor_exposed": 0.6,
    "context_exposed": 0.3,
    "expert_exposed": 0.7,
    "pipeline_exposed": 0.3,
    "data_exposed": 0.3,
    "shard_exposed": 0.15,
    "scale_up_share": 0.75,
    "scale_out_share": 0.7,
    "step_fixed_s": 0.02,
    "scale_loss": 0.004,
    "slowdown": 1.0,
}

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
    "host_moe_s": ("all", "routing", "sync_free", "moe_year", "compiled"),
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
    "slowdown": ("family", "method"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The circumstances effects are looked up by: chip, format, software, method, routing."""

    vendor: str
    generation: str
    precision: str
    curve_format: str
    family: str
    fused_attention: bool
    sequence_parallel: bool
    context_parallel: bool
    year: float
    log_power: float
    method: str
    routing: str

    def keys(self, quantity: str) -> list[tuple[str, float]]:
        """Effects of a quantity that apply here: (name, covariate)."""
        found: list[tuple[str, float]] = []
        for level in LEVELS[quantity]:
            match level:
                case "all":
                    found.append((f"{quantity}/all", 1.0))
                case "generation_precision":
                    found.append((f"{quantity}/{level}={self.generation}:{self.precision}", 1.0))
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
                case "sync_free":
                    found.append((f"{quantity}/sync_free", float(self.year >= SYNC_FREE_EXPERTS_YEAR)))
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
    family = STACK_FAMILIES.get(stack) or {"Google": "xla", "AWS": "neuron", "Intel": "habana"}.get(
        accelerator.vendor, "megatron"
    )
    if family == "xla" and accelerator.vendor == "NVIDIA":
        family = "xla_gpu"
    moe = any(getattr(g.feed_forward, "experts", 0) for g in workload.transformer.groups)
    method = {"lora": "adapter", "qlora": "adapter"}.get(workload.method, "full")
    return Setting(
        vendor=accelerator.vendor,
        generation=accelerator.architecture,
        precision=PRECISION_CLASSES[workload.precision],
        curve_format=FORMATS[workload.precision].peak,
        family=family,
        fused_attention=year >= FUSED_ATTENTION_YEAR and stack not in UNFUSED_ATTENTION_STACKS,
        sequence_parallel=year >= SEQUENCE_PARALLEL_YEAR and stack not in UNFUSED_ATTENTION_STACKS,
        context_parallel=year >= CONTEXT_PARALLEL_YEAR,
        year=year,
        log_power=_log_power(accelerator),
        method=method,
        routing=(workload.moe_routing or "dropless") if moe else "none",
    )


def _log_power(accelerator: Accelerator) -> float:
    wide = accelerator.dense_peaks.bf16
    if accelerator.thermal_design_power_w is None or wide is None:
        return 0.0
    return log(accelerator.thermal_design_power_w / wide / POWER_ORIGIN_W_PER_FLOP_PER_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingCalibration:
    """Parameters as shipped in the catalog.

    Parameters
    ----------
    effects : mapping of str to float
        Name to effect on the log scale; absent names count zero.
    curves : mapping of str to MatmulCurve
        ``generation/format``; ``default/format`` where nothing was measured.
    residuals : mapping of str to (float, float, float)
        Evidence class to 10th, 50th, 90th percentile of log(measured / predicted), out of sample.
    seen : frozenset of str
        ``accelerator`` ids, ``generation=...`` and ``vendor=...`` with calibration rows, with ``:precision`` appended.
    fitted_on : str
        Date of the calibration.
    """

    effects: Mapping[str, float]
    curves: Mapping[str, MatmulCurve]
    residuals: Mapping[str, tuple[float, float, float]]
    seen: frozenset[str]
    fitted_on: str

    @classmethod
    def from_mapping(cls, data: Mapping[str, object]) -> "TrainingCalibration":
        """Read the catalog's mapping (``training.json``).

        References
        ----------
        1. ``python -m benchmarks.calibrate training`` writes it.
        """
        effects, curves, residuals = data["effects"], data["curves"], data["residuals"]
        seen = data["seen"]
        if not (isinstance(effects, Mapping) and isinstance(curves, Mapping) and isinstance(residuals, Mapping)):
            raise ValueError("a training calibration needs the mappings effects, curves and residuals")
        if not isinstance(seen, list):
            raise ValueError("a training calibration needs the list seen")
        names = [f.name for f in fields(MatmulCurve)]
        return cls(
            effects={str(k): float(v["value"]) for k, v in effects.items()},
            curves={str(k): MatmulCurve(**{n: float(v[n]) for n in names}) for k, v in curves.items()},
            residuals={str(k): (float(v["p10"]), float(v["p50"]), float(v["p90"])) for k, v in residuals.items()},
            seen=frozenset(str(s) for s in seen),
            fitted_on=str(data["fitted_on"]),
        )

    def curve(self, generation: str, number_format: str) -> MatmulCurve:
        """Matmul curve of a generation and format, or its nearest neighbour's.

        References
        ----------
        1. Measured GEMM times of aiconfigurator-core 0.12.0.
        """
        for name in (generation, CURVE_NEIGHBOURS.get(generation, "default"), "default"):
            if found := self.curves.get(f"{name}/{number_format}"):
                return found
        return self.curves["default/bf16"]

    def value(self, quantity: str, setting: Setting) -> float:
        """A quantity in a setting: base times the exponent of the effects that apply.

        References
        ----------
        1. Gelman and Hill, "Data Analysis Using Regression and Multilevel/Hierarchical Models", 2006.
        """
        log = sum(self.effects.get(name, 0.0) * covariate for name, covariate in setting.keys(quantity))
        return BASES[quantity] * exp(log)

    def coefficients(self, setting: Setting) -> Coefficients:
        """All quantities in a setting.

        References
        ----------
        1. Catalog: ``training.json``.
        """
        curve = self.curve(setting.generation, setting.curve_format)
        head = self.curve(setting.generation, "bf16")
        plain = replace(setting, precision="16bit")
        values = {quantity: self.value(quantity, setting) for quantity in BASES}
        return Coefficients(
            **values,
            curve_max_share=curve.max_share,
            curve_half_m=curve.half_m,
            curve_half_n=curve.half_n,
            curve_half_k=curve.half_k,
            head_max_share=head.max_share * self.value("matmul_share", plain),
            fused_attention=float(setting.fused_attention),
        )

    def evidence_class(self, setting: Setting, accelerator_id: str) -> str:
        """How close the nearest calibration rows are.

        References
        ----------
        1. Residual quantiles by class in ``training.json``.
        """
        if f"{accelerator_id}:{setting.precision}" in self.seen:
            return "calibrated"
        near = (f"accelerator={accelerator_id}", f"generation={setting.generation}", f"vendor={setting.vendor}")
        return "transferred" if any(key in self.seen for key in near) else "datasheet"
