"""The same job on several supplies: time, money, energy, campaign, scaling, and where one overtakes another."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.claims.breakeven import CampaignMoney, breakeven, campaign_money
from app.claims.errors import relocated
from app.claims.metrics import METRICS, band_of
from app.claims.prediction import Figure, ratio_band
from app.claims.readings import Side, World
from app.claims.schemas import ComparedSupply, ComparisonRequest
from app.claims.sides import engine_figure, item_of, signable
from app.engine.outcome import Band, Infeasible
from app.estimates import service as estimates
from app.estimates.errors import refused_field
from app.estimates.job_schemas import InferenceJob, Job, ServingPrecision, TrainingJob, TrainingPrecision
from app.estimates.physics import quantized
from app.estimates.schemas import EstimateRequest, Item
from app.foundation.problems import Problem

# A coarse curve steps by eight, a full one by two.
COARSE_STEP, FULL_STEP = 8, 2
# Options priced to find one that a provider would sign.
FEW_OPTIONS = 3
SHOWN = ("duration_hours", "tokens_per_second_per_accelerator", "model_flops_utilization", "accelerator_utilization",
         "iterations_per_week", "goodput", "output_tokens_per_second_per_accelerator", "ttft_ms", "tpot_ms",
         "utilization", "time_breakdown", "bottleneck", "interval_basis")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One supply answered."""

    item: Item
    option: Mapping[str, Any]
    run: Mapping[str, Any]


def compare(
    snapshot: Snapshot, request: ComparisonRequest, today: date, book: PriceBook | None = None
) -> dict[str, Any]:
    """Answer one job on every supply of a request, in its order; the first is what the others are compared with.

    Raises
    ------
    Problem
        ``validation-failed`` where the job lacks its work or a supply names what the catalog does not hold.
    """
    world = World(snapshot=snapshot, terms=request.terms, as_of=request.as_of, today=today, book=book)
    answered = [_answer(world, request, supply, f"/supplies/{i}") for i, supply in enumerate(request.supplies)]
    first = answered[0] if isinstance(answered[0], Row) else None
    rows = []
    for i, (supply, found) in enumerate(zip(request.supplies, answered, strict=True)):
        head = {"name": supply.name or f"supply {i + 1}", "precision": supply.precision}
        if isinstance(found, Problem):
            rows.append({**head, "feasible": False, "reason": found.detail, **found.extensions})
            continue
        rows.append({**head, "feasible": True, **_row(world, request, found, first if found is not first else None)})
    rounded: dict[str, Any] = quantized(
        {
            "supplies": rows,
            "compared_with": rows[0]["name"],
            "currency": request.terms.currency,
            "pins": {
                "catalog_revision": snapshot.revision_id,
                "catalog_revision_number": snapshot.number,
                "as_of": (request.as_of or today).isoformat(),
            },
        }
    )
    return rounded


def _answer(world: World, request: ComparisonRequest, supply: ComparedSupply, at: str) -> Row | Problem:
    plain = supply.plain()
    if plain.accelerator_count is None and request.accelerator_count is not None:
        plain = plain.model_copy(update={"accelerator_count": request.accelerator_count})
    job = _with_precision(request.job, supply.precision, f"{at}/precision")
    item = item_of(Side(job=job, supply=plain, at="/job", supply_at=at), FEW_OPTIONS)
    try:
        body = EstimateRequest(items=[item], terms=world.terms, as_of=world.as_of)
        answer = estimates.estimate(world.snapshot, body, world.today, world.book)
    except Problem as problem:
        moved = relocated(problem, {"/items/0/job": "/job", "/items/0/supply": at})
        if problem.slug != "infeasible-spec":
            raise moved from None
        return moved
    option = signable(answer.content["items"][0]["options"])[0]
    runs = {run["key"]: run for run in answer.engine_outputs["items"][0]["runs"]}
    return Row(item=item, option=option, run=runs[option["run_key"]])


