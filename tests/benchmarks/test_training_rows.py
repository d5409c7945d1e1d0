"""Reading of training rows, the fit, and what the accuracy command writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.accuracy import training as accuracy
from benchmarks.calibrate.kernel_curves import fit_curves
from benchmarks.calibrate.training import MEASUREMENTS, blank, prepare
from benchmarks.document import replaced
from benchmarks.training.fit import fit
from benchmarks.training.rows import RowRefusedError, read_rows, readable_rows, row_of
from benchmarks.training.validation import folds, pair_of

RAW = read_rows(MEASUREMENTS)
FEW = RAW[::24]


def raw(**changes: Any) -> dict[str, Any]:
    base = next(r for r in RAW if r["id"].startswith("mbridge-26.04") and r["model"]["family_key"] == "llama3-70b")
    return {**base, **changes}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": "Cerebras-WSE3"}, "not in accelerator_map"),
        ({"model": {"name": "x", "family_key": "nobody-9b"}}, "not in the catalog"),
        ({"precision": "fp2"}, "not a training format"),
        ({"task": "distill"}, "task"),
        ({"gpus": None}, "number of accelerators"),
    ],
)
def test_unusable_rows_are_refused_with_a_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RowRefusedError, match=reason):
        row_of(raw(**changes))


def test_missing_fields_take_defaults() -> None:
    bare = raw(
        precision=None, parallelism=None, seq_len=None, global_batch=None, micro_batch=None, software_released_on=None
    )
    row = row_of(bare)
    assert row.precision == "fp8"
    assert row.workload.sequence_length == 4096
    assert row.workload.global_batch_sequences % row.cluster.accelerators == 0
    assert row.request.tensor is None


def test_trainium_layouts_count_cores() -> None:
    row = row_of(next(r for r in RAW if r["gpu"] == "Trainium1" and r["parallelism"]["tp"] == 8))
    assert row.request.tensor == 4


def test_full_sharding_over_everything_leaves_no_other_degree() -> None:
    plan = {"tp": None, "pp": None, "cp": None, "dp": None, "fsdp": 64}
    request = row_of(raw(gpus=64, parallelism=plan)).request
    assert (request.tensor, request.pipeline, request.context, request.data) == (1, 1, 1, 64)
    request = row_of(raw(gpus=512, parallelism=plan | {"tp": 8})).request
    assert (request.tensor, request.pipeline, request.data) == (8, 1, 64)
    request = row_of(raw(gpus=1024, parallelism=plan | {"tp": 8})).request
    assert (request.tensor, request.pipeline, request.data) == (8, 1, None)


def test_a_round_batch_is_shared_by_the_stated_replicas() -> None:
    plan = {"tp": 8, "pp": 1, "cp": 1, "dp": None, "fsdp": 124}
    assert row_of(raw(gpus=992, global_batch=1024, parallelism=plan)).workload.global_batch_sequences == 992


@pytest.mark.parametrize(
    ("stated", "version", "year"),
    [
        ("2025-04", "repo commit 26e42fa9 2025-04-18 (24.05 era)", 2024.0 + 4.5 / 12.0),
        (None, "24.11", 2024.0 + 10.5 / 12.0),
        (None, "commit 4dcaae5 2023-06-01", 2023.0 + 5.5 / 12.0),
        (None, "main", None),
    ],
)
def test_software_is_dated_by_its_container(stated: str | None, version: str, year: float | None) -> None:
    source = {"title": "tables", "version_or_date": version}
    found = row_of(raw(source=source, software_released_on=stated)).workload.software.released_year
    assert found == (None if year is None else pytest.approx(year))


def test_a_vendors_fork_is_that_vendors_stack() -> None:
    fork = {"title": "Gaudi", "repo_or_site": "HabanaAI/Megatron-DeepSpeed"}
    assert row_of(raw(gpu="Gaudi2", source=fork)).workload.software.stack == "habana"


def test_malformed_rows_never_crash() -> None:
    rows, refused = readable_rows([{"id": "empty"}, raw(id="text", gpus="many"), raw(id="fine")])
    assert [row.id for row in rows] == ["fine"]
    assert set(refused) == {"empty", "text"}


def test_every_pair_stays_in_one_fold() -> None:
    rows, _ = readable_rows(RAW)
    pairs = [pair_of(row) for row in rows]
    where = folds(pairs, 10)
    assert all(len({int(f) for f, p in zip(where, pairs, strict=True) if p == pair}) == 1 for pair in set(pairs))
    assert np.bincount(where).min() > 0


@pytest.mark.slow
def test_the_fit_gives_the_same_figures_twice_and_better_ones_than_no_fit() -> None:
    rows, _ = readable_rows(FEW)
    calibration = blank(fit_curves())
    _, _, packed, measured, weights = prepare(rows, calibration)
    start = np.zeros(len(packed.names))
    first, second = (fit(packed, measured, weights, start) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    errors = [float(np.median(np.abs(packed.log_rates(effects) - measured))) for effects in (start, first)]
    assert errors[1] < 0.75 * errors[0]


def test_the_accuracy_command_writes_one_element_per_row_and_metric(tmp_path: Path) -> None:
    source, target = tmp_path / "rows.jsonl", tmp_path / "out.json"
    timed = next(r for r in RAW if r["usable_for"] == ["throughput", "time"] and r["tokens_total"])
    rows: list[Mapping[str, Any]] = [raw(id="good"), raw(id="bad", gpu="Unknown-1"), timed]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert accuracy.run(source, target) == 0
    elements = json.loads(target.read_text(encoding="utf-8"))
    assert len(elements) == 5
    keys = {(e["id"], e["metric"]) for e in elements}
    assert len(keys) == 5
    good = next(e for e in elements if e["id"] == "good")
    assert good["refused"] is None
    assert good["p10"] < good["predicted"] < good["p90"]
    assert next(e for e in elements if e["id"] == "bad")["refused"]
    hours = {e["metric"]: e for e in elements if e["id"] == timed["id"]}
    count = timed["gpus"]
    assert hours["accelerator_hours"]["predicted"] == pytest.approx(count * hours["wall_hours"]["predicted"])


def test_a_section_is_exchanged_and_the_other_kept() -> None:
    text = replaced(replaced("# Accuracy\n", "inference", "old inference"), "training", "old training")
    again = replaced(text, "training", "new \\1 training")
    assert "new \\1 training" in again
    assert "old inference" in again
    assert "old training" not in again
    assert again.index("training: begin") < again.index("inference: begin")
