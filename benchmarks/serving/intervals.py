"""Intervals of serving predictions from cross-validated residuals."""

from dataclasses import dataclass

import numpy as np

from app.engine.interval import conformal_quantiles
from app.engine.serving.operators import Floats
from benchmarks.serving.fit import Problem

# metrics of the fit by the names of the calibration file
NAMES = {"rate": "output_tokens_per_s", "tpot": "tpot", "ttft": "ttft"}
# a part of a vendor without any row: a quarter wider than one whose chip alone was left out
DATASHEET_WIDENING = 1.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Fit of all rows, and the errors of each cross-validation; errors are log(predicted / measured)."""

    problem: Problem
    theta: Floats
    errors: Floats
    held_out: dict[str, Floats]


def residuals_of(fitted: Fitted) -> dict[str, dict[str, list[float]]]:
    """Quantiles of log(measured / predicted) by metric and evidence class, from rows held out as that class implies.

    ``calibrated``: the pair or the source was unseen; ``transferred``: the chip or the source; ``datasheet``: the chip,
    of rows of the least known vendors, widened by the spread between sources.
    """
    held = fitted.held_out
    pools = {"calibrated": ("pair", "source"), "transferred": ("chip", "source"), "datasheet": ("chip", "source")}
    out: dict[str, dict[str, list[float]]] = {}
    for metric, name in NAMES.items():
        of_metric = np.array([t.metric == metric for t in fitted.problem.targets])
        counts: dict[str, int] = {}
        for t in fitted.problem.targets:
            counts[t.case.source] = counts.get(t.case.source, 0) + 1
        weight = np.array([counts[t.case.source] ** -0.5 for t in fitted.problem.targets])
        for evidence, groups in pools.items():
            errors = np.concatenate([-held[g][of_metric] for g in groups])
            weights = np.concatenate([weight[of_metric]] * len(groups))
            low, _, high = conformal_quantiles(errors, weights)
            widen = DATASHEET_WIDENING if evidence == "datasheet" else 1.0
            out.setdefault(name, {})[evidence] = [low * widen, high * widen]
    out["e2e"] = {
        evidence: [min(out["tpot"][evidence][0], out["ttft"][evidence][0] * 0.5), out["tpot"][evidence][1]]
        for evidence in pools
    }
    return out
