"""The searched plan against the plan a row states: never slower, and every large claim says what differs."""

from pathlib import Path

import pytest

from app.catalog.shipped import read_data
from app.engine.outcome import TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_problem, search_training
from app.engine.workload import TrainingPlanRequest
from benchmarks.training.predict import predict
from benchmarks.training.reasons import CLAIM_LIMIT, NAMES
from benchmarks.training.rows import Row, read_rows, readable_rows
from benchmarks.training.standing import standing
from benchmarks.training.stated import rank_row

DATA = Path(__file__).parents[2] / "benchmarks" / "data" / "training_calibration.jsonl"
# every so many rows, and one of each kind of hole the search once had
EVERY = 40
ONCE_MISSED = (
    "korthikanti-530b-selective",
    "mlperf-5.1-nvidia-tyche-ngpu512-ngc25.09-nemo-llama2-70b-lora",
    "llmfoundry-7b-2048-512-h100-80gb-bf16",
    "llmfoundry-125m-512-8-a100-80gb-bf16",
)


@pytest.fixture(scope="module")
def calibration() -> TrainingCalibration:
    return TrainingCalibration.from_mapping(read_data("calibration/training.json"))


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    found, _ = readable_rows(read_rows(DATA))
    return [row for i, row in enumerate(found) if row.id in ONCE_MISSED or i % EVERY == 0]


def test_the_searched_plan_is_never_slower_than_the_stated_one(
    rows: list[Row], calibration: TrainingCalibration
) -> None:
    assert set(ONCE_MISSED) <= {row.id for row in rows}
    for row in rows:
        ranked = rank_row(row, calibration)
        assert isinstance(ranked, tuple), row.id
        stated = search_problem(ranked[0])
        free = search_training(row.workload, row.cluster, TrainingPlanRequest(), calibration)
        assert isinstance(stated, TrainingResult), row.id
        assert isinstance(free, TrainingResult), row.id
        assert free.tokens_per_s.p50 >= stated.tokens_per_s.p50 * (1.0 - 1e-9), row.id


def test_a_large_claim_names_what_differs_from_the_stated_plan(
    rows: list[Row], calibration: TrainingCalibration
) -> None:
    figures = [figure for row in rows for figure in predict(row, calibration)]
    large = [f for f in figures if f.metric == "tokens_per_s_per_gpu" and f.searched_predicted]
    large = [f for f in large if (f.searched_predicted or 0.0) > CLAIM_LIMIT * f.measured]
    assert large
    for figure in large:
        reason = figure.searched_reason or ""
        assert reason.startswith("no plan dimension differs") or reason.split(" ")[0] in {
            name.split(" ")[0] for name in NAMES.values()
        }
    stand = standing(figures)
    assert (stand.silent, stand.search_low, stand.against_plan) == (0, 0, 1.0)
    assert 0 < stand.model_low < stand.rows
