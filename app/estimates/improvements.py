"""Advice with its effect: what one change does to time and money, computed by asking the engine again."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.precision import FORMATS
from app.estimates.job_schemas import InferenceJob, TrainingJob, TrainingPlanField
from app.estimates.schemas import Item, PurchaseModel, Supply
from app.foundation.problems import Problem
from app.pricing.money import Money

Option = Mapping[str, Any]
Answer = Callable[[Item], Option | None]
# A change is worth a line from one percent of money or time.
LEAST_SHARE = Decimal("0.01")
# A change that saves this much is more than a remark.
LARGE_SHARE = Decimal("0.10")
NARROWER = {"bf16": ("fp8", "nvfp4"), "fp16": ("fp8", "nvfp4"), "auto": ("fp8", "nvfp4"), "fp8": ("nvfp4",)}
NARROWER_WEIGHTS = {"auto": ("nvfp4", "fp8"), "bf16": ("fp8", "nvfp4"), "fp16": ("fp8", "nvfp4"), "fp8": ("nvfp4",)}
COMMITMENTS = ((12, "reserved for one year"), (36, "reserved for three years"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing done otherwise.

    Parameters
    ----------
    trigger : mapping
        The figures of the present option that suggest it.
    caution : str
        What else has to be true; empty where nothing has.
    """

    code: str
    text: str
    trigger: Mapping[str, Any]
    item: Item
    caution: str = ""


def improvements(snapshot: Snapshot, item: Item, option: Option, answer: Answer) -> list[dict[str, Any]]:
    """Changes that save money or time on the recommended option, most money first.

    Parameters
    ----------
    answer : callable
        Gives the best option of an item, or None where it cannot run or has no price.

    Notes
    -----
    Each change is computed alone: two of them together save less than their sum.
    """
    present = _figures(option)
    rows: dict[str, tuple[Decimal, Decimal, dict[str, Any]]] = {}
    for change in _changes(snapshot, item, option):
        found = answer(change.item)
        if found is None:
            continue
        row = _row(change, present, _figures(found), found)
        kept = rows.get(change.code)
        if row is not None and (kept is None or row[:2] > kept[:2]):
            rows[change.code] = row
    ranked = sorted(rows.values(), key=lambda r: (-r[0], -r[1], r[2]["code"]))
    return [row for _, _, row in ranked]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Net and hours of an option; None where there is no price, or where time is no result."""

    net: Money | None
    hours: Decimal | None


def _figures(option: Option) -> Figures:
    net = (option["cost"].get("net") or {}).get("p50")
    duration = option["performance"].get("duration_hours")
    return Figures(
        net=None if net is None else Money.parse(net["amount"], net["currency"]),
        hours=None if duration is None else Decimal(repr(duration["p50"])),
    )


def _row(
    change: Change, present: Figures, now: Figures, found: Option
) -> tuple[Decimal, Decimal, dict[str, Any]] | None:
    """Money and hours saved, and the advice; None where it saves neither."""
    saved = None if present.net is None or now.net is None else present.net.amount - now.net.amount
    share = None if saved is None or present.net is None or not present.net.amount else saved / present.net.amount
    quicker = None if present.hours is None or now.hours is None else present.hours - now.hours
    faster = None if quicker is None or not present.hours else quicker / present.hours
    saves_money = share is not None and share >= LEAST_SHARE
    saves_time = faster is not None and faster >= LEAST_SHARE and (share is None or share >= -LARGE_SHARE)
    if not (saves_money or saves_time):
        return None
    parts = [] if share is None else [f"{_percent(-share)} cost"]
    parts += [] if faster is None else [f"{_percent(-faster)} time"]
    if share is None:
        parts.append("cost not known")
    currency = None if present.net is None else present.net.currency
    money = None if saved is None or currency is None else Money.settled(-saved, currency).as_json()
    row = {
        "code": change.code,
        "severity": "warning" if share is not None and share >= LARGE_SHARE else "info",
        "message": f"{change.text}: {', '.join(parts)}. {change.caution}".rstrip(),
        "trigger": dict(change.trigger),
        "effect": {
            "money": money,
            "hours": None if quicker is None else float(-quicker),
            "net_after": None if now.net is None else now.net.as_json(),
            "duration_hours_after": found["performance"].get("duration_hours"),
            "option": found["label"],
        },
        "numbers": {
            "cost_share": None if share is None else str(round(-share, 4)),
            "time_share": None if faster is None else str(round(-faster, 4)),
        },
    }
    return saved or Decimal(0), quicker or Decimal(0), row


def _percent(share: Decimal) -> str:
    return f"{float(share) * 100:+.1f} %"


def _changes(snapshot: Snapshot, item: Item, option: Option) -> Iterator[Change]:
    """Everything that could be done otherwise, each as an item of its own."""
    same = _same_machines(item, option)
    if isinstance(item.job, TrainingJob):
        yield from _training(snapshot, item, item.job, option, same)
    else:
        yield from _serving(snapshot, item, item.job, option, same)
    yield from _markets(item, option)


def _same_machines(item: Item, option: Option) -> Supply:
    """The supply narrowed to the option's own offer and size."""
    update: dict[str, Any] = {"accelerators": [option["configuration"]["accelerator"]]}
    if isinstance(item.job, TrainingJob):
        update["accelerator_count"] = option["configuration"]["accelerators"]
    if option["offer"]["id"] is None:
        update |= {"purchase_models": [PurchaseModel(kind="owned")], "offers": None}
    else:
        update |= {"offers": [option["offer"]["id"]]}
    return item.supply.model_copy(update=update)


