"""Public measurements nearest to an option, so that a reader can judge the prediction against reality."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.snapshot import Snapshot
from app.estimates.bill import Run
from app.estimates.schemas import Item

SHOWN = 3
KINDS = {"training": "training", "inference": "serving"}


def nearest_measurements(snapshot: Snapshot, item: Item, run: Run) -> list[dict[str, Any]]:
    """Rows of the same accelerator nearest in model size, cluster size and precision; empty where nothing is public."""
    del item
    rows = snapshot.evidence.get(KINDS[run["kind"]], ())
    same = _same_accelerator(snapshot, rows, run["accelerator"])
    ranked = sorted(same, key=lambda row: (_distance(row, run), str(row.get("id", ""))))
    return [_shown(row, run) for row in ranked[:SHOWN]]


def _same_accelerator(
    snapshot: Snapshot, rows: Sequence[Mapping[str, Any]], accelerator: str
) -> list[Mapping[str, Any]]:
    aliases = snapshot.accelerator_aliases
    return [row for row in rows if accelerator in (row.get("accelerator_id"), aliases.get(str(row.get("gpu", ""))))]


def _distance(row: Mapping[str, Any], run: Run) -> float:
    count = row.get("gpus") or row.get("num_gpus") or row.get("accelerators")
    apart = 0.0
    if isinstance(count, int | float) and count > 0:
        apart += abs(math.log2(count / run["accelerators"]))
    precision = str(row.get("precision", "")).lower()
    asked = run["precision"]["weights"] if "precision" in run else _assumed(run, "precision")
    return apart + (0.0 if asked and asked in precision else 1.0)


def _assumed(run: Run, name: str) -> str:
    return next((str(row["value"]) for row in run["assumptions"] if row["id"] == name), "")


def _shown(row: Mapping[str, Any], run: Run) -> dict[str, Any]:
    keys = ("id", "model", "gpu", "gpus", "precision", "source", "date", "metric", "measured", "predicted")
    shown = {key: row[key] for key in keys if key in row}
    return {**shown, "accelerator": run["accelerator"]}
