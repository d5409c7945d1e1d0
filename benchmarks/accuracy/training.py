"""Training rows: predicted throughput and hours against what was measured."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app.catalog.shipped import read_data
from app.engine.training.calibration import TrainingCalibration
from benchmarks.training.predict import Prediction, predict
from benchmarks.training.rows import read_rows, readable_rows
from benchmarks.training.standing import standing


def run(file: Path, json_out: Path | None) -> int:
    """Predict every row of ``file``, print the tables, and write one element per row and metric."""
    calibration = TrainingCalibration.from_mapping(read_data("calibration/training.json"))
    raw = read_rows(file)
    rows, refused = readable_rows(raw)
    figures = [figure for row in rows for figure in predict(row, calibration)]
    unreadable = [_unreadable(item, refused) for item in raw if str(item.get("id")) in refused]
    if json_out is not None:
        elements = [figure.element() for figure in figures] + unreadable
        json_out.write_text(json.dumps(elements, indent=1) + "\n", encoding="utf-8")
    print("\n".join(report(len(raw), figures, refused)))
    return 0


def _unreadable(item: dict[str, Any] | Any, refused: dict[str, str]) -> dict[str, Any]:
    measured = item.get("measured") or {}
    return {
        "id": str(item.get("id")),
        "metric": "tokens_per_s_per_gpu",
        "measured": measured.get("tokens_per_s_per_gpu"),
        "predicted": None,
        "p10": None,
        "p90": None,
        "refused": refused[str(item.get("id"))],
        "evidence_class": None,
        "searched_predicted": None,
        "searched_reason": None,
    }


def report(read: int, figures: Sequence[Prediction], refused: dict[str, str]) -> list[str]:
    """The printed lines."""
    lost = {f.row.id: f.refused for f in figures if f.refused} | refused
    lines = [f"rows read {read}, predicted {len({f.row.id for f in figures if not f.refused})}, refused {len(lost)}"]
    lines += [f"  refused {key}: {reason}" for key, reason in sorted(lost.items())]
    for metric in ("tokens_per_s_per_gpu", "wall_hours", "accelerator_hours"):
        chosen = [f for f in figures if f.metric == metric and f.predicted is not None]
        if chosen:
            lines += ["", f"== {metric} ==", *_headline(chosen)]
            lines += _slices(chosen) if metric == "tokens_per_s_per_gpu" else []
    return lines


def _errors(chosen: Sequence[Prediction]) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([(f.predicted or 0.0) / f.measured - 1.0 for f in chosen])


def summary(chosen: Sequence[Prediction]) -> str:
    """Count, median and 90th percentile of the absolute error, signed median, coverage."""
    errors = _errors(chosen)
    inside = np.mean([(f.p10 or 0.0) <= f.measured <= (f.p90 or 0.0) for f in chosen])
    return (
        f"n {len(chosen):4d}  median {np.median(np.abs(errors)):6.1%}  p90 {np.quantile(np.abs(errors), 0.9):6.1%}  "
        f"signed {np.median(errors):+6.1%}  coverage {inside:5.0%}"
    )


def _headline(chosen: Sequence[Prediction]) -> list[str]:
    errors = np.abs(_errors(chosen))
    titles = np.array([f.row.title for f in chosen])
    medians = [float(np.median(errors[titles == t])) for t in sorted(set(titles))]
    lines = [
        f"median of per-source medians {np.median(medians):.1%}, plain median {np.median(errors):.1%}",
        f"{'all':44s} {summary(chosen)}",
    ]
    if chosen[0].metric == "tokens_per_s_per_gpu" and any(f.searched_predicted for f in chosen):
        lines.append(standing(chosen).words())
    return lines


def _kind(figure: Prediction) -> str:
    return ("moe" if figure.row.moe else "dense") + " " + figure.row.task


SLICES: tuple[tuple[str, Callable[[Prediction], str]], ...] = (
    ("source", lambda f: f.row.title[:40]),
    ("chip", lambda f: f.row.gpu),
    ("precision", lambda f: f.row.precision),
    ("task", lambda f: f.row.task),
    ("dense or MoE", _kind),
    ("evidence", lambda f: str(f.evidence_class)),
)


def _slices(chosen: Sequence[Prediction]) -> list[str]:
    lines: list[str] = []
    for name, key in SLICES:
        lines += ["", f"by {name}"]
        groups: dict[str, list[Prediction]] = {}
        for figure in chosen:
            groups.setdefault(key(figure), []).append(figure)
        lines += [f"  {label:42s} {summary(members)}" for label, members in sorted(groups.items())]
    return lines
