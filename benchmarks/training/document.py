"""The training section of ``docs/accuracy.md``."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from app.catalog.shipped import read_data
from app.engine.outcome import TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from benchmarks.accuracy.whole_runs import judge
from benchmarks.training.diagnosis import diagnose
from benchmarks.training.predict import Prediction, predict
from benchmarks.training.rows import Row, read_rows, readable_rows
from benchmarks.training.standing import standing

Array = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "data"
SCHEMES = {
    "fit": "fit (same rows)",
    "pair": "chip-and-model pairs left out",
    "source": "sources left out",
    "chip": "chips left out",
    "vendor": "vendors left out (NVIDIA: generations)",
}
WORST = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Residuals:
    """Rows with their relative errors (predicted over measured minus one) under each scheme."""

    rows: Sequence[Row]
    errors: dict[str, Array]

    def of(self, keep: Callable[[Row], bool], scheme: str) -> tuple[Array, list[str]]:
        """Errors and sources of some rows."""
        index = [i for i, row in enumerate(self.rows) if keep(row)]
        return self.errors[scheme][index], [self.rows[i].title for i in index]


def kind_of(row: Row) -> str:
    """Dense pretraining, mixture of experts, or fine-tuning."""
    if row.moe:
        return "MoE"
    return "dense pretraining" if row.task == "pretrain" else "LoRA and SFT"


def load() -> tuple[Residuals, list[Row]]:
    """Residuals of the committed cross-validation, and all readable rows."""
    rows, _ = readable_rows(read_rows(DATA / "training_calibration.jsonl"))
    lines = (DATA / "training_cross_validation.jsonl").read_text(encoding="utf-8").splitlines()
    held = {item["id"]: item for item in map(json.loads, lines)}
    chosen = [row for row in rows if row.id in held]
    errors = {name: np.expm1(-np.array([held[row.id][name] for row in chosen])) for name in SCHEMES}
    return Residuals(rows=chosen, errors=errors), rows


def cells(errors: Array, titles: Sequence[str]) -> str:
    """Count, median, 90th percentile, signed median and median of per-source medians."""
    size = np.abs(errors)
    names = np.array(titles)
    medians = [float(np.median(size[names == t])) for t in sorted(set(titles))]
    figures = (np.median(size), np.quantile(size, 0.9), np.median(errors), np.median(medians))
    return f"{size.size} | {figures[0]:.1%} | {figures[1]:.1%} | {figures[2]:+.1%} | {figures[3]:.1%}"


def main_table(residuals: Residuals) -> list[str]:
    """Fit and cross-validation by kind of job."""
    lines = [
        "| what the fit did not see | rows | n | median | p90 | signed | median of source medians |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for scheme, words in SCHEMES.items():
        for kind in ("dense pretraining", "MoE", "LoRA and SFT", "all"):
            errors, titles = residuals.of(lambda row, kind=kind: kind in ("all", kind_of(row)), scheme)  # type: ignore[misc]
            lines.append(f"| {words} | {kind} | {cells(errors, titles)} |")
    return lines


def slices(residuals: Residuals, name: str, key: Callable[[Row], str]) -> list[str]:
    """Pairs left out, by some key."""
    lines = [f"| {name} | n | median | p90 | signed | median of source medians |", "|---|---:|---:|---:|---:|---:|"]
    for value in sorted({key(row) for row in residuals.rows}):
        errors, titles = residuals.of(lambda row, value=value: key(row) == value, "pair")  # type: ignore[misc]
        lines.append(f"| {value} | {cells(errors, titles)} |")
    return lines


def coverage(residuals: Residuals, calibration: TrainingCalibration) -> list[str]:
    """Share of left-out rows inside the shipped intervals."""
    lines = ["| evidence class | judged on | p10 | p90 | coverage |", "|---|---|---:|---:|---:|"]
    for name, scheme in (("calibrated", "pair"), ("transferred", "chip"), ("datasheet", "vendor")):
        low, _, high = calibration.residuals[name]
        held = -np.log1p(residuals.errors[scheme])
        inside = float(np.mean((held >= low) & (held <= high)))
        lines.append(f"| {name} | {SCHEMES[scheme]} | {np.expm1(low):+.1%} | {np.expm1(high):+.1%} | {inside:.0%} |")
    return lines


def noise_floor(rows: Sequence[Row]) -> list[str]:
    """Best over worst of the same job: repeats of any kind, and those from different sources."""
    jobs: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.tokens_per_s:
            key = (row.gpu, row.family, row.cluster.accelerators, row.precision, row.task, row.workload.sequence_length)
            jobs.setdefault(key, []).append(row)
    lines = ["| repeats | jobs | median best over worst | p90 |", "|---|---:|---:|---:|"]
    tests: tuple[tuple[str, Callable[[list[Row]], bool]], ...] = (
        ("same chip, model, count, precision, task, sequence", lambda g: len(g) > 1),
        ("the same, from two sources or more", lambda g: len({r.title for r in g}) > 1),
    )
    for name, keep in tests:
        ratios = [
            max(r.tokens_per_s or 0.0 for r in group) / min(r.tokens_per_s or 1.0 for r in group)
            for group in jobs.values()
            if keep(group)
        ]
        lines.append(f"| {name} | {len(ratios)} | {np.median(ratios):.2f} | {np.quantile(ratios, 0.9):.2f} |")
    return lines


def searched(figures: Sequence[Prediction]) -> list[str]:
    """How the plan the engine would choose compares with the measured run."""
    hours = [f for f in figures if f.metric == "wall_hours" and f.predicted]
    off = np.array([(f.predicted or 0.0) / f.measured - 1.0 for f in hours])
    return [
        standing(figures).words(),
        "",
        f"Hours of whole MLPerf runs, evaluations included: n {len(hours)}, median {np.median(np.abs(off)):.1%}, "
        f"p90 {np.quantile(np.abs(off), 0.9):.1%}, signed {np.median(off):+.1%}.",
    ]


def whole_runs(calibration: TrainingCalibration) -> list[str]:
    """Published whole runs: accelerator hours with failures, checkpoints and what the reports leave open."""
    cases = yaml.safe_load((DATA / "whole_runs.yaml").read_text(encoding="utf-8"))["cases"]
    judged = [row for case in cases for row in judge(case, calibration) if row.metric == "accelerator_hours"]
    lines = ["| run | hours | predicted | p10 to p90 | read from |", "|---|---:|---:|---:|---|"]
    errors, inside = [], []
    for row in judged:
        if row.predicted is None or row.p10 is None or row.p90 is None:
            lines.append(f"| {row.id} | {row.measured:,.0f} | refused | | {row.refused} |")
            continue
        errors.append(abs(row.predicted / row.measured - 1.0))
        inside.append(row.p10 <= row.measured <= row.p90)
        low, high = (value / row.measured - 1.0 for value in (row.p10, row.p90))
        off = row.predicted / row.measured - 1.0
        lines.append(f"| {row.id} | {row.measured:,.1f} | {off:+.0%} | {low:+.0%} to {high:+.0%} | {row.basis} |")
    figures = f"n {len(errors)}, median {np.median(errors):.1%}, in the p10 to p90 interval {np.mean(inside):.0%}."
    return [f"Accelerator hours: {figures}", "", *lines]


def memory(rows: Sequence[Row], calibration: TrainingCalibration) -> str:
    """Predicted against measured peak of allocated memory."""
    ratios = []
    for row in rows:
        if row.peak_bytes:
            found = search_training(row.workload, row.cluster, row.request, calibration)
            if isinstance(found, TrainingResult):
                parts = found.memory_breakdown_bytes
                used = sum(v for k, v in parts.items() if k not in ("headroom", "reserve"))
                ratios.append(used / row.peak_bytes - 1.0)
    off = np.array(ratios)
    return (
        f"Peak allocated memory (SimuMax rows, 8 B200): n {off.size}, median {np.median(np.abs(off)):.1%}, "
        f"p90 {np.quantile(np.abs(off), 0.9):.1%}, signed {np.median(off):+.1%}."
    )


def worst(residuals: Residuals, calibration: TrainingCalibration) -> list[str]:
    """The rows furthest off with their pair left out, one per job."""
    size = np.abs(np.log1p(residuals.errors["pair"]))
    lines = ["| row | predicted | diagnosis |", "|---|---:|---|"]
    seen: set[tuple[str, ...]] = set()
    for i in np.argsort(-size):
        row = residuals.rows[i]
        job = (row.title, row.gpu, row.family, row.precision)
        if job in seen:
            continue
        seen.add(job)
        words = diagnose(row, residuals.rows, calibration)
        lines.append(f"| {row.id} | {residuals.errors['pair'][i]:+.0%} | {words} |")
        if len(seen) == WORST:
            break
    return lines


def section() -> str:
    """The whole section."""
    calibration = TrainingCalibration.from_mapping(read_data("calibration/training.json"))
    residuals, rows = load()
    figures = [figure for row in rows for figure in predict(row, calibration)]
    parts = [
        "## Training",
        "",
        "`python -m benchmarks.calibrate training` fits the parameters and leaves every group out in turn;",
        "`python -m benchmarks.document training` writes this section from it;",
        "`python -m benchmarks.accuracy training benchmarks/data/training_calibration.jsonl` predicts each row with",
        "the shipped parameters. Errors are of tokens per second, with the plan a row states and the rest searched.",
        "",
        *main_table(residuals),
        "",
        "### Coverage of the p10 to p90 interval",
        "",
        *coverage(residuals, calibration),
        "",
        "### Noise floor",
        "",
        *noise_floor(rows),
        "",
        "### By source, pairs left out",
        "",
        *slices(residuals, "source", lambda row: row.title),
        "",
        "### By chip, pairs left out",
        "",
        *slices(residuals, "chip", lambda row: row.gpu),
        "",
        "### By precision, pairs left out",
        "",
        *slices(residuals, "precision", lambda row: row.precision),
        "",
        "### Searched plans, hours and memory",
        "",
        *searched(figures),
        "",
        memory(rows, calibration),
        "",
        "The table of Narayanan et al. 2021 (ten GPT models, 32 to 3,072 A100), to which nothing was fitted, is a",
        "golden test: `pytest tests/engine/training/test_golden_papers.py`. Only its last row is verified against",
        "public text; the others were typed from memory, as the golden file says.",
        "",
        "### Published whole runs",
        "",
        "`python -m benchmarks.accuracy training benchmarks/data/whole_runs.yaml`: date, part, stack and plan are",
        "taken from the report or assumed as `benchmarks/accuracy/run_facts.py` says; calendar days may hold more.",
        "",
        *whole_runs(calibration),
        "",
        "### Worst rows, one per job, pairs left out",
        "",
        *worst(residuals, calibration),
        "",
        "### What limits the rest",
        "",
        *LIMITS,
    ]
    return "\n".join(parts)


LIMITS = (
    "- Software releases move mixture-of-experts rows by up to half on the same job, layout and batch (Qwen3-30B-A3B",
    "  on 16 H100: 5,113 and 9,058 tokens/s in one month); no input tells the two apart.",
    "- Mixture-of-experts rows come almost all from one source: with it left out, an early recipe, one layer-cut",
    "  benchmark and compiled stacks remain, and the priors of the expert terms decide.",
    "- AMD rows are adapter fine-tunes of one model: pretraining rows of AMD parts are what we would measure next.",
    "- Rows without a layout are predicted with the plan the engine would choose, which the run need not have used.",
    "- No calibration row is from Gaudi, Trainium2, MI355X, B300 or Rubin: those answers are transferred, and say so.",
)
