"""Efficiency curves from the measured kernel times: one per architecture family and number format."""

import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from app.engine.hardware import Accelerator
from app.engine.kernels import roofline_time
from app.engine.serving.curves import dense_peak, family, wiring
from app.engine.serving.operators import ACTIVATION_BYTES, Floats
from app.engine.serving.step import CHIP_TILES, SMALLEST_SKINNY_TILE, SMALLEST_TILE, TILE

KERNELS = Path(__file__).parent.parent / "data" / "kernels.csv"

# formats of the kernel tables by the format of the curve they belong to; block-scaled FP8 counts with per-tensor FP8,
# the tables' MXFP4 variants differ only in the activations' format
DENSE_FORMATS = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8",
    "nvfp4": "nvfp4",
    "int8_sq": "int8",
    "int4_wo": "int4",
}
EXPERT_FORMATS = {
    "bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4", "int4_wo": "int4",
}  # fmt: skip
WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625, "int8": 1.0, "int4": 0.516, "mxfp4": 0.531, "fp8_block": 1.0}
# frameworks whose matmuls get curves of their own; TensorRT-LLM's tables time the quantisation of the activations with
# the matmul (12 us a kernel in FP8), which its engine fuses with the norm before, so it takes the family's
STACKS = {"vllm": "vllm", "sglang": "sglang"}
# the source's vLLM block-FP8 matmuls are bound by the host (kernels.md, "use with care")
HOST_BOUND = ("vllm", "fp8_block")
ROBUST_SCALE = 0.1
# vLLM 0.19 runs integer experts at a quarter of the speed of the same kernel in SGLang, where both were timed (H200)
SLOW_EXPERTS = "balanced:marlin_int4_moe"
# a curve needs this many kernels
FEWEST_ROWS = 20

Row = Mapping[str, str]
Curves = dict[str, dict[str, float]]


def read_kernels() -> list[Row]:
    """All rows of ``kernels.csv``."""
    with KERNELS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _fit(predict: Callable[[Floats], Floats], seconds: Floats, start: list[float], low: list[float], high: list[float]):  # type: ignore[no-untyped-def]
    def error(p: Floats) -> Floats:
        return np.log(predict(p) / seconds)

    return least_squares(error, start, bounds=(low, high), loss="soft_l1", f_scale=ROBUST_SCALE).x


def matmul_curves(rows: list[Row], chips: Mapping[str, Accelerator]) -> Curves:
    """Curves of matmuls outside the experts."""
    groups: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for r in rows:
        chip = chips.get(r["system"])
        kind = DENSE_FORMATS.get(r["dtype"])
        if r["op"] != "gemm" or chip is None or kind is None or (r["framework"], r["dtype"]) == HOST_BOUND:
            continue
        peak, computed = dense_peak(chip, kind)
        if kind in ("fp8", "int8", "nvfp4") and computed == "bf16":
            continue
        m, n, k = float(r["m"]), float(r["n"]), float(r["k"])
        moved = n * k * WEIGHT_BYTES[kind] + m * ACTIVATION_BYTES * (n + k)
        tile = max(m, SMALLEST_TILE if kind == "bf16" else SMALLEST_SKINNY_TILE)
        row = (
            tile,
            n,
            2.0 * tile * n * k / peak,
            moved / chip.memory_bandwidth_bytes_per_s,
            float(r["latency_us"]) * 1e-6,
        )
        own, stack = f"{family(chip)}|{kind}", STACKS.get(r["framework"])
        for key in (own, f"{chip.vendor}|{kind}", f"|{kind}", *((f"{own}|{stack}",) if stack else ())):
            groups[key].append(row)
    return {key: _matmul_curve(np.array(data)) for key, data in sorted(groups.items()) if len(data) >= FEWEST_ROWS}


