"""Regularised robust fit of the effects: Gauss-Newton with damping on log tokens per second."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.training.packed import Packed
from benchmarks.training.rows import Row

Array = NDArray[np.float64]

# how far, on a log scale, an effect of each level may stray from what the level above says (one standard deviation)
SPREADS = {
    "all": 0.35,
    "vendor": 0.15,
    "generation": 0.12,
    "precision": 0.15,
    "generation_precision": 0.08,
    "year": 0.04,
    "family": 0.2,
    "method": 0.15,
    "routing": 0.5,
    "sync_free": 0.8,
    "early_experts": 1.0,
    "moe_year": 0.2,
    "compiled": 0.3,
    "power": 0.2,
    "late_kernels": 0.4,
    "own_stack": 0.3,
}
# quantities whose base is a guess rather than a physical value may move further
LOOSE = {
    "host_layer_s": 3.0,
    "host_expert": 2.0,
    "tensor_exposed": 1.5,
    "expert_exposed": 1.5,
    "pipeline_exposed": 2.0,
    "data_exposed": 2.0,
    "shard_exposed": 2.0,
    "context_exposed": 2.0,
    "step_fixed_s": 2.0,
    "scale_loss": 2.0,
    "permute": 1.5,
    "scan": 3.0,
    "quantize": 1.5,
}
# whether a family overlaps tensor-parallel traffic at all is a feature it has or has not
OWN_SPREADS = {
    "tensor_exposed/family": 0.6,
    "host_moe_s/moe_year": 0.3,
    "host_moe_s/sync_free": 1.6,
    "expert_share/family": 0.2,
    "expert_share/all": 0.2,
    "host_moe_s/early_experts": 2.0,
    "slowdown/family": 0.2,
    "attention_share/year": 0.1,
    "elementwise/year": 0.1,
}
# residuals beyond this count linearly, not squared (log scale: 8 %)
ROBUST_SCALE = 0.08
# weight of a row: its source's rows to this power (1 would let a source of one row outweigh two hundred)
SOURCE_POWER = 0.5
# residual one row is expected to keep: rows of one source share more than exact repeats show (best over worst 1.07),
# so they count less than their number; chosen by cross-validation among 0.06, 0.12 and 0.25
NOISE = 0.12
ITERATIONS, TOLERANCE, LARGEST_STEP = 60, 1.0e-6, 0.5


def spreads(names: Sequence[str]) -> Array:
    """Prior standard deviation of each effect."""
    out = []
    for name in names:
        quantity, level = name.split("/")
        spread = SPREADS[level.split("=")[0]] * LOOSE.get(quantity, 1.0)
        out.append(OWN_SPREADS.get(f"{quantity}/{level.split('=')[0]}", spread))
    return np.array(out)


def source_weights(rows: Sequence[Row]) -> Array:
    """Weight of each row from the size of its source and of its chip-and-model pair in it; mean one."""
    sources = Counter(r.title for r in rows)
    pairs = Counter((r.title, r.gpu, r.family) for r in rows)
    weight = np.array(
        [sources[r.title] ** -SOURCE_POWER * pairs[(r.title, r.gpu, r.family)] ** -SOURCE_POWER for r in rows]
    )
    return np.asarray(weight / weight.mean())


def _robust(residual: Array) -> Array:
    scaled = residual / ROBUST_SCALE
    return np.sign(residual) * ROBUST_SCALE * np.sqrt(2.0 * (np.sqrt(1.0 + scaled * scaled) - 1.0))


def _robust_slope(residual: Array) -> Array:
    scaled = residual / ROBUST_SCALE
    root = np.sqrt(1.0 + scaled * scaled)
    # derivative of s sqrt(2 (sqrt(1 + x^2) - 1)); one at zero
    return np.asarray(np.sqrt((root + 1.0) / 2.0) / root)


def fit(packed: Packed, log_measured: Array, weights: Array, start: Array, noise: float = NOISE) -> Array:
    """Effects that fit the rows, with their priors.

    ``noise`` is the residual one row is expected to keep; it sets how much rows count against priors.
    """
    prior = spreads(packed.names)
    root = np.sqrt(weights) / noise

    def residuals(effects: Array) -> Array:
        return np.concatenate([root * _robust(packed.log_rates(effects) - log_measured), effects / prior])

    def jacobian(effects: Array) -> Array:
        slope = root * _robust_slope(packed.log_rates(effects) - log_measured)
        return np.concatenate([slope[:, None] * packed.sensitivity(effects), np.diag(1.0 / prior)])

    return _minimise(residuals, jacobian, start)


def _minimise(residuals: Callable[[Array], Array], jacobian_of: Callable[[Array], Array], start: Array) -> Array:
    point, damping = start.copy(), 0.1
    value = residuals(point)
    cost = float(value @ value)
    for _ in range(ITERATIONS):
        jacobian = jacobian_of(point)
        normal, gradient = jacobian.T @ jacobian, jacobian.T @ value
        found = None
        for _ in range(8):
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), -gradient)
            trial = point + np.clip(step, -LARGEST_STEP, LARGEST_STEP)
            trial_value = residuals(trial)
            trial_cost = float(trial_value @ trial_value)
            if trial_cost < cost:
                found = trial
                break
            damping *= 4.0
        if found is None:
            break
        gain = (cost - trial_cost) / cost
        point, value, cost = found, trial_value, trial_cost
        damping = max(damping / 8.0, 1.0e-6)
        if gain < TOLERANCE:
            break
    return point
