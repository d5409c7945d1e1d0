"""The inverse question: how much can be trained in a given time."""

from dataclasses import replace

from app.engine.errors import EngineInputError
from app.engine.hardware import Cluster
from app.engine.outcome import Infeasible, TrainingResult
from app.engine.run.conditions import RunConditions
from app.engine.run.training_run import RunOutcome, run_training
from app.engine.workload import TrainingWorkload

SECONDS_PER_HOUR = 3600.0

# Relative width at which the answer stops: far below any band.
PRECISION = 1e-6
PERCENTILES = ("p10", "p50", "p90")


def tokens_within(
    hours: float,
    result: TrainingResult,
    workload: TrainingWorkload,
    cluster: Cluster,
    conditions: RunConditions,
    percentile: str = "p50",
) -> float | Infeasible:
    """Tokens of one run whose campaign ends within the given calendar hours.

    Parameters
    ----------
    hours : float [h]
        Calendar time for the whole campaign.
    result : TrainingResult
        Of one run on ``cluster``; its rate does not depend on the number of tokens.
    workload : TrainingWorkload
        Its own ``tokens`` are ignored.
    cluster : Cluster
    conditions : RunConditions
    percentile : str
        ``p50``: as likely as not; ``p90``: nine times in ten.

    Returns
    -------
    float [token] or Infeasible

    References
    ----------
    1. Bisection on :func:`app.engine.run.training_run.run_training`, which grows with the tokens.
    """
    if not 0.0 < hours < float("inf"):
        raise EngineInputError("hours", f"must be positive and finite, got {hours}")
    if percentile not in PERCENTILES:
        raise EngineInputError("percentile", f"is one of {', '.join(PERCENTILES)}, got {percentile!r}")

    def duration(tokens: float) -> float | Infeasible:
        outcome = run_training(result, replace(workload, tokens=tokens), cluster, conditions)
        return getattr(outcome.duration_hours, percentile) if isinstance(outcome, RunOutcome) else outcome

    # nothing trains faster than the step's own upper rate around the clock
    most = 2.0 * hours * SECONDS_PER_HOUR * result.tokens_per_s.p90 * conditions.campaign.concurrent_runs
    low, high = 0.0, most / conditions.campaign.equivalents
    while high - low > PRECISION * high:
        middle = (low + high) / 2.0
        took = duration(middle)
        if isinstance(took, Infeasible):
            return took
        low, high = (middle, high) if took <= hours else (low, middle)
    return low
