"""Fit of the effects on the measured rows: robust, shrunk, weighted by source, the same bytes every time."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

import numpy as np

from app.engine.serving.calibration import ServingCalibration, Situation, years_from_zero
from app.engine.serving.operators import Floats
from app.engine.serving.plans import routed_experts
from app.engine.serving.rates import within_limits
from benchmarks.serving.batch import Batch, Predicted, assemble, predict
from benchmarks.serving.cases import Case

# Rates fields a quantity multiplies
FIELDS: Mapping[str, tuple[str, ...]] = {
    "matmul_peak": ("flops_per_s",),
    "matmul_bandwidth": ("bandwidth",),
    "launch": ("launch_s", "attention_launch_s"),
    "experts_launch": ("moe_launch_s",),
    "experts_peak": ("moe_flops_per_s",),
    "experts_bandwidth": ("moe_bandwidth",),
    "prefill_attention": ("prefill_flops_per_s",),
    "decode_attention": ("cache_bandwidth", "decode_flops_per_s"),
    "layer_s": ("layer_s",),
    "step_s": ("step_s",),
    "eager_s": ("eager_s",),
    "reread": ("reread",),
    "sequence_s": ("sequence_s",),
    "prefill_token_s": ("prefill_token_s",),
    "reduce": ("reduce_s",),
    "link_share": ("link_bytes_per_s",),
    "overlap": ("overlap",),
    "frontend_s": (),
    "burst": (),
}

# weight of a residual by metric, chosen by cross-validation over pairs: first-token times are noisier and counted last,
# a time per token is the cleanest view of an iteration
METRIC_WEIGHT = {"rate": 1.0, "tpot": 1.5, "ttft": 0.8}
# scale of the Cauchy loss: larger errors lose weight
ROBUST_SCALE = 0.12
# step of the forward differences, and the largest change of an effect in one step
DIFFERENCE = 1e-3
LARGEST_STEP = 0.7
STEPS_PER_ROUND = 3
ROUNDS = 20
# first-token times beyond this are queues, not prefill [ms]; design: scoring rules
UNSATURATED_TTFT_MS = 2000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One effect: quantity, key and the standard deviation it is shrunk with."""

    quantity: str
    key: str
    spread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Measured figure of a case: metric, log value, position in its batch."""

    metric: str
    regime: str
    row: int
    log_measured: float
    weight: float
    case: Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Everything a fit needs, prepared once."""

    terms: tuple[Term, ...]
    batches: Mapping[str, Batch]
    designs: Mapping[str, Mapping[str, Floats]]
    targets: tuple[Target, ...]
    index: Mapping[tuple[str, str], tuple[Floats, Floats]]


def effect_keys(case: Case) -> tuple[str, ...]:
    """Keys of the effects that apply to a case."""
    situation = Situation(
        accelerator=case.accelerator, precisions=case.precisions, stack=case.stack, released_year=case.year,
        experts=routed_experts(case.transformer),
    )  # fmt: skip
    return (*situation.effect_keys(), f"fixed={case.fixed_lengths}")


def targets_of(cases: Sequence[Case], regime: str) -> list[Target]:
    """Measured figures of the cases of one regime, unweighted."""
    out = []
    for row, case in enumerate(cases):
        m = case.measured
        if v := m.get("output_tokens_per_s_total"):
            out.append((row, "rate", v))
        if v := m.get("tpot_ms"):
            out.append((row, "tpot", v * 1e-3))
        if (v := m.get("ttft_ms")) and v <= UNSATURATED_TTFT_MS:
            out.append((row, "ttft", v * 1e-3))
    return [
        Target(metric=k, regime=regime, row=i, log_measured=float(np.log(v)), weight=1.0, case=cases[i])
        for i, k, v in out
    ]


