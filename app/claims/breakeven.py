"""Where one option overtakes another: by price, by fleet size; and what a campaign costs in failures and reruns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.catalog.snapshot import Snapshot
from app.estimates import service as estimates
from app.estimates.schemas import Item
from app.foundation.problems import Problem

Option = Mapping[str, Any]
Run = Mapping[str, Any]
MILLION = 1e6
# Fleets tried around the one that perfect scaling would need.
AROUND = (0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignMoney:
    """A campaign in experiments and money.

    Parameters
    ----------
    experiments_per_week, experiments_per_million : float or None
        The latter per million of the currency.
    failures, reruns : float [money]
        Part of the net that pays for failures, restarts and checkpoints, and for expected reruns.
    """

    experiments_per_week: float
    experiments_per_million: float | None
    failures: float | None
    reruns: float | None
    currency: str | None

    def as_json(self) -> dict[str, Any]:
        """The shape an answer shows."""
        return {
            "experiments_per_week": self.experiments_per_week,
            "experiments_per_million": self.experiments_per_million,
            "cost_of_failures": _money(self.failures, self.currency),
            "cost_of_reruns": _money(self.reruns, self.currency),
        }


def _money(amount: float | None, currency: str | None) -> dict[str, str] | None:
    return None if amount is None or currency is None else {"amount": f"{amount:.2f}", "currency": currency}


def campaign_money(option: Option, run: Run) -> CampaignMoney | None:
    """What a training campaign yields for its money; None for a service."""
    if run["kind"] != "training":
        return None
    weekly = float(run["performance"]["iterations_per_week"])
    net = option["cost"].get("net")
    if not net or net.get("p50") is None:
        return CampaignMoney(
            experiments_per_week=weekly, experiments_per_million=None, failures=None, reruns=None, currency=None
        )
    total = float(net["p50"]["amount"])
    hours = run["hours_split"]
    machine = sum(
        float(line["net"]["amount"]) for line in option["cost"]["lines"] if line["kind"] not in ("storage", "egress")
    )
    per_hour = machine / sum(hours.values())
    return CampaignMoney(
        experiments_per_week=weekly,
        experiments_per_million=float(run["experiments"]) / total * MILLION if total > 0.0 else None,
        failures=per_hour * (hours.get("failures", 0.0) + hours.get("checkpoints", 0.0)),
        reruns=per_hour * hours.get("reruns", 0.0),
        currency=net["p50"]["currency"],
    )


def breakeven(
    snapshot: Snapshot, item: Item, option: Option, run: Run, first_option: Option, first_run: Run
) -> dict[str, Any]:
    """The price below which the option is cheaper than the first, and the fleet with which it is as fast."""
    return {
        "price_per_accelerator_hour": _price(option, first_option),
        "fleet": _fleet(snapshot, item, run, first_run),
    }


def _price(option: Option, first: Option) -> dict[str, Any] | None:
    """Money goes with the price of an accelerator-hour, so the even price is the present one times the cost ratio."""
    own, other = (o["cost"].get("net") or {} for o in (option, first))
    hourly = option["unit_costs"].get("per_accelerator_hour")
    if hourly is None or own.get("p50") is None or other.get("p50") is None:
        return None
    mine, theirs = float(own["p50"]["amount"]), float(other["p50"]["amount"])
    if mine <= 0.0:
        return None
    even = float(hourly["amount"]) * theirs / mine
    shown = f"{even:.2f} {hourly['currency']}"
    return {
        "amount": f"{even:.4f}",
        "currency": hourly["currency"],
        "now": hourly,
        "wins_now": mine < theirs,
        "text": {
            "en": f"It wins below {shown} per accelerator-hour, everything included.",
            "zh-CN": f"每卡时总价低于 {shown} 时更便宜。",
        },
    }


def _fleet(snapshot: Snapshot, item: Item, run: Run, first: Run) -> dict[str, Any] | None:
    """The smallest fleet that is done no later than the first option; None where none of those tried is."""
    if run["kind"] != "training" or first["kind"] != "training":
        return None
    wanted, own = first["duration_hours"]["p50"], int(run["accelerators"])
    node = max(1, own // int(run["nodes"]))
    needed = own * run["duration_hours"]["p50"] / wanted / node
    for nodes in sorted({max(1, math.ceil(needed * scale)) for scale in AROUND}):
        size = nodes * node
        hours = run["duration_hours"]["p50"] if size == own else _hours(snapshot, item, size)
        if hours is not None and hours <= wanted:
            return {
                "accelerators": size,
                "duration_hours": hours,
                "first_accelerators": first["accelerators"],
                "first_duration_hours": wanted,
            }
    return None


def _hours(snapshot: Snapshot, item: Item, size: int) -> float | None:
    sized = item.model_copy(update={"supply": item.supply.model_copy(update={"accelerator_count": size})})
    try:
        return estimates.physical(snapshot, sized, "/job").fastest_hours
    except Problem:
        return None
