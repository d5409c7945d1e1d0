"""Efficiency curves of kernels by architecture and number format, and where a part without its own borrows from."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.engine.hardware import Accelerator
from app.engine.precision import FORMATS


@dataclass(frozen=True, slots=True, kw_only=True)
class MatmulCurve:
    """Time of a matmul: ``launch + (flops^p + bytes^p)^(1/p)``, each over its share of the datasheet rate.

    Parameters
    ----------
    launch_s : float [s]
        Launch, and quantisation of the activations where the format needs it.
    peak_share : float [1]
        Of the dense peak, for large matmuls.
    bandwidth_share : float [1]
        Of the memory bandwidth, for weights read once.
    tile_waste : float [1]
        Growth of the compute time as the tiles get too few to fill the chip.

    References
    ----------
    1. Williams et al., "Roofline", 2009. 2. aiconfigurator-core 0.12.0 kernel tables (Apache-2.0), ``kernels.csv``.
    """

    launch_s: float
    peak_share: float
    bandwidth_share: float
    tile_waste: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsCurve:
    """Time of grouped expert matmuls: ``launch + (flops^2 + bytes^2)^(1/2)``.

    Parameters
    ----------
    launch_s : float [s]
        Routing, permutation and all kernels of one layer.
    peak_share, bandwidth_share : float [1]
        For wide experts with many tokens.
    padding_tokens : float [token]
        Work of an expert that is touched at all, in tokens.
    half_width : float
        Expert width (of one rank) that halves the peak share.
    passes : float
        Times the routed activations go through memory.

    References
    ----------
    1. Shazeer et al. 2017. 2. aiconfigurator-core 0.12.0 kernel tables (Apache-2.0), ``kernels.csv``, ``moe``.
    """

    launch_s: float
    peak_share: float
    bandwidth_share: float
    padding_tokens: float
    half_width: float
    passes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionCurve:
    """Prefill: ``launch + flops / (share x 16-bit peak) x (1 + half / length)``; decode: launch + bytes over bandwidth.

    References
    ----------
    1. Dao, "FlashAttention-2", 2023. 2. aiconfigurator-core 0.12.0 kernel tables (Apache-2.0), ``kernels.csv``.
    """

    launch_s: float
    prefill_peak_share: float
    half_length_tokens: float
    decode_bandwidth_share: float
    decode_peak_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceCurve:
    """Latency of a small all-reduce: that of two ranks, grown by a power of the width.

    References
    ----------
    1. Thakur et al. 2005. 2. aiconfigurator-core 0.12.0 kernel tables (Apache-2.0), ``custom_allreduce``.
    """

    pair_s: float
    width_exponent: float


def wiring(accelerator: Accelerator) -> str:
    """``pcie`` where ranks talk through the host's bus, else ``switched``.

    Parameters
    ----------
    accelerator : Accelerator

    Returns
    -------
    str

    References
    ----------
    1. Vendor datasheets, catalog rows.
    """
    alone = accelerator.scale_up_topology in ("pcie", "unknown") or accelerator.scale_up_domain <= 1
    return "pcie" if alone else "switched"


def family(accelerator: Accelerator) -> str:
    """Family whose kernels an accelerator shares: its architecture, data-centre and graphics parts kept apart.

    Parameters
    ----------
    accelerator : Accelerator

    Returns
    -------
    str

    References
    ----------
    1. Vendor architecture names, catalog rows.
    """
    graphics = accelerator.scale_up_topology == "pcie" and accelerator.architecture.startswith("Blackwell")
    return f"{accelerator.architecture} graphics" if graphics else accelerator.architecture


def dense_peak(accelerator: Accelerator, number_format: str) -> tuple[float, str]:
    """Dense peak of the format, or of the widest one the chip falls back to [FLOP/s], and the format it computes in.

    Parameters
    ----------
    accelerator : Accelerator
    number_format : str

    Returns
    -------
    tuple[float, str]

    Notes
    -----
    Weight-only formats, and formats without a unit on the part, are widened before the matmul (FP4 to FP8 to 16 bit).

    References
    ----------
    1. vLLM documentation, "Quantization: supported hardware" (Marlin weight-only fallback).
    """
    order = {"fp4": ("fp4", "fp8", "bf16", "fp16"), "fp8": ("fp8", "bf16", "fp16"), "int8": ("int8", "bf16", "fp16")}
    wanted = FORMATS[number_format].peak
    for name in order.get(wanted, (wanted, "bf16", "fp16", "fp32")):
        peak = getattr(accelerator.dense_peaks, name)
        if peak is not None:
            return float(peak), name
    raise ValueError(f"{accelerator.id} has no dense peak for {number_format}")


def look_up(
    table: Mapping[str, Mapping[str, float]], accelerator: Accelerator, computed: str, stack: str = ""
) -> tuple[Mapping[str, float], str]:
    """A curve of the family and stack, else of the family, else of the vendor, else of anyone, and which it was.

    Parameters
    ----------
    table : Mapping[str, Mapping[str, float]]
    accelerator : Accelerator
    computed : str
    stack : str

    Returns
    -------
    tuple[Mapping[str, float], str]

    References
    ----------
    1. Our hierarchy: own family, vendor, global (design: efficiency is data).
    """
    own = f"{family(accelerator)}|{computed}"
    for key in (f"{own}|{stack}", own, f"{accelerator.vendor}|{computed}", f"|{computed}"):
        if key in table:
            return table[key], key
    fallback = computed.removesuffix("_block")
    return look_up(table, accelerator, fallback if fallback != computed else "bf16", stack)
