"""Intervals of ratios, and the probabilities read from them."""

import math

import pytest

from app.claims.metrics import METRICS
from app.claims.prediction import (
    Figure,
    Origin,
    exactly,
    over_known_draws,
    ratio_band,
)
from app.engine.outcome import Band


def figure(p50: float, spread: float, accelerator: str = "a", answer: object = 1, precision: str = "bf16") -> Figure:
    """A figure whose p10 and p90 are a factor away from the middle."""
    band = Band(p10=p50 / spread, p50=p50, p90=p50 * spread)
    origin = Origin(kind="training", accelerator=accelerator, precision=precision, answer=(answer,))
    return Figure(value=band, basis="calibrated", origin=origin)


def test_the_same_answer_has_no_error_in_a_ratio() -> None:
    band = ratio_band(figure(200.0, 1.3), figure(100.0, 1.3))
    assert (band.p10, band.p50, band.p90) == pytest.approx((2.0, 2.0, 2.0))


def test_two_parts_share_some_of_the_error() -> None:
    alone = math.log(1.2)
    band = ratio_band(figure(200.0, 1.2, "b"), figure(100.0, 1.2, "a", 2))
    apart = math.log(band.p90 / band.p50)
    assert alone < apart < math.sqrt(2.0) * alone
    assert apart == pytest.approx(alone * math.sqrt(2.0 - 2.0 * 0.25))


def test_a_fact_adds_no_error() -> None:
    band = ratio_band(figure(300.0, 1.2), exactly(100.0, "catalog"))
    assert (band.p10, band.p90) == pytest.approx((2.5, 3.6))


def test_the_ends_of_a_ratio_take_opposite_sides_of_the_denominator() -> None:
    lopsided = Figure(
        value=Band(p10=50.0, p50=100.0, p90=101.0),
        basis="calibrated",
        origin=Origin(kind="training", accelerator="b", precision="bf16", answer=(2,)),
    )
    band = ratio_band(exactly(100.0, "catalog"), lopsided)
    assert band.p90 == pytest.approx(2.0)
    assert band.p10 == pytest.approx(100.0 / 101.0)


def test_how_well_a_system_is_run_is_the_same_on_both_sides() -> None:
    def hours(p50: float, accelerator: str) -> Figure:
        band = Band(p10=p50 / 1.1, p50=p50, p90=p50 * 1.5)
        origin = Origin(kind="training", accelerator=accelerator, precision="bf16", answer=(accelerator,))
        return Figure(value=band, basis="calibrated", origin=origin, step=(math.log(1.1), math.log(1.1)))

    band = ratio_band(hours(100.0, "b"), hours(200.0, "a"))
    assert band.p90 / band.p50 == pytest.approx(math.exp(math.log(1.1) * math.sqrt(1.5)))
    assert band.p50 / band.p10 == pytest.approx(band.p90 / band.p50)


def test_sellers_widen_a_band_and_one_seller_only_moves_it() -> None:
    unit = Band(p10=0.9, p50=1.0, p90=1.1)
    assert over_known_draws(unit, [2.0]) == Band(p10=1.8, p50=2.0, p90=2.2)
    mixed = over_known_draws(unit, [1.0, 2.0])
    assert mixed.p10 < 1.0 < mixed.p50 < 2.0 < mixed.p90


def test_a_bill_that_differs_by_a_rounded_cent_still_has_a_band() -> None:
    """A commitment costs the same at every quantile, but its used and unused hours are rounded apart."""
    net = {name: {"amount": text} for name, text in (("p10", "10.01"), ("p50", "10.00"), ("p90", "10.01"))}
    read = METRICS["cost"].read
    assert read is not None
    band = read({"cost": {"net": net}})
    assert band is not None
    assert (band.p10, band.p50, band.p90) == (10.0, 10.0, pytest.approx(10.01))
