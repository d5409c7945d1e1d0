"""Reading a measurement file as cases, with the plan filled in where a row states none."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.catalog.shipped import accelerator_id_of, shipped_accelerators, shipped_models
from app.engine.outcome import Infeasible, ServingResult
from app.engine.serving.calibration import ServingCalibration
from app.engine.serving.search import search_serving
from app.engine.workload import LatencyObjective, Lengths, ServingPlanRequest, ServingWorkload, Software
from benchmarks.serving.batch import operators_of
from benchmarks.serving.cases import Case, RefusedError, case_of

DATA = Path(__file__).parent.parent / "data"
# gpu strings that leave the memory open: the part the source's own numbers fit. Argonne's A100 rows slow down where
# 40 GB of cache run out (Llama 3 70B on four: 193 tokens/s at a batch of 16, 158 at 64; read as 80 GB predicted
# five times too fast), and Polaris, the system, has the 40 GB part
OPEN_MEMORY = {"A100-SXM (memory unstated)": "a100-sxm4-40"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A row that was not predicted, and why."""

    id: str
    reason: str


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


class _Names(dict[str, str]):
    """The ``gpu`` strings of the measurement files; unknown ones are refused by the caller."""

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        if key in OPEN_MEMORY:
            return OPEN_MEMORY[key]
        try:
            return accelerator_id_of(key)
        except KeyError:
            return key if key in shipped_accelerators() else default


def read_cases(rows: Sequence[dict[str, Any]]) -> tuple[list[Case], list[Refusal]]:
    """Cases of the rows that can be predicted, and refusals of the others."""
    cases, refusals = [], []
    for i, row in enumerate(rows):
        try:
            cases.append(case_of(row, shipped_accelerators(), shipped_models(), _Names()))
        except RefusedError as error:
            refusals.append(Refusal(id=str(row.get("id", f"row {i + 1}")), reason=str(error)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"malformed row: {type(error).__name__} {error}"
            refusals.append(Refusal(id=str(row.get("id", f"row {i + 1}")), reason=reason))
    return cases, refusals


def workload_of(case: Case, prompt: float | None = None) -> ServingWorkload:
    """The engine's workload of a case."""
    closed = case.regime in ("closed", "disaggregated") and case.concurrency is not None
    objectives: tuple[LatencyObjective, ...] = ()
    if case.limits is not None:
        objectives = (
            LatencyObjective(metric="ttft", seconds=case.limits[0], percentile=99.0),
            LatencyObjective(metric="tpot", seconds=case.limits[1], percentile=99.0),
        )
    static = case.regime == "static" and case.concurrency is not None
    return ServingWorkload(
        transformer=replace(case.transformer, context=None),
        input_tokens=Lengths(mean=prompt or case.prompt or 1.0),
        output_tokens=Lengths(mean=case.output),
        weights_precision=case.precisions.weights,
        activations_precision=case.precisions.activations,
        kv_precision=case.precisions.kv,
        concurrency=case.concurrency if closed or static else None,
        offline=case.regime == "offline",
        requests_per_s=1e-6 if case.regime == "server" else None,
        objectives=objectives,
        software=Software(stack=case.stack, released_year=case.year),
    )


def searched(case: Case, calibration: ServingCalibration, prompt: float | None = None) -> ServingResult | Infeasible:
    """Result of the searched plan on the accelerators of the case, with the case's stated fields left open."""
    return search_serving(
        workload_of(case, prompt), case.accelerator, None, ServingPlanRequest(), calibration, case.accelerators
    )


def _check_weights(case: Case) -> None:
    """Refuse a stated layout whose weights alone exceed the accelerator."""
    assert case.plan is not None
    held = float(operators_of(case.transformer, case.precisions, case.plan).weights_resident_bytes[0, 0])
    if held > case.accelerator.memory_bytes:
        raise RefusedError(
            f"weights of {held / 1e9:.0f} GB per accelerator exceed its {case.accelerator.memory_bytes / 1e9:.0f} GB"
        )


def with_plan(case: Case, calibration: ServingCalibration) -> Case:
    """The case with the searched plan where it states none.

    Raises
    ------
    RefusedError
        When no plan fits.
    """
    if case.plan is not None:
        _check_weights(case)
        return case
    result = searched(case, calibration)
    if isinstance(result, Infeasible):
        raise RefusedError(result.message)
    p = result.plan
    return replace(case, plan=(p.tensor, p.pipeline, p.expert, p.data))
