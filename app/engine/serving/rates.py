"""Effective rates of a chip with an engine for a set of plans, from the calibration."""

from dataclasses import replace

import numpy as np

from app.engine.hardware import Fabric
from app.engine.serving.calibration import ServingCalibration, Situation
from app.engine.serving.curves import dense_peak, wiring
from app.engine.serving.operators import Floats, Operators
from app.engine.serving.step import SMALLEST_SKINNY_TILE, SMALLEST_TILE, Rates

# no timed kernel of a data-centre part reached more of its dense peak (a 16-bit matmul on A100) or of its bandwidth
# (attention on GB200); kernels.csv
HIGHEST_SHARE = 0.94
# ranks past two on a PCIe tree share host links; kernels.csv, custom_allreduce on L40S and RTX PRO 6000
PCIE_SHARE_EXPONENT = 0.35


def _link(situation: Situation, fabric: Fabric | None, width: Floats) -> Floats:
    """Per-direction link rate that a group of the given width sees [byte/s]."""
    accelerator = situation.accelerator
    local = accelerator.scale_up_bytes_per_s_per_accelerator or accelerator.pcie_bytes_per_s
    if wiring(accelerator) == "pcie":
        rate = local * np.minimum(1.0, (2.0 / width) ** PCIE_SHARE_EXPONENT)
        reach = accelerator.accelerators_per_node
    else:
        rate = np.full_like(width, local)
        reach = accelerator.scale_up_domain
        if reach < accelerator.accelerators_per_node:
            rate = np.where(width > reach, accelerator.pcie_bytes_per_s, rate)
            reach = accelerator.accelerators_per_node
    outside = fabric.bytes_per_s_per_accelerator / fabric.oversubscription if fabric else None
    outside = outside or accelerator.scale_out_bytes_per_s_per_accelerator or accelerator.pcie_bytes_per_s
    return np.where(width > reach, np.minimum(rate, outside), rate)


def resolve_rates(
    calibration: ServingCalibration, situation: Situation, operators: Operators, fabric: Fabric | None
) -> Rates:
    """Effective rates for every plan of ``operators`` on the situation's chip.

    Parameters
    ----------
    calibration : ServingCalibration
    situation : Situation
    operators : Operators
    fabric : Fabric or None

    Returns
    -------
    Rates

    References
    ----------
    1. Calibration file. 2. Williams et al. 2009.
    """
    chip, formats = situation.accelerator, situation.precisions

    def value(quantity: str) -> float:
        return calibration.value(quantity, situation)

    wide_peak, _ = dense_peak(chip, "bf16")
    low_format = formats.outside_experts
    low_peak, _ = dense_peak(chip, low_format)
    low = calibration.matmul_curve(situation, low_format)
    wide = calibration.matmul_curve(situation, "bf16")
    moe = calibration.experts_curve(situation)
    moe_peak, _ = dense_peak(chip, formats.weights)
    attention = calibration.attention_curve(chip)
    reduce = calibration.reduce_curve(chip)
    quantised = operators.low_precision > 0.0
    raw = chip.memory_bandwidth_bytes_per_s
    gemm, stream, launch = value("matmul_peak"), value("matmul_bandwidth"), value("launch")
    one = np.ones_like(operators.tensor)
    ones = np.ones_like(operators.copies)
    moe_ones = np.ones_like(operators.moe_layers)
    group = operators.tensor * operators.data
    found = Rates(
        launch_s=launch * np.where(quantised, low.launch_s, wide.launch_s),
        flops_per_s=gemm * np.where(quantised, low_peak * low.peak_share, wide_peak * wide.peak_share),
        tile_waste=np.where(quantised, low.tile_waste, wide.tile_waste),
        tile=np.where(quantised | (chip.vendor == "AMD"), SMALLEST_SKINNY_TILE, SMALLEST_TILE),
        bandwidth=stream * raw * np.where(quantised, low.bandwidth_share, wide.bandwidth_share) * ones,
        moe_launch_s=value("experts_launch") * moe.launch_s * moe_ones,
        moe_flops_per_s=value("experts_peak")
        * moe_peak
        * moe.peak_share
        / (1.0 + moe.half_width / np.maximum(operators.moe_ffn_local, 1.0)),
        moe_bandwidth=value("experts_bandwidth") * raw * moe.bandwidth_share * moe_ones,
        moe_padding=moe.padding_tokens * moe_ones,
        moe_passes=moe.passes * moe_ones,
        attention_launch_s=launch * attention.launch_s * one,
        prefill_flops_per_s=value("prefill_attention") * wide_peak * attention.prefill_peak_share * one,
        half_length=attention.half_length_tokens * one,
        decode_flops_per_s=value("decode_attention") * wide_peak * attention.decode_peak_share * one,
        cache_bandwidth=value("decode_attention") * raw * attention.decode_bandwidth_share * one,
        reread=(value("reread") if situation.rereads else 0.0) * one,
        raw_bandwidth=raw * one,
        raw_flops_per_s=np.where(quantised, low_peak, wide_peak) * ones,
        raw_moe_flops_per_s=moe_peak * moe_ones,
        layer_s=value("layer_s") * one,
        eager_s=value("eager_s") * one,
        overlap=calibration.overlap(situation) * one,
        step_s=value("step_s") * one,
        sequence_s=value("sequence_s") * one,
        prefill_token_s=value("prefill_token_s") * one,
        reduce_s=value("reduce") * reduce.pair_s * np.maximum(group / 2.0, 1.0) ** reduce.width_exponent,
        link_bytes_per_s=value("link_share") * _link(situation, fabric, group),
    )
    return within_limits(found)


def within_limits(rates: Rates) -> Rates:
    """Rates held to what any timed kernel reached of the datasheet's, whatever effects multiply.

    Parameters
    ----------
    rates : Rates

    Returns
    -------
    Rates

    References
    ----------
    1. aiconfigurator-core 0.12.0 kernel tables (``kernels.csv``).
    """
    memory = HIGHEST_SHARE * rates.raw_bandwidth
    return replace(
        rates,
        bandwidth=np.minimum(rates.bandwidth, memory),
        moe_bandwidth=np.minimum(rates.moe_bandwidth, memory),
        cache_bandwidth=np.minimum(rates.cache_bandwidth, memory),
        flops_per_s=np.minimum(rates.flops_per_s, HIGHEST_SHARE * rates.raw_flops_per_s),
        moe_flops_per_s=np.minimum(rates.moe_flops_per_s, HIGHEST_SHARE * rates.raw_moe_flops_per_s),
    )
