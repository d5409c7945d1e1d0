"""One side of a claim: what a metric is for one job on one supply, with where it comes from."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.snapshot import Snapshot
from app.claims.errors import missing, relocated
from app.claims.metrics import Metric
from app.claims.prediction import Figure, Origin, exactly, ratio_band
from app.claims.readings import Reading, Side, World
from app.claims.specifications import memory_rows, specification
from app.engine.outcome import Band, Infeasible
from app.estimates import service as estimates
from app.estimates.job_schemas import EfficiencyOverride, InferenceJob, TrainingJob
from app.estimates.schemas import Constraints, EstimateRequest, Item, PurchaseModel
from app.foundation.problems import Problem

ON_DEMAND = PurchaseModel(kind="on_demand")
# Sellers looked at when a price is claimed; more than sell any one part today.
MOST_SELLERS = 24
# Shares of time that depend on the speed in more than proportion.
FOLLOWS_SPEED = frozenset({"accelerator_utilization", "goodput"})


def item_of(side: Side, most: int = 1) -> Item:
    """The side as an item of an estimate."""
    job, supply = side.job, side.supply
    if job is None or supply is None:
        raise missing(side.at, "job", "This metric needs a job and a supply.")
    if isinstance(job, TrainingJob) and job.tokens is None and job.dataset is None:
        raise missing(f"{side.at}/tokens", "tokens", "Give job.tokens or job.dataset: the amount of work.")
    if isinstance(job, InferenceJob):
        load = job.traffic
        if load.requests_per_second is None and load.concurrency is None and load.tokens_per_day is None:
            raise missing(
                f"{side.at}/traffic", "load", "Give job.traffic requests_per_second, concurrency or tokens_per_day."
            )
    return Item(id="claim", job=job, supply=supply, constraints=Constraints(max_options=most))


def read(world: World, metric: Metric, side: Side, precision: str | None) -> Reading:
    """The metric on one side; refusals point into the body of the claim."""
    try:
        return _read(world, metric, side, precision)
    except Problem as problem:
        raise relocated(problem, places(side)) from None


def places(side: Side) -> dict[str, str]:
    """Where the parts of an estimate's item stand in the body that was sent."""
    return {
        f"{start}/{part}": where
        for start in ("", "/items/0")
        for part, where in (("job", side.at), ("supply", side.supply_at))
        if f"{start}/{part}" != where
    }


def fewest_accelerators(world: World, side: Side) -> int | None:
    """Accelerators of the smallest run of a side; None where it cannot run."""
    try:
        return estimates.physical(world.snapshot, item_of(side), "").fewest
    except Problem as problem:
        raise relocated(problem, places(side)) from None


def _read(world: World, metric: Metric, side: Side, precision: str | None) -> Reading:
    if metric.source == "specification":
        return specification(world.snapshot, metric, side, precision)
    item = item_of(side, MOST_SELLERS if metric.source == "money" else 1)
    if metric.source == "money":
        return _money(world, metric, item)
    found = estimates.physical(world.snapshot, item, "")
    best = found.best
    if best is None:
        refusal = found.refusal
        if metric.source == "feasible":
            return Reading(
                figure=exactly(0.0, "arithmetic"),
                why=refusal.message if refusal else "nothing in the supply can be quoted",
                numbers=dict(refusal.numbers) if refusal else {},
                evidence=memory_rows(world.snapshot, side.supply),
            )
        return _cannot_run(refusal)
    if metric.source == "feasible":
        return Reading(figure=exactly(1.0, best["evidence_class"]), run=best, numbers=_headroom(best))
    if metric.source == "split":
        return _split(world.snapshot, item, found.hardware[best["hardware"]], best, "")
    if metric.source == "scaling":
        return _scaling(world.snapshot, metric, item, found.hardware[best["hardware"]], best, "")
    band = None if metric.read is None else metric.read(best)
    if metric.id in FOLLOWS_SPEED and band is not None:
        band = _over_speeds(world.snapshot, metric, item, best, "")
    if band is None:
        return Reading(figure=None, run=best, why=f"{metric.en} is not known for this supply (no source states it)")
    numbers = best["data"] if metric.id in FOLLOWS_SPEED else {}
    return Reading(figure=engine_figure(band, best), run=best, numbers=numbers)


