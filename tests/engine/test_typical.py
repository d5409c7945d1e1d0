"""The typical architecture keeps its promise of 2 % and reproduces the family it comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.accounting import count_parameters
from app.engine.errors import EngineInputError
from app.engine.transformer import SoftmaxAttention
from app.engine.typical import LARGEST, SMALLEST, typical_mixture, typical_transformer


@given(st.floats(SMALLEST, LARGEST))
def test_within_two_per_cent(parameters: float) -> None:
    assert count_parameters(typical_transformer(parameters)).total == pytest.approx(parameters, rel=0.02)


@given(st.floats(1e9, LARGEST))
def test_heads_divide_by_eight(parameters: float) -> None:
    mixer = typical_transformer(parameters).groups[0].mixer
    assert isinstance(mixer, SoftmaxAttention)
    assert mixer.heads % 8 == 0
    assert mixer.kv_heads == 8


@pytest.mark.parametrize(
    ("parameters", "layers", "hidden"), [(8.03e9, 32, 4096), (70.55e9, 80, 8192), (405.9e9, 126, 16384)]
)
def test_reproduces_llama_3(parameters: float, layers: int, hidden: int) -> None:
    model = typical_transformer(parameters)
    assert (model.layers, model.hidden) == (layers, hidden)


@pytest.mark.parametrize("parameters", [0.0, 1e6, 1e15])
def test_refuses_what_the_rule_does_not_cover(parameters: float) -> None:
    with pytest.raises(EngineInputError, match="outside the range"):
        typical_transformer(parameters)


@pytest.mark.parametrize(
    ("total", "active"),
    [
        (6.9e9, 1.3e9),
        (30.5e9, 3.35e9),
        (132e9, 36e9),
        (235e9, 22.2e9),
        (671e9, 37.6e9),
        (1026e9, 32.9e9),
        (46.7e9, 12.9e9),
    ],
)
def test_mixture_meets_both_counts(total: float, active: float) -> None:
    count = count_parameters(typical_mixture(total, active))
    assert count.total == pytest.approx(total, rel=0.03)
    assert count.active == pytest.approx(active, rel=0.03)


@pytest.mark.parametrize(("total", "active"), [(1e9, 1e9), (1e9, 2e9), (1e9, 0.0)])
def test_mixture_refuses_what_is_none(total: float, active: float) -> None:
    with pytest.raises(EngineInputError, match="active_parameters"):
        typical_mixture(total, active)
