"""Public measurements nearest to an option, so that a reader can judge the prediction against reality."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from app.catalog.snapshot import Snapshot
from app.estimates.bill import Run
from app.estimates.remembered import Remembered
from app.estimates.schemas import Item

SHOWN = 3
ROOM_OF_KIND = {"training": "training", "inference": "serving"}
KEPT_REVISIONS = 8
# Weight of another model or another precision against a doubling of accelerators, concurrency or length (1.0).
OTHER_MODEL, OTHER_PRECISION = 2.0, 1.5
Row = Mapping[str, Any]


def nearest_measurements(snapshot: Snapshot, item: Item, run: Run) -> list[dict[str, Any]]:
    """Measured rows of the same accelerator, nearest in model, precision and size; empty where nothing is public."""
    rows = _by_accelerator(snapshot, ROOM_OF_KIND[run["kind"]]).get(run["accelerator"], ())
    ranked = sorted(rows, key=lambda row: (_distance(row, item, run), str(row["id"])))
    return [_shown(row) for row in ranked[:SHOWN]]


Index = dict[str, tuple[Row, ...]]
_indexed: Remembered[tuple[str, str], Index] = Remembered(2 * KEPT_REVISIONS)


def _by_accelerator(snapshot: Snapshot, kind: str) -> Index:
    key = (snapshot.content_sha256, kind)
    known = _indexed.get(key)
    if known is not None:
        return known
    found: dict[str, list[Row]] = {}
    for row in snapshot.evidence.get(kind, ()):
        found.setdefault(str(row["accelerator"]), []).append(row)
    return _indexed.put(key, {name: tuple(rows) for name, rows in found.items()})


def _distance(row: Row, item: Item, run: Run) -> float:
    job = item.job
    apart = 0.0 if job.model.ref is not None and row["model"] == job.model.ref else OTHER_MODEL
    asked = run["precision"]["weights"] if "precision" in run else _assumed(run)
    apart += 0.0 if asked == row["precision"] else OTHER_PRECISION
    if job.kind == "training":
        apart += _doublings(row["accelerators"], run["accelerators"])
        return apart + _doublings(row.get("sequence_length"), job.sequence_length)
    apart += _doublings(row["accelerators"], run["fleet"]["accelerators_per_replica"])
    apart += _doublings(row.get("isl"), job.traffic.input_tokens.mean_tokens)
    apart += _doublings(row.get("osl"), job.traffic.output_tokens.mean_tokens)
    return apart + _doublings(row.get("concurrency"), run["performance"]["concurrency_per_replica"])


@lru_cache(maxsize=65_536)
def _doublings(one: float | None, other: float | None) -> float:
    """Powers of two between two sizes; one where a size is not known."""
    return abs(math.log2(one / other)) if one and other else 1.0


def _assumed(run: Run) -> str:
    return next((str(row["value"]) for row in run["assumptions"] if row["id"] == "precision"), "")


def _shown(row: Row) -> dict[str, Any]:
    source = row.get("source") or f"{row.get('site')} {row.get('path')} ({row.get('version')})"
    keys = (
        "id",
        "model",
        "accelerators",
        "precision",
        "task",
        "sequence_length",
        "engine",
        "isl",
        "osl",
        "concurrency",
    )
    return {
        **{key: row[key] for key in keys if row.get(key) is not None},
        "metric": row.get("metric") or row.get("unit"),
        "measured": row["measured"],
        "predicted": row["predicted"],
        "source": source,
    }
