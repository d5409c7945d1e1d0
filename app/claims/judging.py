"""From a claim to its verdict: what is asked of each side, the predicted figure, the judgement."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.claims.facts import at_utilizations, utilizations_in
from app.claims.metrics import Metric
from app.claims.prediction import Figure, over_known_draws, ratio_band, shared_error
from app.claims.readings import Reading, Side, World
from app.claims.schemas import ClaimField, Utilizations
from app.claims.sides import fewest_accelerators, read
from app.claims.verdict import ClaimedRange, Judgement, judge, rounded_range
from app.engine.outcome import Band
from app.estimates.job_schemas import TrainingJob

# Fewer sellers of both parts than this say little about a market; then the recommended options are compared.
FEWEST_SELLERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A claim with everything filled in that stands beside it.

    Parameters
    ----------
    metric : Metric
    relation : str
    claimed : ClaimedRange
        On the relation's own scale.
    candidate, baseline : Side or None
    """

    field: ClaimField
    metric: Metric
    relation: str
    claimed: ClaimedRange
    candidate: Side | None
    baseline: Side | None
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What the engine says to a claim.

    Parameters
    ----------
    band : Band or None
        On the relation's own scale (percent for a percent change).
    judged : Judgement or None
    """

    band: Band | None
    judged: Judgement | None
    candidate: Reading | None
    baseline: Reading | None
    shared_error: float | None = None
    assumptions: tuple[Mapping[str, Any], ...] = field(default=())


def claimed_range(claim: ClaimField) -> ClaimedRange:
    """The range of a claim; a single figure stands for what rounds to it."""
    if claim.equals is not None:
        return rounded_range(claim.equals)
    return ClaimedRange(low=claim.low, high=claim.high)


def predict(world: World, asked: Asked) -> Prediction:
    """Compute both sides and judge."""
    given = _utilizations(asked)
    if given is not None:
        pair = at_utilizations(asked.metric.id, given)
        if pair is not None:
            read_from_text = asked.field.utilization is None
            source = "read from the claim's text" if read_from_text else "stated"
            notes: tuple[Mapping[str, Any], ...] = (
                {"id": "utilization", "value": given.model_dump(), "source": source},
            )
            return _related(asked, pair[1], pair[0], notes)
    assert asked.candidate is not None
    candidate_side, baseline_side, notes = _same_count(world, asked)
    candidate = read(world, asked.metric, candidate_side, asked.field.precision)
    if asked.relation == "absolute":
        return _absolute(asked, candidate, notes)
    assert baseline_side is not None
    baseline = read(world, asked.metric, baseline_side, asked.field.precision)
    return _related(asked, candidate, baseline, notes)


def _utilizations(asked: Asked) -> Utilizations | None:
    if asked.field.utilization is not None:
        return asked.field.utilization
    has_job = asked.candidate is not None and asked.candidate.job is not None
    return None if has_job else utilizations_in(asked.field.text)


def _same_count(world: World, asked: Asked) -> tuple[Side, Side | None, tuple[Mapping[str, Any], ...]]:
    """Both sides on as many accelerators, where the claim does not say how many: what the baseline needs."""
    candidate, baseline = asked.candidate, asked.baseline
    assert candidate is not None
    relative = asked.relation != "absolute" and baseline is not None and asked.metric.jobs != ()
    if not relative or baseline is None or not isinstance(candidate.job, TrainingJob):
        return candidate, baseline, ()
    assert candidate.supply is not None
    assert baseline.supply is not None
    counts = (candidate.supply.accelerator_count, baseline.supply.accelerator_count)
    if counts != (None, None) or asked.metric.id == "accelerators":
        return candidate, baseline, ()
    needed = [fewest_accelerators(world, side) for side in (candidate, baseline)]
    if None in needed:
        return candidate, baseline, ()
    count = max(n for n in needed if n is not None)
    note = {"id": "accelerator_count", "value": count, "unit": "accelerators", "source": "what both sides can run on"}
    return _counted(candidate, count), _counted(baseline, count), (note,)


def _counted(side: Side, count: int) -> Side:
    assert side.supply is not None
    supply = side.supply.model_copy(update={"accelerator_count": count})
    return Side(job=side.job, supply=supply, at=side.at, supply_at=side.supply_at)


def _absolute(asked: Asked, reading: Reading, notes: tuple[Mapping[str, Any], ...]) -> Prediction:
    if reading.figure is None:
        judged = _impossible() if reading.infeasible else None
        return Prediction(band=None, judged=judged, candidate=reading, baseline=None, assumptions=notes)
    band = reading.figure.value
    judged = judge(band, asked.claimed, asked.metric.better)
    return Prediction(band=band, judged=judged, candidate=reading, baseline=None, assumptions=notes)


def _impossible() -> Judgement:
    return Judgement(verdict="contradicted", worse=1.0, within=0.0, better=0.0)


def _related(asked: Asked, candidate: Reading, baseline: Reading, notes: tuple[Mapping[str, Any], ...]) -> Prediction:
    top, bottom = candidate.figure, baseline.figure
    if top is None or bottom is None or bottom.value.p50 <= 0.0 or top.value.p50 <= 0.0:
        judged = _impossible() if candidate.infeasible and not baseline.infeasible else None
        return Prediction(band=None, judged=judged, candidate=candidate, baseline=baseline, assumptions=notes)
    band, more = _between(candidate, baseline, top, bottom)
    claimed = asked.claimed
    if asked.relation == "percent_change":
        claimed = claimed.scaled_to_ratio()
    judged = judge(band, claimed, asked.metric.better)
    if asked.relation == "percent_change":
        band = Band(p10=100.0 * (band.p10 - 1.0), p50=100.0 * (band.p50 - 1.0), p90=100.0 * (band.p90 - 1.0))
    return Prediction(
        band=band,
        judged=judged,
        candidate=candidate,
        baseline=baseline,
        shared_error=shared_error(top.origin, bottom.origin),
        assumptions=(*notes, *more),
    )


def _between(
    candidate: Reading, baseline: Reading, top: Figure, bottom: Figure
) -> tuple[Band, tuple[Mapping[str, Any], ...]]:
    """The ratio; for money over every seller of both parts, so that one seller's policy does not decide."""
    band = ratio_band(top, bottom)
    both = sorted(candidate.sellers.keys() & baseline.sellers.keys())
    if len(both) < FEWEST_SELLERS:
        return band, ()
    ratios = [candidate.sellers[s].value.p50 / baseline.sellers[s].value.p50 for s in both]
    unit = Band(p10=band.p10 / band.p50, p50=1.0, p90=band.p90 / band.p50)
    note = {
        "id": "sellers",
        "value": {s: round(r, 4) for s, r in zip(both, ratios, strict=True)},
        "unit": "ratio",
        "source": "every provider that sells both parts on these terms is one equally likely draw",
    }
    return over_known_draws(unit, ratios), (note,)
