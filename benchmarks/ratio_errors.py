"""How much of the model's error two predictions share: ``python -m benchmarks.ratio_errors``.

Pairs rows of one source and model and prints the correlation of their log errors by what the two rows have in common.
Every source-and-model group weighs the same. Training errors are those of rows the parameters were not fitted to
(leave-one-pair-out); serving errors are those of the shipped evidence rows.
"""

import itertools
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "benchmarks" / "data"
EVIDENCE = ROOT / "app" / "catalog" / "data" / "calibration" / "serving_evidence.jsonl"


class Row(NamedTuple):
    """One measured row and its log error."""

    part: str
    precision: str
    accelerators: int
    error: float


Groups = Mapping[tuple[object, ...], list[Row]]
SHARED: Mapping[str, Callable[[Row, Row], bool]] = {
    "two parts, one format": lambda a, b: a.part != b.part and a.precision == b.precision,
    "two parts": lambda a, b: a.part != b.part,
    "one part, two formats": lambda a, b: a.part == b.part and a.precision != b.precision,
    "one part and format, two sizes": lambda a, b: (
        (a.part, a.precision) == (b.part, b.precision) and a.accelerators != b.accelerators
    ),
}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def training_groups() -> Groups:
    """Training rows by source, model and task."""
    rows = {row["id"]: row for row in _lines(DATA / "training_calibration.jsonl")}
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for fold in _lines(DATA / "training_cross_validation.jsonl"):
        row, error = rows.get(fold["id"]), fold.get("pair")
        if row is not None and error is not None:
            key = (row["source"]["title"], row["model"]["family_key"], row["task"])
            found[key].append(Row(row["gpu"], row["precision"], row["gpus"], error))
    return found


def serving_groups() -> Groups:
    """Serving rows by source, engine, model and load."""
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in _lines(EVIDENCE):
        if row["metric"] == "rate" and row.get("predicted"):
            key = tuple(row[name] for name in ("source", "engine", "model", "isl", "osl", "concurrency"))
            error = math.log(row["measured"] / row["predicted"])
            found[key].append(Row(row["accelerator"], row["precision"], row["accelerators"], error))
    return found


def correlation(groups: Groups, shares: Callable[[Row, Row], bool]) -> tuple[int, int, float] | None:
    """Pairs, groups and the correlation of their errors; None without pairs."""
    pairs, weights, used = [], [], 0
    for rows in groups.values():
        found = [(a.error, b.error) for a, b in itertools.combinations(rows, 2) if shares(a, b)]
        if not found:
            continue
        pairs.extend(found)
        weights.extend([1.0 / len(found)] * len(found))
        used += 1
    if not pairs:
        return None
    both = np.array(pairs)
    both, mass = np.concatenate([both, both[:, ::-1]]), np.array(weights * 2)
    middle = np.average(both, axis=0, weights=mass)
    apart = both - middle
    covariance = np.average(apart[:, 0] * apart[:, 1], weights=mass)
    variance = np.average(apart[:, 0] ** 2, weights=mass)
    return len(pairs), used, float(covariance / variance)


def main() -> None:
    """Print the table."""
    for name, groups in (("training", training_groups()), ("serving", serving_groups())):
        for shared, test in SHARED.items():
            found = correlation(groups, test)
            if found is not None:
                print(f"{name:9} {shared:32} pairs {found[0]:5} groups {found[1]:4} correlation {found[2]:+.2f}")


if __name__ == "__main__":
    main()