def _training(snapshot: Snapshot, item: Item, job: TrainingJob, option: Option, same: Supply) -> Iterator[Change]:
    performance, made = option["performance"], option["configuration"]

    def changed(supply: Supply = same, **job_update: Any) -> Item:
        return item.model_copy(update={"job": job.model_copy(update=job_update), "supply": supply})

    for form in _formats(snapshot, made["accelerator"], NARROWER.get(job.precision, ())):
        caution = "Check the loss curve: a narrower format needs its own recipe."
        trigger = {"precision": job.precision, "model_flops_utilization": performance["model_flops_utilization"]}
        yield Change(
            code="precision", text=f"Train in {form}", trigger=trigger, item=changed(precision=form), caution=caution
        )
    yield from _plan(job, option, changed)
    stall = made["data"]["stall_share"]
    if stall > 0.0:
        trigger = {"stall_share": stall, "limited_by": made["data"]["limited_by"]}
        faster = job.data.model_copy(update={"storage": "weka", "gpu_direct_storage": True})
        yield Change(code="faster_storage", text="Read from a parallel file system with GPUDirect Storage",
                     trigger=trigger, item=changed(data=faster))  # fmt: skip
        ready = job.data.model_copy(update={"preprocessing_core_seconds_per_million_tokens": 0.0})
        yield Change(code="prepare_data", text="Tokenise and prepare the data beforehand", trigger=trigger,
                     item=changed(data=ready))  # fmt: skip
    count = made["accelerators"]
    trigger = {"accelerators": count, "time_breakdown": performance["time_breakdown"]}
    sizes = [("larger_fleet", count * 2)] + ([("smaller_fleet", count // 2)] if count % 2 == 0 else [])
    for code, size in sizes:
        supply = same.model_copy(update={"accelerator_count": size})
        yield Change(code=code, text=f"Use {size} accelerators", trigger=trigger, item=changed(supply))


def _plan(job: TrainingJob, option: Option, changed: Callable[..., Item]) -> Iterator[Change]:
    """A pinned plan against a larger micro-batch, fewer stages and the search; a searched plan is the best already."""
    pinned = job.plan
    if pinned == TrainingPlanField():
        return
    plan = option["configuration"]["plan"]
    bubble = {"bubble": option["performance"]["time_breakdown"].get("bubble", 0.0), "plan": dict(plan)}
    if pinned.micro_batch_sequences is not None:
        larger = pinned.model_copy(update={"micro_batch_sequences": pinned.micro_batch_sequences * 2})
        text = f"Use a micro-batch of {larger.micro_batch_sequences} sequences"
        yield Change(code="larger_micro_batch", text=text, trigger=bubble, item=changed(plan=larger))
    if pinned.pipeline is not None and pinned.pipeline % 2 == 0:
        update: dict[str, Any] = {"pipeline": pinned.pipeline // 2, "virtual_pipeline": None}
        if pinned.data is not None:
            update["data"] = pinned.data * 2
        fewer = pinned.model_copy(update=update)
        yield Change(code="fewer_stages", text=f"Use {fewer.pipeline} pipeline stages", trigger=bubble,
                     item=changed(plan=fewer))  # fmt: skip
    yield Change(code="searched_plan", text="Leave the plan to the search", trigger=bubble,
                 item=changed(plan=TrainingPlanField()))  # fmt: skip


def _serving(snapshot: Snapshot, item: Item, job: InferenceJob, option: Option, same: Supply) -> Iterator[Change]:
    made = option["configuration"]
    trigger = {"precision": made.get("precision"), "utilization": option["performance"]["utilization"]}
    for form in _formats(snapshot, made["accelerator"], NARROWER_WEIGHTS.get(job.precision.weights, ())):
        if form == (made.get("precision") or {}).get("weights"):
            continue
        formats = job.precision.model_copy(update={"weights": form, "activations": form, "allow": ()})
        job_now = job.model_copy(update={"precision": formats})
        yield Change(code="precision", text=f"Serve with {form} weights", trigger=trigger,
                     item=item.model_copy(update={"job": job_now, "supply": same}),
                     caution="Check the model's answers in that format.")  # fmt: skip
    if job.availability.autoscaling == "none" and job.traffic.hourly_weights is not None:
        hourly = job.model_copy(update={"availability": job.availability.model_copy(update={"autoscaling": "hourly"})})
        yield Change(code="hourly_scaling", text="Scale replicas by the hour", trigger=trigger,
                     item=item.model_copy(update={"job": hourly, "supply": same}))  # fmt: skip


def _markets(item: Item, option: Option) -> Iterator[Change]:
    """The same machines bought elsewhere or otherwise."""
    offer, made = option["offer"], option["configuration"]
    update: dict[str, Any] = {"accelerators": [made["accelerator"]], "offers": None}
    if isinstance(item.job, TrainingJob):
        update["accelerator_count"] = made["accelerators"]
    bought = PurchaseModel(kind=offer["purchase_model"], term_months=offer.get("term_months"))
    if offer["id"] is not None and (item.supply.regions is not None or item.supply.offers is not None):
        free = {**update, "regions": None, "providers": [offer["provider"]], "purchase_models": [bought]}
        yield Change(code="cheaper_region", text="Run in another region of the provider",
                     trigger={"region": offer["region"]}, item=_supplied(item, free))  # fmt: skip
    if offer["purchase_model"] == "on_demand":
        for months, text in COMMITMENTS:
            committed = {**update, "purchase_models": [PurchaseModel(kind="reserved", term_months=months)]}
            yield Change(code="commitment", text=f"Buy it {text}", trigger={"purchase_model": "on_demand"},
                         item=_supplied(item, committed), caution="The whole term is paid.")  # fmt: skip
        if isinstance(item.job, TrainingJob):
            spot = {**update, "purchase_models": [PurchaseModel(kind="spot")]}
            yield Change(code="spot_with_checkpoints", text="Run on spot capacity with frequent checkpoints",
                         trigger={"purchase_model": "on_demand"}, item=_supplied(item, spot),
                         caution="Hours contain a floor of interruptions; capacity is not assured.")  # fmt: skip


def _supplied(item: Item, update: Mapping[str, Any]) -> Item:
    return item.model_copy(update={"supply": item.supply.model_copy(update=dict(update))})


def _formats(snapshot: Snapshot, accelerator: str, names: tuple[str, ...]) -> Iterator[str]:
    """Formats of the list that the accelerator computes in."""
    entry = snapshot.accelerators.get(accelerator)
    if entry is None or entry.spec is None:
        return
    for name in names:
        if getattr(entry.spec.dense_peaks, FORMATS[name].peak) is not None:
            yield name


def or_none(best: Callable[[], Option | None]) -> Option | None:
    """An option, or None where the changed job is refused: such a change is no advice."""
    try:
        return best()
    except Problem:
        return None