def _over_speeds(snapshot: Snapshot, metric: Metric, item: Item, run: Mapping[str, Any], at: str) -> Band:
    """The figure at the slow, middle and fast end of the predicted speed: a faster step waits more for its data."""
    assert metric.read is not None
    job, count = item.job, run["accelerators"]
    assert isinstance(job, TrainingJob)
    values = []
    for quantile in ("p10", "p50", "p90") if job.efficiency_override is None else ("p50",):
        rate = run["performance"]["tokens_per_second_per_accelerator"][quantile]
        fixed = job.model_copy(
            update={"efficiency_override": EfficiencyOverride(tokens_per_second_per_accelerator=rate)}
        )
        supply = item.supply.model_copy(update={"accelerator_count": count})
        again = estimates.physical(snapshot, item.model_copy(update={"job": fixed, "supply": supply}), at).best
        found = metric.read(again) if again is not None else None
        values.append(run["performance"][metric.id] if found is None else found.p50)
    values.sort()
    return Band(p10=values[0], p50=values[len(values) // 2], p90=values[-1])


def engine_figure(band: Band, run: Mapping[str, Any]) -> Figure:
    """A figure of a run with its origin and the engine's own part of its spread."""
    basis, origin = run["performance"]["interval_basis"], origin_of(run)
    if run["kind"] != "training":
        return Figure(value=band, basis=basis, origin=origin)
    rate = run["performance"]["tokens_per_second"]
    slow, fast = math.log(rate["p50"] / rate["p10"]), math.log(rate["p90"] / rate["p50"])
    # some figures rise with the speed and some fall: the wider side bounds both, the figure's own spread bounds it
    return Figure(value=band, basis=basis, origin=origin, step=(max(slow, fast), max(slow, fast)))


def origin_of(run: Mapping[str, Any]) -> Origin:
    """What a run's error depends on."""
    if run["kind"] == "inference":
        precision = run["precision"]["weights"]
        rate = run["performance"]["output_tokens_per_second"]["p50"]
    else:
        precision = next((str(a["value"]) for a in run["assumptions"] if a["id"] == "precision"), "")
        rate = run["performance"]["tokens_per_second"]["p50"]
    answer = (run["hardware"], run["accelerators"], precision, tuple(sorted(run["plan"].items())), rate)
    return Origin(kind=run["kind"], accelerator=run["accelerator"], precision=precision, answer=answer)


def _cannot_run(refusal: Infeasible | None) -> Reading:
    if refusal is None:
        return Reading(figure=None, why="nothing in the supply can be quoted", infeasible=True)
    return Reading(figure=None, why=refusal.message, infeasible=True, numbers=dict(refusal.numbers))


def _headroom(run: Mapping[str, Any]) -> dict[str, Any]:
    return {"headroom_bytes": run["performance"]["memory_breakdown_bytes"].get("headroom")}


def _split(snapshot: Snapshot, item: Item, hardware: Any, run: Mapping[str, Any], at: str) -> Reading:
    split = estimates.model_parallel_minimum(snapshot, item, hardware, run["accelerators_per_run"], at)
    if isinstance(split, Infeasible):
        return _cannot_run(split)
    plan = split.plan
    numbers = {"tensor": plan.tensor, "pipeline": plan.pipeline, "context": plan.context, "recompute": plan.recompute}
    return Reading(figure=exactly(float(split.accelerators), "arithmetic"), run=run, numbers=numbers)


def _scaling(snapshot: Snapshot, metric: Metric, item: Item, hardware: Any, run: Mapping[str, Any], at: str) -> Reading:
    """Speed per accelerator at the asked size over that at the smallest size that runs."""
    count = run["accelerators_per_run"]
    counts = sorted({*(c for c in estimates.sizes(hardware, count) if c < count), count})
    points = estimates.curve(
        snapshot, item, hardware, counts, at, weak=metric.id.startswith("weak"), first_and_last_only=True
    )
    known = [p for p in points if p.tokens_per_s_per_accelerator is not None]
    last, first = known[-1], known[0]
    assert last.tokens_per_s_per_accelerator is not None
    assert first.tokens_per_s_per_accelerator is not None
    origin = origin_of(run)
    small = Origin(
        kind=origin.kind, accelerator=origin.accelerator, precision=origin.precision, answer=(first.accelerators,)
    )
    basis = run["performance"]["interval_basis"]
    band = ratio_band(
        Figure(value=last.tokens_per_s_per_accelerator, basis=basis, origin=origin),
        Figure(value=first.tokens_per_s_per_accelerator, basis=basis, origin=small),
    ) if first is not last else exactly(1.0, basis).value  # fmt: skip
    numbers = {"reference_accelerators": first.accelerators, "accelerators": last.accelerators}
    return Reading(figure=Figure(value=band, basis=basis, origin=origin), run=run, numbers=numbers)


def _money(world: World, metric: Metric, item: Item) -> Reading:
    supply = item.supply
    if supply.purchase_models is None and supply.offers is None:
        item = item.model_copy(update={"supply": supply.model_copy(update={"purchase_models": [ON_DEMAND]})})
    request = EstimateRequest(items=[item], terms=world.terms, as_of=world.as_of)
    try:
        answer = estimates.estimate(world.snapshot, request, world.today, world.book)
    except Problem as problem:
        if problem.slug != "infeasible-spec":
            raise
        return Reading(figure=None, why=problem.detail, infeasible=True)
    options = answer.content["items"][0]["options"]
    runs = {run["key"]: run for run in answer.engine_outputs["items"][0]["runs"]}
    sellers: dict[str, Figure] = {}
    first: Reading | None = None
    assert metric.read is not None
    for option in signable(options):
        band = metric.read(option)
        if band is None:
            continue
        run = runs[option["run_key"]]
        figure = engine_figure(band, run)
        sellers.setdefault(str(option["offer"]["provider"]), figure)
        first = first or Reading(figure=figure, run=run, option=option, evidence=(price_row(option),))
    if first is None:
        return Reading(figure=None, why="the catalog holds no current price for this supply")
    return Reading(figure=first.figure, run=first.run, option=first.option, sellers=sellers, evidence=first.evidence)


def signable(options: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """Options a provider would sign; market indications only where there is nothing else."""
    firm = [option for option in options if not option["offer"].get("indicative")]
    return firm or options


def price_row(option: Mapping[str, Any]) -> Mapping[str, Any]:
    """The dated price behind an option."""
    offer = option["offer"]
    proof: Mapping[str, Any] = next(
        (line["price_evidence"] for line in option["cost"]["lines"] if "price_id" in line["price_evidence"]), {}
    )
    wanted = ("price_id", "native_price", "price_unit", "accelerators_per_sold_unit", "observed_on", "stale", "source")
    return {
        "kind": "price",
        "provider": offer["provider"],
        "instance_type": offer.get("instance_type"),
        "region": offer.get("region"),
        "purchase_model": offer["purchase_model"],
        **{key: proof[key] for key in wanted if key in proof},
    }
