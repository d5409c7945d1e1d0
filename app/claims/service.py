"""What other rooms may ask of claims: judge claimed figures about a job on a supply."""

from datetime import date
from typing import Any

from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.claims.answers import EMPTY, answer_json, band_json, chances_json, head_json
from app.claims.conditions import find_condition
from app.claims.errors import missing, refused
from app.claims.facts import checked_statement, utilizations_in
from app.claims.judging import Asked, claimed_range, predict
from app.claims.lifetime import lifetime
from app.claims.metrics import METRICS, Metric, applicable_to, find_metric
from app.claims.readings import Side, World
from app.claims.reasons import decided, number, sentence, unknown
from app.claims.schemas import ClaimField, ClaimsRequest
from app.claims.verdict import holds, judge
from app.estimates.physics import quantized
from app.estimates.schemas import Supply


def judge_claims(
    snapshot: Snapshot, request: ClaimsRequest, today: date, book: PriceBook | None = None
) -> dict[str, Any]:
    """Judge every claim of a request, in its order.

    Raises
    ------
    Problem
        ``validation-failed`` where something is missing or a metric does not apply.
    """
    world = World(snapshot=snapshot, terms=request.terms, as_of=request.as_of, today=today, book=book)
    rows = [_judged(world, request, claim, f"/claims/{i}") for i, claim in enumerate(request.claims)]
    return {
        "claims": rows,
        "pins": {
            "catalog_revision": snapshot.revision_id,
            "catalog_revision_number": snapshot.number,
            "as_of": (request.as_of or today).isoformat(),
        },
    }


def _judged(world: World, request: ClaimsRequest, claim: ClaimField, at: str) -> dict[str, Any]:
    metric = find_metric(claim.metric)
    if metric is None:
        raise refused(
            f"{at}/metric", "unknown_metric", f"There is no metric {claim.metric!r}; see choices.", sorted(METRICS)
        )
    if metric.source == "text":
        return _in_words(world, claim, metric, at)
    _has_range(claim, at)
    if metric.source == "items":
        return _items(world, request, claim, metric, at)
    asked = _asked(request, claim, metric, at)
    if isinstance(asked, str):
        return _undecided(claim, metric, asked)
    found = predict(world, asked)
    condition = None
    if found.judged is None or not holds(found.judged):
        condition = find_condition(world, asked, found)
    return answer_json(world, asked, found, condition)


def _has_range(claim: ClaimField, at: str) -> None:
    if claim.low is None and claim.high is None and claim.equals is None:
        raise missing(f"{at}/low", "range", "A claim states a figure: give low, high or both, or equals.")
    if claim.relation is None:
        raise missing(
            f"{at}/relation", "relation", "Say what the figure is: relation ratio, absolute or percent_change."
        )


def _asked(request: ClaimsRequest, claim: ClaimField, metric: Metric, at: str) -> Asked | str:
    """The claim with its sides, or the name of the one thing it cannot be decided without."""
    relation = claim.relation
    assert relation is not None
    job, job_at = (claim.job, f"{at}/job") if claim.job is not None else (request.job, "/job")
    if job is not None and metric.jobs and job.kind not in metric.jobs:
        raise refused(
            f"{at}/metric",
            "metric_not_applicable",
            f"{metric.id} is a figure of {' or '.join(metric.jobs)}, and the job is {job.kind}.",
            applicable_to(job.kind),
        )
    _relation_applies(claim, metric, at)
    arithmetic = claim.utilization is not None or (job is None and utilizations_in(claim.text) is not None)
    asked = Asked(
        field=claim,
        metric=metric,
        relation=relation,
        claimed=claimed_range(claim),
        candidate=None,
        baseline=None,
        at=at,
    )
    if arithmetic and relation != "absolute":
        return asked
    candidate, candidate_at = _supply(claim.candidate, request.candidate, claim, request, at, "candidate")
    baseline, baseline_at = _supply(claim.baseline, request.baseline, claim, request, at, "baseline")
    if relation != "absolute" and baseline is None:
        raise missing(
            baseline_at, "baseline", f"A {relation} compares with something: give the baseline supply it is against."
        )
    if candidate is None and baseline is not None and relation == "absolute":
        candidate, candidate_at = baseline, baseline_at
    if candidate is None:
        raise missing(candidate_at, "candidate", "Give the candidate supply the claim is about.")
    if metric.jobs and job is None:
        return "job"
    base_job = claim.baseline_job or job
    sides = {
        "candidate": Side(job=job, supply=candidate, at=job_at, supply_at=candidate_at),
        "baseline": None if baseline is None else Side(job=base_job, supply=baseline, at=job_at, supply_at=baseline_at),
    }
    return Asked(
        field=claim, metric=metric, relation=relation, claimed=asked.claimed, at=at,
        candidate=sides["candidate"], baseline=sides["baseline"],
    )  # fmt: skip


