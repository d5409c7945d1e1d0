"""Advice on an option: a code, a severity, one sentence, and the numbers that triggered it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from app.catalog.offers import Offer
from app.catalog.snapshot import Snapshot
from app.estimates.bill import Run
from app.estimates.costs import Cost
from app.estimates.schemas import Item
from app.estimates.terms import PricedTerms
from app.pricing.money import CONTEXT, ZERO, plain

# Shares of a step above which a cause is worth a sentence; below a tenth other causes matter more.
WORTH_SAYING = 0.10
SERIOUS = 0.30
# An accelerator link that outruns the network by more than this makes every exchange between servers the bottleneck;
# rail-optimised H100 servers have 9 (450 over 50 GB/s), as NVIDIA builds them.
LINK_TO_NETWORK = 10.0
COMMUNICATION = ("tensor", "pipeline_p2p", "expert_all_to_all", "data_parallel", "context", "pipeline p2p")
TIGHT_HEADROOM = 0.05


def advise(
    snapshot: Snapshot, item: Item, run: Run, offer: Offer | None, cost: Cost | None, terms: PricedTerms
) -> list[dict[str, Any]]:
    """Everything worth saying about an option, most severe first."""
    rows = [
        *_storage(run),
        *_network(snapshot, run),
        *_software(snapshot, run),
        *_evidence_class(run),
        *_memory(run),
        *_saturation(run),
        *_campaign(item, run),
        *(_bill(offer, cost, terms) if cost else ()),
    ]
    order = {"critical": 0, "warning": 1, "info": 2}
    return sorted(rows, key=lambda r: (order[r["severity"]], r["code"]))


def _advice(code: str, severity: str, message: str, numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {"code": code, "severity": severity, "message": message, "numbers": dict(numbers)}


def _storage(run: Run) -> list[dict[str, Any]]:
    """Storage must keep up (cases: deployment pitfall "storage")."""
    data = run.get("data")
    if data is None:
        return []
    needed = run["required_read_bytes_per_s"]
    numbers = {
        "required_storage_read_bytes_per_s": needed,
        "required_storage_write_bytes_per_s": run["checkpoint"]["required_write_bytes_per_s"],
        "checkpoint_bytes": run["checkpoint"]["bytes"],
        "stall_share": data["stall_share"],
        "required_cores": data["required_cores"],
    }
    message = (
        f"Storage must read {needed:.3g} B/s and write {numbers['required_storage_write_bytes_per_s']:.3g} B/s for "
        "checkpoints; a parallel file system with GPUDirect Storage (WEKA, Storage Scale, Lustre) keeps the path short."
    )
    stall = data["stall_share"]
    if stall > 0.0:
        severity = "critical" if stall >= SERIOUS else "warning"
        message = f"Accelerators wait for data {stall:.0%} of the time, limited by {data['limited_by']}. {message}"
        return [_advice("storage", severity, message, numbers)]
    return [_advice("storage", "info", message, numbers)]


def _network(snapshot: Snapshot, run: Run) -> list[dict[str, Any]]:
    """Bandwidth between servers must match the scale-up link (cases: deployment pitfall "network")."""
    fabric, entry = run["fabric"], snapshot.accelerators.get(run["accelerator"])
    if run["nodes"] < 2 or fabric is None or entry is None or entry.spec is None:
        return []
    rate = fabric["bytes_per_s_per_accelerator"]
    link = entry.spec.scale_up_bytes_per_s_per_accelerator
    shares = run["performance"]["time_breakdown"]
    exposed = sum(share for name, share in shares.items() if name in COMMUNICATION)
    numbers = {
        "scale_out_bytes_per_s_per_accelerator": rate,
        "scale_up_bytes_per_s_per_accelerator": link,
        "communication_share": round(exposed, 4),
        "oversubscription": fabric["oversubscription"],
    }
    poor = (link is not None and link / rate > LINK_TO_NETWORK) or exposed > SERIOUS
    severity = "warning" if poor or exposed > WORTH_SAYING else "info"
    message = (
        f"Servers are joined at {rate:.3g} B/s per accelerator; {exposed:.0%} of a step is communication that is not "
        "hidden. Plan InfiniBand or RoCE without oversubscription and one rail per accelerator."
    )
    return [_advice("network", severity, message, numbers)]


def _software(snapshot: Snapshot, run: Run) -> list[dict[str, Any]]:
    """New hardware needs new software (cases: deployment pitfall "software")."""
    entry = snapshot.accelerators.get(run["accelerator"])
    minima = {s.component: s.version for s in snapshot.software if s.architecture == run["architecture"] and s.version}
    if entry is not None and entry.min_cuda_toolkit:
        minima["cuda"] = entry.min_cuda_toolkit
    if not minima:
        return []
    shown = ", ".join(f"{name} {version}" for name, version in sorted(minima.items()))
    message = f"{run['architecture']} needs at least {shown}, and containers built with them."
    return [_advice("software", "info", message, {"minimum_software_versions": minima})]


def _evidence_class(run: Run) -> list[dict[str, Any]]:
    if run["evidence_class"] == "calibrated":
        return []
    basis = run["evidence_class"]
    message = (
        f"No public measurement of this hardware and precision was calibrated on ({basis}); the interval is wider."
    )
    return [_advice("evidence", "warning" if basis == "datasheet" else "info", message, {"basis": basis})]


def _memory(run: Run) -> list[dict[str, Any]]:
    memory = run["performance"]["memory_breakdown_bytes"]
    headroom, everything = memory.get("headroom", 0.0), sum(memory.values())
    if everything <= 0 or headroom / everything >= TIGHT_HEADROOM:
        return []
    message = f"Only {headroom / everything:.1%} of the accelerator's memory is free; expect out-of-memory at peaks."
    return [_advice("memory", "warning", message, {"headroom_bytes": headroom})]


def _saturation(run: Run) -> list[dict[str, Any]]:
    if not run.get("saturated"):
        if run.get("objectives_met", True):
            return []
        message = "This fleet does not hold every latency objective; add replicas or relax the objective."
        return [_advice("slo_missed", "critical", message, {"utilization": run["performance"]["utilization"]})]
    performance = run["performance"]
    message = "The load is more than this fleet serves within the objectives; requests would queue without end."
    numbers = {
        "utilization": performance["utilization"],
        "replicas": performance["replicas"],
        "requests_per_second_served": performance["requests_per_second"],
    }
    return [_advice("saturated", "critical", message, numbers)]


def _campaign(item: Item, run: Run) -> list[dict[str, Any]]:
    if run["kind"] != "training":
        return []
    rows = []
    asked = item.job.campaign.concurrent_runs if item.job.kind == "training" else 1
    if run["concurrent_runs"] < asked:
        message = (
            f"Up to {asked} runs at a time were asked for; the campaign ends first with {run['concurrent_runs']} at a "
            f"time, each on {run['accelerators_per_run']} accelerators."
        )
        numbers = {"asked": asked, "concurrent_runs": run["concurrent_runs"]}
        rows.append(_advice("concurrency_reduced", "info", message, numbers))
    if run["spare_nodes"] > 0:
        message = f"Keep {run['spare_nodes']} spare node(s) beside the fleet; they are not in the bill."
        rows.append(_advice("spare_nodes", "info", message, {"spare_nodes": run["spare_nodes"]}))
    return rows


def _bill(offer: Offer | None, cost: Cost, terms: PricedTerms) -> list[dict[str, Any]]:
    rows = []
    stale = [line for line in cost.lines if line.evidence.get("stale")]
    if stale:
        ages = [a for line in stale if isinstance(a := line.evidence.get("age_days"), int)]
        message = "The price is older than its limit or of unknown date; confirm it with the provider before signing."
        rows.append(_advice("stale_price", "warning", message, {"age_days": max(ages) if ages else None}))
    if offer is not None and offer.purchase_model == "spot":
        message = "Spot capacity can be reclaimed at any time; hours contain a floor of interruptions, price can move."
        rows.append(_advice("spot", "warning", message, {}))
    if offer is not None and offer.indicative:
        rows.append(_advice("indicative", "warning", "A market indication, not a price a provider signs.", {}))
    small = [
        line for line in cost.lines if not line.net.amount and line.quantity * line.waterfall.net_unit_price.amount
    ]
    if small:
        shown = {line.id: plain(line.quantity * line.waterfall.net_unit_price.amount) for line in small}
        message = (
            f"{len(small)} line(s) come to less than half of the smallest unit of {terms.currency} and round to zero; "
            "they are not free."
        )
        rows.append(_advice("rounds_to_zero", "info", message, {"exact": shown, "currency": terms.currency}))
    if terms.tax_region is not None and not terms.taxes:
        known = sorted({rule.jurisdiction for rule in terms.snapshot.taxes})
        message = (
            f"The catalog holds no tax rule for {terms.tax_region} on {terms.as_of}: the tax is not determined, and "
            f"the total is before tax. Known regions: {', '.join(known)}."
        )
        rows.append(_advice("tax_undetermined", "warning", message, {"tax_region": terms.tax_region, "known": known}))
    unused = sum((line.net.amount for line in cost.lines if line.kind == "commitment"), ZERO)
    if unused and cost.totals is not None and cost.totals.net.amount:
        share = CONTEXT.divide(unused, cost.totals.net.amount)
        message = (
            f"{plain(round(share * 100, 1))} % of the bill are committed hours this job does not use; with other work "
            'to fill them, ask with purchase model {"bill": "hours"}.'
        )
        numbers = {"unused": terms.settled(unused).as_json(), "share": plain(round(share, 4))}
        rows.append(_advice("commitment_unused", "warning", message, numbers))
    rows.extend(_advice(f"{e['kind']}_excluded", "info", f"{e['reason']}.", dict(e)) for e in cost.excluded)
    rounding = sum((line.net.amount for line in cost.lines if line.kind == "unit_rounding"), Decimal(0))
    if rounding:
        message = "The offer is sold in larger units than the plan needs; the difference is its own line."
        rows.append(_advice("unit_rounding", "info", message, {"net": terms.settled(rounding).as_json()}))
    return rows
