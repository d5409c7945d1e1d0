"""Calibrated parameters of the training engine, and how they are found for a given chip, format and software.

Every quantity has a base value with a physical meaning and, on a log scale, effects that add up from the general to
the particular: global, vendor, generation, precision, stack. A part without rows of its own takes what its vendor
and the whole share, and says so in its evidence class.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import exp

import numpy as np
from numpy.typing import NDArray

from app.engine.kernels import MatmulCurve
from app.engine.training.setting import Setting

Real = float | NDArray[np.float64]

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
        Time the host needs to launch one layer's forward and backward; what a layer with experts waits beside it.
    host_expert : float or array
        What each expert an accelerator holds adds to that wait, relative to it (launches of its matmuls and casts).
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
    node_dispatch : float or array
        1 where a token crosses the network once for each node that has experts of it, not once for each expert.

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
    host_expert: Real
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
    node_dispatch: Real


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
    "host_moe_s": 2.0e-3,
    "host_expert": 0.05,
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

# no kernel runs faster inside a step than alone
HIGHEST_MATMUL_SHARE = 1.0


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
    # what settings came to, so that a catalog of machines asks for each once
    known: dict[Setting, Coefficients] = field(default_factory=dict, compare=False, repr=False)

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
        found = BASES[quantity] * exp(log)
        return min(found, HIGHEST_MATMUL_SHARE) if quantity == "matmul_share" else found

    def coefficients(self, setting: Setting) -> Coefficients:
        """All quantities in a setting.

        References
        ----------
        1. Catalog: ``training.json``.
        """
        if found := self.known.get(setting):
            return found
        curve = self.curve(setting.generation, setting.curve_format)
        head = self.curve(setting.generation, "bf16")
        plain = replace(setting, precision="16bit")
        values = {quantity: self.value(quantity, setting) for quantity in BASES}
        found = Coefficients(
            **values,
            curve_max_share=curve.max_share,
            curve_half_m=curve.half_m,
            curve_half_n=curve.half_n,
            curve_half_k=curve.half_k,
            head_max_share=head.max_share * self.value("matmul_share", plain),
            fused_attention=float(setting.fused_attention),
            node_dispatch=float(setting.node_dispatch),
        )
        self.known[setting] = found
        return found

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
