"""Under which condition a claim would hold: a fixed search over what a job leaves free, by one or two changes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.catalog.snapshot import Snapshot
from app.claims.judging import Asked, Prediction, predict
from app.claims.metrics import METRICS
from app.claims.prediction import ratio_band
from app.claims.readings import Side, World
from app.claims.reasons import Words, sentence
from app.claims.specifications import asked_precision, specification_value
from app.claims.verdict import holds
from app.engine.outcome import Band
from app.engine.precision import FORMATS
from app.estimates.job_schemas import DataField, InferenceJob, TrainingJob
from app.estimates.schemas import Network, Supply
from app.foundation.problems import Problem

# A trial is one or two engine answers of about five milliseconds; a claim answers within a tenth of a second.
MOST_TRIALS = 8
# Network rate per accelerator of the fastest servers sold: 800 Gbit/s [byte/s].
NETWORKS = (100e9,)
# Cluster sizes tried around the stated one.
SIZES = (0.25, 4.0)
# Sizes tried where the job does not fit as stated.
GROWTH = (2, 4, 8, 16, 32, 64, 128)
LOADS = (4.0, 16.0, 0.25)
TRAINING_FORMATS = ("fp8", "nvfp4", "bf16")
SERVING_FORMATS = ("nvfp4", "fp8", "int8", "bf16")
Change = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What has to change for a claim to hold, and what is then predicted."""

    changes: Change
    words: Words
    band: Band | None

    def as_json(self) -> dict[str, Any]:
        """The shape an answer shows."""
        band = self.band
        predicted = None if band is None else {"p10": band.p10, "p50": band.p50, "p90": band.p90}
        return {"changes": dict(self.changes), "predicted": predicted, "text": self.words}


def find_condition(world: World, asked: Asked, found: Prediction) -> Condition | None:
    """The first change under which the claim holds; None where none of those tried helps."""
    if asked.metric.source == "specification":
        return _other_part(world.snapshot, asked, found)
    if asked.metric.source == "money":
        return _price(asked, found)
    if asked.candidate is None or asked.candidate.job is None or asked.candidate.supply is None:
        return None
    for trial, changes in enumerate(_changes(world.snapshot, asked)):
        if trial >= MOST_TRIALS:
            break
        try:
            now = predict(world, _changed(asked, changes))
        except Problem:
            continue
        if now.judged is not None and holds(now.judged):
            return Condition(changes=changes, words=_words(changes), band=now.band)
    return None


def _changes(snapshot: Snapshot, asked: Asked) -> Iterator[Change]:
    """Single changes first, then a number format with each of the others."""
    candidate = asked.candidate
    assert candidate is not None
    assert candidate.supply is not None
    formats = [{"precision": f} for f in _formats(snapshot, candidate)]
    others = list(_others(asked, candidate))
    yield from formats
    yield from others
    for form in formats[:1]:
        for other in others:
            yield {**form, **other}


def _formats(snapshot: Snapshot, side: Side) -> list[str]:
    """Formats the candidate computes in, other than the job's own."""
    supply, job = side.supply, side.job
    assert supply is not None
    entries = [snapshot.accelerators.get(name) for name in supply.accelerators or ()]
    specs = [entry.spec for entry in entries if entry is not None and entry.spec is not None]
    names = TRAINING_FORMATS if isinstance(job, TrainingJob) else SERVING_FORMATS
    own = asked_precision(side, None)
    return [
        name
        for name in names
        if name != own and any(getattr(s.dense_peaks, FORMATS[name].peak) is not None for s in specs)
    ]


def _others(asked: Asked, side: Side) -> Iterator[Change]:
    job, supply = side.job, side.supply
    assert supply is not None
    if isinstance(job, InferenceJob):
        if job.traffic.concurrency is not None:
            yield from ({"concurrency": max(1.0, job.traffic.concurrency * scale)} for scale in LOADS)
        return
    assert isinstance(job, TrainingJob)
    count = supply.accelerator_count
    if asked.metric.source == "feasible":
        if count is not None:
            yield from ({"accelerator_count": count * growth} for growth in GROWTH)
        yield {"method": "qlora"}
        return
    if job.data.storage is not None:
        yield {"storage": "weka", "gpu_direct_storage": True}
        yield {"preprocessing_core_seconds_per_million_tokens": 0.0}
    if count is not None:
        yield from ({"accelerator_count": int(count * scale)} for scale in SIZES if count * scale >= 1)
    yield from ({"network_bytes_per_s_per_accelerator": rate} for rate in NETWORKS)


def _changed(asked: Asked, changes: Change) -> Asked:
    """The claim under a change: the size changes on both sides, everything else on the candidate."""
    candidate, baseline = asked.candidate, asked.baseline
    assert candidate is not None
    count = changes.get("accelerator_count")
    if count is not None and baseline is not None and baseline.supply is not None:
        baseline = replace(baseline, supply=baseline.supply.model_copy(update={"accelerator_count": count}))
    job, supply = candidate.job, candidate.supply
    assert job is not None
    assert supply is not None
    candidate = replace(candidate, job=_job(job, changes), supply=_supply(supply, changes))
    return replace(asked, candidate=candidate, baseline=baseline)