def _with_precision(job: Job, precision: str | None, at: str) -> Job:
    if precision is None:
        return job
    known = get_args(ServingPrecision if isinstance(job, InferenceJob) else TrainingPrecision)
    if precision not in known:
        reason = f"no {job.kind} job computes in {precision}; known are {', '.join(known)}"
        raise refused_field(at, "precision", reason, {at: known[0]})
    if isinstance(job, InferenceJob):
        formats = job.precision.model_copy(update={"weights": precision, "activations": precision})
        return job.model_copy(update={"precision": formats})
    return job.model_copy(update={"precision": precision})


def _row(world: World, request: ComparisonRequest, row: Row, first: Row | None) -> dict[str, Any]:
    option, run = row.option, row.run
    performance = option["performance"]
    money = METRICS["cost_per_million_tokens"].read
    assert money is not None
    return {
        "label": option["label"],
        "offer": option["offer"],
        "configuration": option["configuration"],
        "performance": {name: performance[name] for name in SHOWN if name in performance},
        "cost": {key: option["cost"].get(key) for key in ("status", "net", "totals")},
        "unit_costs": option["unit_costs"],
        "cost_per_million_tokens": _band(money(option)),
        "energy": option["energy"],
        "campaign": _campaign(campaign_money(option, run)),
        "minimum_model_parallel_size": _split(world, row),
        "scaling": _scaling(world, request, row),
        "advice": option["advice"],
        "against_first": _against(world, row, first) if first is not None else None,
    }


def _campaign(money: CampaignMoney | None) -> dict[str, Any] | None:
    return None if money is None else money.as_json()


def _hardware(world: World, row: Row) -> Any:
    selection = estimates.machines(world.snapshot, row.item.supply, "/supplies")
    return next((h for h in selection.hardware if h.key == row.run["hardware"]), None)


def _split(world: World, row: Row) -> int | None:
    """Accelerators one copy of the model is cut over at least; of a service, those of a replica."""
    if not isinstance(row.item.job, TrainingJob):
        return int(row.run["performance"]["accelerators_per_replica"])
    hardware = _hardware(world, row)
    if hardware is None:
        return None
    split = estimates.model_parallel_minimum(
        world.snapshot, row.item, hardware, row.run["accelerators_per_run"], "/job"
    )
    return None if isinstance(split, Infeasible) else split.accelerators


def _scaling(world: World, request: ComparisonRequest, row: Row) -> dict[str, Any] | None:
    if request.scaling == "none" or not isinstance(row.item.job, TrainingJob):
        return None
    hardware = _hardware(world, row)
    if hardware is None:
        return None
    step = FULL_STEP if request.scaling == "full" else COARSE_STEP
    counts = estimates.sizes(hardware, request.largest_cluster, step)
    curves = {}
    for name in ("strong", "weak"):
        points = estimates.curve(world.snapshot, row.item, hardware, counts, "/job", weak=name == "weak")
        curves[name] = [point.as_json() for point in points]
    return curves


def _against(world: World, row: Row, first: Row) -> dict[str, Any]:
    """Ratios to the first supply, with the shared part of the error cancelled, and where they are even."""
    ratios = {
        "time": _ratio(METRICS["duration_hours"].read, row.run, first.run, row, first),
        "cost": _ratio(METRICS["cost"].read, row.option, first.option, row, first),
        "energy": _ratio(METRICS["energy_kwh"].read, row.run, first.run, row, first),
    }
    return {
        "ratios": {name: _band(band) for name, band in ratios.items()},
        "break_even": breakeven(world.snapshot, row.item, row.option, row.run, first.option, first.run),
    }


def _ratio(read: Any, top: Mapping[str, Any], bottom: Mapping[str, Any], row: Row, first: Row) -> Band | None:
    a, b = read(top), read(bottom)
    if a is None or b is None or a.p50 <= 0.0 or b.p50 <= 0.0:
        return None
    pair: list[Figure] = [engine_figure(a, row.run), engine_figure(b, first.run)]
    return ratio_band(pair[0], pair[1])


def _band(band: Band | None) -> dict[str, float] | None:
    checked = None if band is None else band_of({"p10": band.p10, "p50": band.p50, "p90": band.p90})
    return None if checked is None else {"p10": checked.p10, "p50": checked.p50, "p90": checked.p90}