def _matmul_curve(data: Floats) -> dict[str, float]:
    m, n, flops_s, bytes_s, seconds = data.T
    tiles = CHIP_TILES * TILE * TILE / (m * n)

    def predict(p: Floats) -> Floats:
        return np.asarray(roofline_time(flops_s / p[1] * (1.0 + p[3] * tiles), bytes_s / p[2], np.exp(p[0])))

    p = _fit(predict, seconds, [np.log(5e-6), 0.6, 0.8, 0.1], [-16.0, 0.05, 0.1, 0.0], [-8.0, 1.0, 1.0, 2.0])
    return {
        "launch_s": float(np.exp(p[0])), "peak_share": float(p[1]), "bandwidth_share": float(p[2]),
        "tile_waste": float(p[3]),
    }  # fmt: skip


def expert_curves(rows: list[Row], chips: Mapping[str, Accelerator]) -> Curves:
    """Curves of grouped expert matmuls, of the best kernel per shape."""
    best: dict[tuple[str, ...], tuple[float, ...]] = {}
    owner: dict[tuple[str, ...], tuple[Accelerator, str]] = {}
    for r in rows:
        chip = chips.get(r["system"])
        kind = EXPERT_FORMATS.get(r["dtype"])
        if r["op"] != "moe" or chip is None or kind is None or not r["variant"].startswith(("balanced", "pl1.01")):
            continue
        peak, computed = dense_peak(chip, kind.removesuffix("_block"))
        if (kind in ("fp8", "fp8_block", "nvfp4") and computed == "bf16") or r["variant"] == SLOW_EXPERTS:
            continue
        t, h, topk, e = (float(r[x]) for x in ("tokens", "hidden", "topk", "experts"))
        inter, ep = float(r["inter"]) / float(r["tp"]), float(r["ep"])
        weights = 3.0 * h * inter
        touched = e / ep * (1.0 - (1.0 - topk / e) ** t)
        routed = t * topk / ep
        rate = chip.memory_bandwidth_bytes_per_s
        row = (
            2.0 * weights * routed / peak, 2.0 * weights * touched / peak,
            touched * weights * WEIGHT_BYTES[kind] / rate, routed * ACTIVATION_BYTES * (h + inter) / rate, inter,
            float(r["latency_us"]) * 1e-6,
        )  # fmt: skip
        names = ("system", "tokens", "hidden", "inter", "topk", "tp", "ep")
        key = (kind if kind == "mxfp4" else r["dtype"], *(r[x] for x in names))
        if key not in best or row[-1] < best[key][-1]:
            best[key], owner[key] = row, (chip, kind)
    groups: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for key in sorted(best):
        chip, kind = owner[key]
        for name in (f"{family(chip)}|{kind}", f"{chip.vendor}|{kind}", f"|{kind}"):
            groups[name].append(best[key])
    return {key: _expert_curve(np.array(data)) for key, data in sorted(groups.items()) if len(data) >= FEWEST_ROWS}


def _expert_curve(data: Floats) -> dict[str, float]:
    routed_s, touched_s, weights_s, pass_s, inter, seconds = data.T

    def predict(p: Floats) -> Floats:
        compute = (routed_s + p[3] * touched_s) / p[1] * (1.0 + p[4] / inter)
        move = (weights_s + p[5] * pass_s) / p[2]
        return np.asarray(np.exp(p[0]) + np.sqrt(compute * compute + move * move))

    start = [np.log(2e-5), 0.5, 0.7, 4.0, 300.0, 3.0]
    p = _fit(predict, seconds, start, [-14.0, 0.05, 0.1, 0.0, 0.0, 1.0], [-8.0, 1.0, 1.0, 15.0, 1000.0, 8.0])
    return {
        "launch_s": float(np.exp(p[0])), "peak_share": float(p[1]), "bandwidth_share": float(p[2]),
        "padding_tokens": float(p[3]), "half_width": float(p[4]), "passes": float(p[5]),
    }  # fmt: skip