def _supply(supply: Supply, changes: Change) -> Supply:
    update: dict[str, Any] = {}
    if "accelerator_count" in changes:
        update["accelerator_count"] = changes["accelerator_count"]
    if "network_bytes_per_s_per_accelerator" in changes:
        rate = changes["network_bytes_per_s_per_accelerator"]
        update["network"] = Network(kind="infiniband", bytes_per_s_per_accelerator=rate)
    return supply.model_copy(update=update)


def _job(job: TrainingJob | InferenceJob, changes: Change) -> TrainingJob | InferenceJob:
    if isinstance(job, InferenceJob):
        if "precision" in changes:
            form = changes["precision"]
            formats = job.precision.model_copy(update={"weights": form, "activations": form, "allow": ()})
            job = job.model_copy(update={"precision": formats})
        if "concurrency" in changes:
            load = job.traffic.model_copy(update={"concurrency": changes["concurrency"]})
            job = job.model_copy(update={"traffic": load})
        return job
    update: dict[str, Any] = {key: changes[key] for key in ("precision", "method") if key in changes}
    data = {key: changes[key] for key in DataField.model_fields if key in changes}
    if data:
        update["data"] = job.data.model_copy(update=data)
    return job.model_copy(update=update)


_LABELS: Mapping[str, tuple[str, str]] = {
    "precision": ("{} on the candidate", "候选方案采用 {}"),
    "accelerator_count": ("{} accelerators", "{} 块加速器"),
    "network_bytes_per_s_per_accelerator": ("{} Gbit/s of network per accelerator", "每块加速器 {} Gbit/s 网络"),
    "storage": ("storage on {}", "存储采用 {}"),
    "gpu_direct_storage": ("GPUDirect Storage", "GPUDirect Storage"),
    "preprocessing_core_seconds_per_million_tokens": ("data prepared beforehand", "数据预先处理完毕"),
    "concurrency": ("{} concurrent requests", "{} 个并发请求"),
    "method": ("method {}", "采用 {} 方法"),
    "accelerator": ("{} as the candidate", "候选为 {}"),
}


def _words(changes: Change) -> Words:
    en, zh = [], []
    for key, value in changes.items():
        shown = value * 8 / 1e9 if key == "network_bytes_per_s_per_accelerator" else value
        text = f"{shown:g}" if isinstance(shown, int | float) and not isinstance(shown, bool) else str(shown)
        label_en, label_zh = _LABELS[key]
        en.append(label_en.format(text))
        zh.append(label_zh.format(text))
    return sentence(f"It would hold with {' and '.join(en)}", f"在以下条件下成立：{'，'.join(zh)}")


def _other_part(snapshot: Snapshot, asked: Asked, found: Prediction) -> Condition | None:
    """The part of the same vendor, closest in generation, whose specification would make the claim true."""
    side, base = asked.candidate, found.baseline
    if side is None or side.supply is None or asked.metric.id not in METRICS:
        return None
    precision = asked_precision(side, asked.field.precision)
    own = snapshot.accelerators[(side.supply.accelerators or [""])[0]]
    trials = []
    for entry in snapshot.accelerators.values():
        value = specification_value(entry, asked.metric, precision)
        if entry.id == own.id or entry.vendor != own.vendor or value is None:
            continue
        apart = (entry.architecture != own.architecture, entry.id)
        trials.append((apart, entry, value))
    from_base = None if base is None or base.figure is None else base.figure.value.p50
    for _, entry, value in sorted(trials, key=lambda t: t[0]):
        shown = value if from_base is None else value / from_base
        if asked.relation == "percent_change":
            shown = 100.0 * (shown - 1.0)
        low, high = asked.claimed.low, asked.claimed.high
        if (low is None or shown >= low) and (high is None or shown <= high):
            changes = {"accelerator": entry.id}
            return Condition(changes=changes, words=_words(changes), band=Band(p10=shown, p50=shown, p90=shown))
    return None


def _price(asked: Asked, found: Prediction) -> Condition | None:
    """The price at which a claim about money would hold: money goes with the price of an accelerator-hour."""
    candidate, high = found.candidate, asked.claimed.high
    if high is None or candidate is None or candidate.option is None or candidate.figure is None:
        return None
    top, limit = candidate.figure.value.p90, high
    if asked.relation != "absolute":
        if found.baseline is None or found.baseline.figure is None:
            return None
        top = ratio_band(candidate.figure, found.baseline.figure).p90
        limit = high if asked.relation == "ratio" else 1.0 + high / 100.0
    hourly = candidate.option["unit_costs"].get("per_accelerator_hour")
    if hourly is None or limit <= 0.0 or top <= limit:
        return None
    price = float(hourly["amount"]) * limit / top
    currency = hourly["currency"]
    words = sentence(
        f"It would hold with the candidate at {price:.2f} {currency} per accelerator-hour or less "
        f"(now {float(hourly['amount']):.2f}), everything included",
        f"候选方案每卡时总价不高于 {price:.2f} {currency}（现为 {float(hourly['amount']):.2f}）时成立",
    )
    changes = {"price_per_accelerator_hour": {"amount": f"{price:.4f}", "currency": currency}}
    return Condition(changes=changes, words=words, band=None)
