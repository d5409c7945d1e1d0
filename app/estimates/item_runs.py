"""What can run, for one item: asked of the engine once, remembered per catalog revision and job."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.outcome import Infeasible
from app.estimates.api_prices import api_prices
from app.estimates.bill import Run
from app.estimates.errors import infeasible, infeasible_everywhere
from app.estimates.remembered import Remembered
from app.estimates.runs import Found
from app.estimates.schemas import Item
from app.estimates.serving_runs import serving_runs
from app.estimates.supply import Selection
from app.estimates.training_runs import training_runs

# Prices, terms and budgets change more often than physics; an item's runs are a few hundred kilobytes at most.
REMEMBERED = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRuns:
    """Every run of an item, whole only where one is shown."""

    item_id: str
    api_prices: tuple[Mapping[str, Any], ...]
    found: tuple[Found, ...]
    refused: Mapping[str, Infeasible]
    _by_key: dict[str, Found] = field(default_factory=dict)
    _whole: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_key.update({str(run.light["key"]): run for run in self.found})

    def complete(self, run: Run) -> Run:
        """The whole run behind a light one."""
        key = run["key"]
        if key not in self._whole:
            self._whole[key] = self._by_key[key].complete()
        return self._whole[key]

    def outputs(self) -> dict[str, Any]:
        """All runs as ranking sees them, and the refusals."""
        return {
            "id": self.item_id,
            "runs": [run.light for run in self.found],
            "refused": self.refused_json(),
            "api_prices": [dict(row) for row in self.api_prices],
        }

    def kept(self, keys: Collection[str]) -> dict[str, Any]:
        """The runs with these keys in full: what is stored with a quote and priced again from there."""
        return {
            "id": self.item_id,
            "runs": [self.complete(run.light) for run in self.found if run.light["key"] in keys],
            "refused": self.refused_json(),
            "api_prices": [dict(row) for row in self.api_prices],
            "considered": len(self.found),
        }

    def refused_json(self) -> list[dict[str, Any]]:
        """Machines that cannot run the job, with the rule and the nearest values that would do."""
        return [
            {"hardware": key, "rule": r.rule, "message": r.message, "nearest": dict(r.nearest)}
            for key, r in sorted(self.refused.items())
        ]


_remembered: Remembered[tuple[str, str], ItemRuns] = Remembered(REMEMBERED)


def run_item(snapshot: Snapshot, item: Item, selection: Selection, at: str) -> ItemRuns:
    """Runs of an item on every machine of its supply.

    Raises
    ------
    Problem
        ``infeasible-spec`` where none can run it, or none in time.
    """
    key = (snapshot.content_sha256, item.model_dump_json())
    known = _remembered.get(key)
    if known is not None:
        return known
    run = training_runs if item.job.kind == "training" else serving_runs
    found, refused = run(snapshot, item, selection, at)
    if not found:
        raise infeasible_everywhere(f"{at}/job", refused)
    _check_deadline(item, found, at)
    prices = api_prices(item.job.model.ref) if item.job.kind == "inference" else []
    answer = ItemRuns(item_id=item.id, api_prices=tuple(prices), found=tuple(found), refused=refused)
    return _remembered.put(key, answer)


def _check_deadline(item: Item, found: list[Found], at: str) -> None:
    deadline = item.constraints.deadline_hours
    if deadline is None or item.job.kind != "training":
        return
    fastest = min((run.light for run in found), key=lambda r: (r["duration_hours"]["p50"], r["key"]))
    hours = fastest["duration_hours"]["p50"]
    if hours > deadline:
        raise infeasible(
            f"{at}/constraints/deadline_hours",
            "deadline_hours",
            f"the fastest option found takes {hours:g} h ({fastest['accelerators']} x {fastest['accelerator']}), "
            f"more than the {deadline:g} h allowed",
            {f"{at}/constraints/deadline_hours": hours},
        )