def weighted(targets: Sequence[Target], power: float = 0.25) -> tuple[Target, ...]:
    """Weights so that a source with many rows of a metric does not drown the others."""
    counts: dict[tuple[str, str, str], int] = {}
    for t in targets:
        key = (t.case.source, t.case.accelerator.id + t.case.stack, t.metric)
        counts[key] = counts.get(key, 0) + 1
    out = []
    for t in targets:
        n = counts[(t.case.source, t.case.accelerator.id + t.case.stack, t.metric)]
        out.append(replace(t, weight=METRIC_WEIGHT[t.metric] * float(n) ** (-0.5 * power)))
    mean = float(np.sqrt(np.mean([t.weight**2 for t in out])))
    return tuple(replace(t, weight=t.weight / mean) for t in out)


def problem_of(cases: Sequence[Case], calibration: ServingCalibration, terms: Sequence[Term]) -> Problem:
    """Assemble batches, design matrices and targets."""
    batches, designs, targets = {}, {}, []
    for regime in ("offline", "static", "closed"):
        chosen = [c for c in cases if c.regime == regime and c.plan is not None and c.prompt is not None]
        if not chosen:
            continue
        batches[regime] = assemble(chosen, calibration)
        keys = [set(effect_keys(c)) for c in chosen]
        years = np.array([years_from_zero(c.year) for c in chosen])
        per: dict[str, Floats] = {}
        for quantity in FIELDS:
            columns = [
                years if t.key == "year" else np.array([float(t.key in k) for k in keys])
                for t in terms
                if t.quantity == quantity
            ]
            if columns:
                per[quantity] = np.stack(columns, axis=1)
        designs[regime] = per
        targets.extend(targets_of(chosen, regime))
    done = weighted(targets)
    index = {}
    for key in sorted({(t.regime, t.metric) for t in done}):
        places = [i for i, t in enumerate(done) if (t.regime, t.metric) == key]
        index[key] = (np.array(places), np.array([done[i].row for i in places]))
    return Problem(terms=tuple(terms), batches=batches, designs=designs, targets=done, index=index)


def apply(problem: Problem, theta: Floats, base: Mapping[str, float]) -> dict[str, Predicted]:
    """Predictions of every batch with the effects ``theta``."""
    out = {}
    index: dict[str, list[int]] = {}
    for i, term in enumerate(problem.terms):
        index.setdefault(term.quantity, []).append(i)
    for regime, batch in problem.batches.items():
        changes: dict[str, Floats] = {}
        frontend = np.full((len(batch.cases), 1), base["frontend_s"])
        together = np.full((len(batch.cases), 1), base["burst"])
        for quantity, design in problem.designs[regime].items():
            factor = np.exp(design @ theta[index[quantity]])[:, None]
            if quantity == "frontend_s":
                frontend = frontend * factor
            elif quantity == "burst":
                together = np.minimum(together * factor, 1.0)
            for field in FIELDS[quantity]:
                changes[field] = changes.get(field, getattr(batch.rates, field)) * factor
        if "overlap" in changes:  # a share
            changes["overlap"] = np.minimum(changes["overlap"], 1.0)
        rates = within_limits(replace(batch.rates, **changes))
        requests = replace(batch.requests, together=together)
        out[regime] = predict(replace(batch, rates=rates, requests=requests), frontend)
    return out


def log_predictions(problem: Problem, predicted: Mapping[str, Predicted]) -> Floats:
    """Log prediction of every target."""
    out = np.empty(len(problem.targets))
    fields = {"rate": "output_tokens_per_s", "tpot": "tpot_s", "ttft": "ttft_s"}
    for (regime, metric), (places, rows) in problem.index.items():
        out[places] = np.log(getattr(predicted[regime], fields[metric])[rows])
    return out


def jacobian(problem: Problem, theta: Floats, base: Mapping[str, float], at: Floats) -> Floats:
    """Derivatives of the log predictions with respect to the effects, by forward differences."""
    out = np.empty((len(at), len(theta)))
    for i in range(len(theta)):
        moved = theta.copy()
        moved[i] += DIFFERENCE
        out[:, i] = (log_predictions(problem, apply(problem, moved, base)) - at) / DIFFERENCE
    return out


