"""A latency objective may be written as a number, in the short form, or spelled out: all three mean the same."""

import pytest
from pydantic import ValidationError

from app.estimates.job_schemas import Slo


@pytest.mark.parametrize("written", [1000, {"p95": 1000}, {"value": 1000}, {"value": 1000, "percentile": 95}])
def test_every_way_to_write_an_objective_means_the_same(written: object) -> None:
    assert Slo.model_validate({"ttft_ms": written}) == Slo.model_validate(
        {"ttft_ms": {"value": 1000, "percentile": 95}}
    )


def test_another_percentile_is_kept() -> None:
    objective = Slo.model_validate({"tpot_ms": {"p99.9": 50}}).tpot_ms
    assert objective is not None
    assert (objective.value, objective.percentile) == (50, 99.9)


@pytest.mark.parametrize("written", [{"p5": 1000}, {"p95": -1}, {"p95": 1000, "p99": 2000}, {"mean": 1000}, "1000"])
def test_anything_else_is_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        Slo.model_validate({"ttft_ms": written})
