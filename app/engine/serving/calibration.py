"""Parameters of the serving engine as fitted: curves, effects and engine conventions, and their resolution for a part.

Every effective rate is a datasheet rate times a curve of the kernel tables times ``exp`` of a sum of small effects
(vendor, family, format, stack, release year), each shrunk towards zero in the fit, so that a part or stack without
measurements inherits its neighbours'.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.hardware import Accelerator
from app.engine.serving.curves import (
    AttentionCurve,
    ExpertsCurve,
    MatmulCurve,
    ReduceCurve,
    dense_peak,
    family,
    look_up,
    wiring,
)
from app.engine.serving.operators import Precisions

# release years enter relative to the middle of the calibration rows
YEAR_ZERO = 2025.0
# and never beyond the measured span
YEAR_SPAN = (-2.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConventions:
    """How a serving engine fills memory and batches.

    Parameters
    ----------
    memory_fraction : float [1]
        Of the accelerator's memory that weights, workspace and cache may fill.
    reserve_bytes : float [byte]
        CUDA context, graphs, communicators: not available to the cache.
    admitted_output_share : float [1]
        Share of a request's output it must have room for when admitted (1 = no eviction ever).
    max_sequences : int
        Default cap on running sequences.
    chunk_tokens : int [token]
        Prompt tokens of one iteration.
    frees_windows : bool
        Whether cache outside a sliding window is given back (otherwise such layers hold the whole sequence).
    mixes_prefill_since : float [year]
        Releases from then on run prompts beside decoding sequences; earlier ones stop decoding for them.
    overlaps_since : float [year]
        Releases from then on prepare an iteration while the accelerator runs the one before, as their default.

    References
    ----------
    1. vLLM, SGLang and TensorRT-LLM documentation (``gpu_memory_utilization``, ``mem_fraction_static``,
       ``free_gpu_memory_fraction``; ``max_num_seqs``; ``GUARANTEED_NO_EVICT``; ``async_scheduling``, default of vLLM
       0.14; "overlap scheduler", defaults of SGLang 0.4 and TensorRT-LLM 0.20).
    """

    memory_fraction: float
    reserve_bytes: float
    admitted_output_share: float
    max_sequences: int
    chunk_tokens: int
    frees_windows: bool
    mixes_prefill_since: float
    overlaps_since: float


# experts from which a layer counts as fine-grained; DeepSeek-AI, "DeepSeekMoE", 2024 (64 routed experts)
FINE_EXPERTS = 64
# vLLM on ROCm had no tuned 16-bit skinny matmuls before 2025; ROCm 6.3 release notes (AITER, hipBLASLt tuning)
EARLY = 2025.0
# SGLang 0.5 runs integer experts on Marlin's kernel (kernels.csv, `marlin_moe`); 0.4 had a portable one
MARLIN_EXPERTS = 2025.6
# engines rewrote their scheduler loops about then: vLLM made its V1 engine the default in 0.8.0, March 2025
MODERN = 2025.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What an effect may depend on: the chip, the formats, the stack and its release year."""

    accelerator: Accelerator
    precisions: Precisions
    stack: str
    released_year: float
    experts: int

    @property
    def grain(self) -> str:
        """``none``, ``coarse`` (Mixtral) or ``fine`` (DeepSeek and after, whose FP8 is block-scaled as published)."""
        return "none" if not self.experts else "fine" if self.experts >= FINE_EXPERTS else "coarse"

    @property
    def rereads(self) -> bool:
        """Whether query heads of a group read the cache each for itself.

        Portable paged attention of vLLM on ROCm did, and masked attention of TensorRT-LLM outside the shapes its
        grouped (XQA) kernels took.
        """
        portable = self.stack == "vllm" and self.accelerator.vendor == "AMD"
        return self.released_year < EARLY and (portable or self.stack == "tensorrt-llm")

    def effect_keys(self) -> tuple[str, ...]:
        """Names of the effects that apply, most general first."""
        vendor, weights = self.accelerator.vendor, self.precisions.weights
        return (
            "",
            f"vendor={vendor}",
            f"family={family(self.accelerator)}",
            f"format={weights}",
            f"stack={self.stack}",
            f"stack={self.stack},vendor={vendor}",
            f"family={family(self.accelerator)},stack={self.stack}",
            f"early={self.released_year < EARLY},vendor={vendor},format={weights}",
            f"stack={self.stack},modern={self.released_year >= MODERN}",
            f"link={self.accelerator.scale_up_topology}",
            f"experts={self.grain}",
            f"experts={self.grain},format={weights}",
            f"experts={self.grain},stack={self.stack}",
            f"format={weights},stack={self.stack},marlin={self.released_year >= MARLIN_EXPERTS}",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServingCalibration:
    """The shipped parameter file of the serving engine.

    Parameters
    ----------
    curves : mapping
        ``matmul``, ``experts``, ``attention`` by ``family|format``.
    base : mapping of str to float
        Value of every quantity before its effects.
    effects : mapping of str to mapping of str to float
        Log effects by quantity and key.
    engines : mapping of str to EngineConventions
    residuals : mapping
        Quantile ratios by metric and evidence class.
    calibrated : frozenset of str
        ``accelerator|format`` pairs with measured rows.
    default_stack : str
    default_year : float [year]

    References
    ----------
    1. ``benchmarks/calibrate``: reproduces the file from the measurements.
    """

    curves: Mapping[str, Mapping[str, Mapping[str, float]]]
    base: Mapping[str, float]
    effects: Mapping[str, Mapping[str, float]]
    engines: Mapping[str, EngineConventions]
    residuals: Mapping[str, Mapping[str, tuple[float, float]]]
    calibrated: frozenset[str]
    default_stack: str
    default_year: float

    @staticmethod
    def from_mapping(data: Mapping[str, Any]) -> "ServingCalibration":
        """Read the parameter file's mapping.

        References
        ----------
        1. ``app/catalog/data/calibration/serving.json``.
        """
        return ServingCalibration(
            curves=data["curves"],
            base=data["base"],
            effects=data["effects"],
            engines={name: EngineConventions(**fields) for name, fields in data["engines"].items()},
            residuals={
                metric: {name: (float(low), float(high)) for name, (low, high) in classes.items()}
                for metric, classes in data["residuals"].items()
            },
            calibrated=frozenset(data["calibrated"]),
            default_stack=data["default_stack"],
            default_year=float(data["default_year"]),
        )

    def value(self, quantity: str, situation: Situation) -> float:
        """Value of a quantity: its base times ``exp`` of the effects that apply.

        References
        ----------
        1. Gelman and Hill, "Data Analysis Using Regression and Multilevel/Hierarchical Models", 2007.
        """
        effects = self.effects.get(quantity, {})
        total = sum(effects.get(key, 0.0) for key in situation.effect_keys())
        if "year" in effects:
            total += effects["year"] * years_from_zero(situation.released_year)
        return self.base[quantity] * math.exp(total)

    def burst(self, fixed_lengths: bool) -> float:
        """How far the requests of a closed loop arrive together [1]: 0 = spread, 1 = all at once.

        Notes
        -----
        Requests of one length end together and are replaced together; random lengths spread them.
        """
        effects = self.effects.get("burst", {})
        total = effects.get("", 0.0) + effects.get(f"fixed={fixed_lengths}", 0.0)
        return min(self.base["burst"] * math.exp(total), 1.0)

    def overlap(self, situation: Situation) -> float:
        """Share of the scheduling that may run beside the accelerator [1]; 0 for releases that wait for it."""
        since = self.engine(situation.stack).overlaps_since
        return self.overlap_share(situation) if situation.released_year >= since else 0.0

    def overlap_share(self, situation: Situation) -> float:
        """The share where scheduling does run beside the accelerator, whatever the default of the release [1]."""
        return min(self.value("overlap", situation), 1.0)

    def engine(self, stack: str) -> EngineConventions:
        """Conventions of a stack; an unknown one behaves like the default stack."""
        return self.engines.get(stack, self.engines[self.default_stack])

    def evidence_class(self, accelerator: Accelerator, weights: str) -> str:
        """``calibrated`` (part and format measured), ``transferred`` (the vendor's other parts), or ``datasheet``."""
        if f"{accelerator.id}|{weights}" in self.calibrated:
            return "calibrated"
        known = any(key.startswith(f"vendor:{accelerator.vendor}|") for key in self.calibrated)
        return "transferred" if known else "datasheet"

    def matmul_curve(self, situation: Situation, number_format: str) -> MatmulCurve:
        """Curve of matmuls outside the experts."""
        chip = situation.accelerator
        computed = computed_format(chip, number_format)
        return MatmulCurve(**look_up(self.curves["matmul"], chip, computed, situation.stack)[0])

    def experts_curve(self, situation: Situation) -> ExpertsCurve:
        """Curve of grouped expert matmuls; fine-grained FP8 experts are block-scaled as published."""
        chip, weights = situation.accelerator, situation.precisions.weights
        computed = computed_format(chip, weights)
        if computed == weights == "fp8" and situation.grain == "fine":
            computed = "fp8_block"
        return ExpertsCurve(**look_up(self.curves["experts"], chip, computed)[0])

    def reduce_curve(self, accelerator: Accelerator) -> ReduceCurve:
        """Curve of small all-reduces."""
        return ReduceCurve(**look_up(self.curves["reduce"], accelerator, wiring(accelerator))[0])

    def attention_curve(self, accelerator: Accelerator) -> AttentionCurve:
        """Curve of the attention kernels."""
        return AttentionCurve(**look_up(self.curves["attention"], accelerator, "bf16")[0])


def years_from_zero(released_year: float) -> float:
    """Release year relative to :data:`YEAR_ZERO`, held inside the measured span [year].

    Parameters
    ----------
    released_year : float [year]

    Returns
    -------
    float

    References
    ----------
    1. ``measurements/README.md``: software drifts within the span of the rows only.
    """
    return min(max(released_year - YEAR_ZERO, YEAR_SPAN[0]), YEAR_SPAN[1])


def computed_format(accelerator: Accelerator, number_format: str) -> str:
    """Format name of the curve tables a format computes in on this part.

    Parameters
    ----------
    accelerator : Accelerator
    number_format : str

    Returns
    -------
    str

    Notes
    -----
    Weight-only formats (``int4``) have curves of their own, since the conversion is part of the kernel.

    References
    ----------
    1. ``kernels.csv``, ``dtype``.
    """
    if number_format in ("int4", "mxfp4"):
        return number_format
    _, computed = dense_peak(accelerator, number_format)
    return {"fp4": "nvfp4", "fp16": "bf16"}.get(computed, computed)