def objective(error: Floats, weights: Floats, theta: Floats, shrink: Floats) -> float:
    """Cauchy loss of the errors plus the squared shrinkage."""
    z = error / ROBUST_SCALE
    return float((weights**2 * np.log1p(z * z)).sum() + ((theta * shrink) ** 2).sum())


def solve(problem: Problem, base: Mapping[str, float], keep: Sequence[bool] | None = None) -> Floats:
    """Least squares on log errors, Cauchy loss, every effect shrunk towards zero.

    Gauss-Newton with reweighting; each derivative matrix serves ``STEPS_PER_ROUND`` damped steps.
    """
    measured = np.array([t.log_measured for t in problem.targets])
    weights = np.array([t.weight for t in problem.targets])
    if keep is not None:
        weights = weights * np.array(keep, dtype=float)
    shrink = np.array([1.0 / t.spread for t in problem.terms])
    theta = np.zeros(len(shrink))
    at = log_predictions(problem, apply(problem, theta, base))
    best = objective(at - measured, weights, theta, shrink)
    for _ in range(ROUNDS):
        j = jacobian(problem, theta, base, at)
        before = best
        for _ in range(STEPS_PER_ROUND):
            error = at - measured
            w = weights**2 / (ROBUST_SCALE**2 * (1.0 + (error / ROBUST_SCALE) ** 2))
            normal = (j * w[:, None]).T @ j + np.diag(shrink**2)
            step = np.linalg.solve(normal, -(j.T @ (w * error) + shrink**2 * theta))
            step = np.clip(step, -LARGEST_STEP, LARGEST_STEP)
            for _ in range(4):
                trial = theta + step
                moved = log_predictions(problem, apply(problem, trial, base))
                value = objective(moved - measured, weights, trial, shrink)
                if value < best:
                    theta, at, best = trial, moved, value
                    break
                step = step * 0.4
            else:
                break
        if before - best < 1e-4 * before:
            break
    return theta


Fold = Callable[[Case], str]


def folds(cases: Sequence[Case], label: Fold, count: int) -> list[list[str]]:
    """Labels dealt into ``count`` folds, largest first into the emptiest, ties by name."""
    sizes: dict[str, int] = {}
    for case in cases:
        sizes[label(case)] = sizes.get(label(case), 0) + 1
    out: list[list[str]] = [[] for _ in range(count)]
    load = [0] * count
    for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        i = load.index(min(load))
        out[i].append(name)
        load[i] += size
    return [f for f in out if f]


def cross_validate(problem: Problem, base: Mapping[str, float], label: Fold, count: int) -> Floats:
    """Log error of every target predicted without the rows of its own fold, each fold fitted from nothing.

    A fit that starts from the one on all rows keeps some of what the held-out rows told it.
    """
    measured = np.array([t.log_measured for t in problem.targets])
    errors = np.full(len(measured), np.nan)
    names = [label(t.case) for t in problem.targets]
    held = [set(fold) for fold in folds([t.case for t in problem.targets], label, count)]
    kept = [[n not in out for n in names] for out in held]
    with ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=_share, initargs=(problem, base)) as pool:
        for out, predicted in zip(held, pool.map(_without, kept), strict=True):
            mask = np.array([n in out for n in names])
            errors[mask] = (predicted - measured)[mask]
    return errors


_shared: list[tuple[Problem, Mapping[str, float]]] = []


def _share(problem: Problem, base: Mapping[str, float]) -> None:
    _shared[:] = [(problem, base)]


def _without(keep: Sequence[bool]) -> Floats:
    """Log predictions of every target by a fit on those kept."""
    problem, base = _shared[0]
    return log_predictions(problem, apply(problem, solve(problem, base, keep=keep), base))
