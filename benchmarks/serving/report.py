"""Tables of errors: fit and cross-validation, by metric, regime and kind of model."""

from collections.abc import Callable, Sequence

import numpy as np

from app.engine.serving.operators import Floats
from benchmarks.serving.fit import Target
from benchmarks.serving.intervals import NAMES, Fitted, residuals_of

SLICES: tuple[tuple[str, Callable[[Target], bool]], ...] = (
    ("throughput, offline", lambda t: t.metric == "rate" and t.regime == "offline"),
    ("throughput, static batch", lambda t: t.metric == "rate" and t.regime == "static"),
    ("throughput, closed loop", lambda t: t.metric == "rate" and t.regime == "closed"),
    ("throughput, all", lambda t: t.metric == "rate"),
    ("TPOT, dense", lambda t: t.metric == "tpot" and not t.case.mixture),
    ("TPOT, MoE", lambda t: t.metric == "tpot" and t.case.mixture),
    ("TTFT, unsaturated", lambda t: t.metric == "ttft"),
)


def percent(log_errors: Floats) -> Floats:
    """Absolute percentage errors of log(predicted / measured)."""
    return np.asarray(100.0 * np.abs(np.expm1(log_errors)))


def line(log_errors: Floats, sources: Sequence[str]) -> tuple[float, float, float, float]:
    """Median, 90th percentile, signed median and median of per-source medians [%]."""
    errors = percent(log_errors)
    by_source: dict[str, list[float]] = {}
    for source, error in zip(sources, errors, strict=True):
        by_source.setdefault(source, []).append(float(error))
    medians = [float(np.median(values)) for values in by_source.values()]
    signed = 100.0 * float(np.expm1(np.median(log_errors)))
    return float(np.median(errors)), float(np.quantile(errors, 0.9)), signed, float(np.median(medians))


def table(title: str, targets: Sequence[Target], errors: Floats) -> str:
    """A Markdown table of the slices."""
    rows = [
        f"**{title}**",
        "",
        "| figure | n | median % | p90 % | signed median % | median of source medians % |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name, chosen in SLICES:
        index = [i for i, t in enumerate(targets) if chosen(t) and np.isfinite(errors[i])]
        if not index:
            continue
        a, b, c, d = line(errors[index], [targets[i].case.source for i in index])
        rows.append(f"| {name} | {len(index)} | {a:.1f} | {b:.0f} | {c:+.1f} | {d:.1f} |")
    return "\n".join(rows) + "\n"


def coverage(fitted: Fitted, grouping: str) -> float:
    """Share of held-out figures inside the interval their class would have had [1]."""
    evidence = "calibrated" if grouping == "pair" else "transferred"
    quantiles = residuals_of(fitted)
    inside = [
        quantiles[NAMES[t.metric]][evidence][0] <= -e <= quantiles[NAMES[t.metric]][evidence][1]
        for t, e in zip(fitted.problem.targets, fitted.held_out[grouping], strict=True)
    ]
    return float(np.mean(inside))


def fit_report(fitted: Fitted) -> str:
    """Fit and every cross-validation."""
    targets = fitted.problem.targets
    parts = [table("Fit", targets, fitted.errors)]
    for name, errors in fitted.held_out.items():
        parts.append(table(f"Cross-validation, whole {name}s left out", targets, errors))
        parts.append(f"p10-p90 coverage: {100.0 * coverage(fitted, name):.0f} %\n")
    return "\n".join(parts)