def attention_curves(rows: list[Row], chips: Mapping[str, Accelerator]) -> Curves:
    """Curves of prefill and decode attention (softmax attention without window, and MLA for the decode peak)."""
    prefill: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    decode: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for r in rows:
        chip = chips.get(r["system"])
        if chip is None or r["op"] not in ("context_attention", "generation_attention") or r["window"] not in ("", "0"):
            continue
        names = (f"{family(chip)}|bf16", f"{chip.vendor}|bf16", "|bf16")
        b, s, heads, kv, dim = (float(r[x]) for x in ("batch", "seq", "heads", "kv_heads", "head_dim"))
        seconds = float(r["latency_us"]) * 1e-6
        if r["op"] == "context_attention" and r["dtype"] == "bf16":
            peak, _ = dense_peak(chip, "bf16")
            for name in names:
                prefill[name].append((2.0 * b * s * s * heads * dim / peak, s, seconds))
        elif r["op"] == "generation_attention":
            width = 1.0 if r["kv_dtype"] == "fp8" else 2.0
            moved = 2.0 * b * s * kv * dim * width
            for name in names:
                decode[name].append((moved / chip.memory_bandwidth_bytes_per_s, 0.0, seconds))
    out: Curves = {}
    for name in sorted(set(prefill) & set(decode)):
        out[name] = _attention_curve(np.array(prefill[name]), np.array(decode[name]))
    return out


# MLA decode is bound by its arithmetic at 128 heads; kernels.md, "MLA", decode 128 heads: the share of the 16-bit peak
MLA_PEAK_SHARE = 0.45


def _attention_curve(prefill: Floats, decode: Floats) -> dict[str, float]:
    flops_s, length, seconds = prefill.T

    def first(p: Floats) -> Floats:
        return np.asarray(np.exp(p[0]) + flops_s / p[1] * (1.0 + p[2] / length))

    a = _fit(first, seconds, [np.log(1e-5), 0.5, 800.0], [-14.0, 0.05, 0.0], [-8.0, 1.0, 5000.0])
    bytes_s, _, seconds_d = decode.T

    def later(p: Floats) -> Floats:
        return np.asarray(np.exp(p[0]) + bytes_s / p[1])

    d = _fit(later, seconds_d, [np.log(1e-5), 0.8], [-14.0, 0.1], [-8.0, 1.0])
    return {
        "launch_s": float(np.exp(d[0])), "prefill_peak_share": float(a[1]), "half_length_tokens": float(a[2]),
        "decode_bandwidth_share": float(d[1]), "decode_peak_share": MLA_PEAK_SHARE,
    }  # fmt: skip


# an all-reduce of this many bytes or fewer is latency only
SMALL_REDUCE_BYTES = 65536.0
# no engine's own all-reduce spans more than a node; wider ones cross trays or racks
WIDEST_REDUCE = 8.0


def reduce_curves(rows: list[Row], chips: Mapping[str, Accelerator]) -> Curves:
    """Latency of a small all-reduce inside a captured graph, by width."""
    groups: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for r in rows:
        chip = chips.get(r["system"])
        if chip is None or r["op"] != "custom_allreduce" or "graph" not in r["variant"]:
            continue
        width = float(r["devices"])
        if float(r["bytes"]) > SMALL_REDUCE_BYTES or width > WIDEST_REDUCE:
            continue
        kind = wiring(chip)
        for name in (f"{family(chip)}|{kind}", f"{chip.vendor}|{kind}", f"|{kind}"):
            groups[name].append((width, float(r["latency_us"]) * 1e-6))
    return {key: _reduce_curve(np.array(data)) for key, data in sorted(groups.items()) if len(data) >= FEWEST_ROWS}


def _reduce_curve(data: Floats) -> dict[str, float]:
    width, seconds = data.T

    def predict(p: Floats) -> Floats:
        return np.asarray(np.exp(p[0]) * (width / 2.0) ** p[1])

    p = _fit(predict, seconds, [np.log(5e-6), 0.2], [-14.0, 0.0], [-8.0, 2.0])
    return {"pair_s": float(np.exp(p[0])), "width_exponent": float(p[1])}


def curves(chips: Mapping[str, Accelerator]) -> dict[str, Curves]:
    """All curves of the calibration file."""
    rows = read_kernels()
    return {
        "matmul": matmul_curves(rows, chips),
        "experts": expert_curves(rows, chips),
        "attention": attention_curves(rows, chips),
        "reduce": reduce_curves(rows, chips),
    }
