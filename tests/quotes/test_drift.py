from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.quotes.drift import EFFECTS, DriftLine, DriftSide, split_drift

CENT = Decimal("0.01")


def line(quantity: str, price: str, rate: str = "1", contract: str = "1", key: str = "pretrain/compute") -> DriftLine:
    total = Decimal(quantity) * Decimal(price) * Decimal(rate) * Decimal(contract)
    return DriftLine(
        key=key,
        quantity=Decimal(quantity),
        list_unit_price=Decimal(price),
        native_currency="USD",
        exchange_rate=Decimal(rate),
        total=total,
    )


def side(*lines: DriftLine, engine: str = "1", spec: str = "s") -> DriftSide:
    total = sum((row.total for row in lines), Decimal(0)).quantize(CENT)
    return DriftSide(lines=lines, total=total, currency="CNY", spec_sha256=spec, engine=engine)


def only(name: str, amount: str) -> dict[str, Decimal]:
    return {effect: Decimal(amount) if effect == name else Decimal("0.00") for effect in EFFECTS}


BASE = side(line("100", "2.00", "7"))


@pytest.mark.parametrize(
    ("after", "effect", "amount"),
    [
        (side(line("100", "2.20", "7")), "list_price", "140.00"),
        (side(line("100", "2.00", "7", contract="0.9")), "contract", "-140.00"),
        (side(line("100", "2.00", "6.9")), "fx", "-20.00"),
        (side(line("110", "2.00", "7"), engine="2"), "engine", "140.00"),
        (side(line("110", "2.00", "7"), spec="t"), "spec", "140.00"),
    ],
)
def test_one_cause_alone_is_that_cause(after: DriftSide, effect: str, amount: str) -> None:
    assert split_drift(BASE, after, quantum=CENT).effects == only(effect, amount)


def test_infracost_3124_exchange_rate_drift_is_not_a_price_change() -> None:
    drift = split_drift(BASE, side(line("100", "2.00", "7.31")), quantum=CENT)
    assert drift.effects["fx"] == drift.change == Decimal("62.00")
    assert drift.effects["list_price"] == 0


def test_new_lines_belong_to_what_brought_them() -> None:
    grown = side(line("100", "2.00", "7"), line("5", "1.00", "7", key="pretrain/storage"), spec="t")
    drift = split_drift(BASE, grown, quantum=CENT)
    assert drift.effects == only("spec", "35.00")
    assert "the selected options differ in their lines" in drift.notes


def test_spec_and_engine_together_are_said_not_to_be_separable() -> None:
    drift = split_drift(BASE, side(line("110", "2.00", "7"), spec="t", engine="2"), quantum=CENT)
    assert any("not separable" in note for note in drift.notes)


def test_two_currencies_have_no_difference() -> None:
    with pytest.raises(ValueError, match="CNY and USD"):
        split_drift(BASE, replace(BASE, currency="USD"), quantum=CENT)


amounts = st.decimals("0.0001", "99999", places=4)
factors = st.tuples(amounts, amounts, st.decimals("0.01", "200", places=4), st.decimals("0.1", "2", places=3))


@given(st.lists(st.tuples(factors, factors), min_size=1, max_size=5), st.decimals("-50", "50", places=2))
def test_the_five_effects_always_add_up_to_the_change(
    pairs: list[tuple[tuple[Decimal, ...], tuple[Decimal, ...]]], rest: Decimal
) -> None:
    before = side(*(line(*map(str, old), key=str(i)) for i, (old, _) in enumerate(pairs)))
    after = side(*(line(*map(str, new), key=str(i)) for i, (_, new) in enumerate(pairs)))
    after = replace(after, total=after.total + rest)
    drift = split_drift(before, after, quantum=CENT)
    assert sum(drift.effects.values()) == drift.change
    assert all(value == value.quantize(CENT) for value in drift.effects.values())