def _relation_applies(claim: ClaimField, metric: Metric, at: str) -> None:
    if metric.source == "feasible" and claim.relation != "absolute":
        raise refused(
            f"{at}/relation",
            "relation_not_applicable",
            "feasible is yes (1) or no (0): claim it as absolute.",
            ["absolute"],
        )
    if claim.relation == "ratio" and any(v is not None and v < 0 for v in (claim.low, claim.high, claim.equals)):
        raise refused(f"{at}/low", "impossible_range", "A ratio is not negative; a percent_change may be.")
    if claim.relation == "percent_change" and claim.high is not None and claim.high < -100:
        raise refused(f"{at}/high", "impossible_range", "Nothing falls by more than 100 percent.")


def _supply(
    own: Supply | None, common: Supply | None, claim: ClaimField, request: ClaimsRequest, at: str, name: str
) -> tuple[Supply | None, str]:
    """A side's supply with the count that stands beside the claim."""
    supply, where = (own, f"{at}/{name}") if own is not None else (common, f"/{name}")
    if supply is None:
        return None, where
    count = claim.accelerator_count or (supply.accelerator_count or request.accelerator_count)
    if count != supply.accelerator_count:
        supply = supply.model_copy(update={"accelerator_count": count})
    return supply, where


def _in_words(world: World, claim: ClaimField, metric: Metric, at: str) -> dict[str, Any]:
    """A specification claimed in words: decided by a statement the catalog has checked."""
    if claim.text is None:
        raise missing(
            f"{at}/text",
            "text",
            "A specification in words needs its text; figures have metrics of their own, as peak_flops.",
        )
    checked = checked_statement(world.snapshot, claim.text)
    row = {**head_json(claim, metric, claim.relation), **EMPTY}
    if checked is None:
        names = ", ".join(sorted(m.id for m in METRICS.values() if m.source == "specification"))
        row["reason"] = sentence(
            f"The catalog holds no checked statement like this; claim one of its figures instead: {names}",
            f"目录中没有与此相符的已核查说法；请改用数值指标：{names}",
        )
        return row
    row["verdict"] = checked.verdict
    row["basis"] = "catalog"
    row["reason"] = sentence(
        f"Official sources say: {checked.check.official}", f"官方资料显示：{checked.check.official}"
    )
    row["evidence"] = [checked.as_json()]
    return row


def _undecided(claim: ClaimField, metric: Metric, lacking: str) -> dict[str, Any]:
    """A claim that does not say what it is about."""
    what = {
        "job": ("a job: its model and amount of work", "任务（模型与工作量）"),
        "items": ("a training item and an inference item", "一个训练项和一个推理项"),
    }[lacking]
    reason = sentence(
        f"{metric.en[0].upper()}{metric.en[1:]} depends on the job, and the claim names none; give {what[0]}",
        f"{metric.zh}取决于任务，而该说法未给出；请提供{what[1]}",
    )
    return {**head_json(claim, metric, claim.relation), **EMPTY, "reason": reason, "missing": [lacking]}


def _items(world: World, request: ClaimsRequest, claim: ClaimField, metric: Metric, at: str) -> dict[str, Any]:
    """Spend on inference against spend on training."""
    if claim.relation != "absolute":
        raise refused(
            f"{at}/relation", "relation_not_applicable", f"{metric.id} is a ratio already: claim it as absolute."
        )
    items = claim.items or request.items or []
    if {item.job.kind for item in items} != {"training", "inference"}:
        return _undecided(claim, metric, "items")
    common = claim.candidate or request.candidate
    empty = Supply()
    placed = [
        item.model_copy(update={"supply": common}) if common is not None and item.supply == empty else item
        for item in items
    ]
    found = lifetime(world, placed)
    row = {**head_json(claim, metric, "absolute"), **EMPTY, "unit": "1"}
    if found.ratio is None:
        return {**row, "reason": unknown("candidate", found.why or "")}
    judged = judge(found.ratio, claimed_range(claim), metric.better)
    row.update(
        verdict=judged.verdict,
        predicted=band_json(found.ratio),
        chances=chances_json(judged),
        basis="engine",
        evidence=[dict(row) for row in found.evidence],
        candidate={"value": band_json(found.ratio), "training": found.training, "inference": found.inference},
        reason=decided(metric, "absolute", found.ratio, claimed_range(claim), claim.equals, judged, "1"),
    )
    if found.even_months is not None:
        months = number(found.even_months)
        row["condition"] = {
            "changes": {"months": found.even_months},
            "predicted": None,
            "text": sentence(f"Spend is even after {months} months of service", f"服务 {months} 个月后两者支出相等"),
        }
    rounded: dict[str, Any] = quantized(row)
    return rounded
