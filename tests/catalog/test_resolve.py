"""Price resolution: the selection rule, the typed outcomes, freshness."""

from datetime import date
from decimal import Decimal

import pytest

from app.catalog.offers import QuarantinedRow
from app.catalog.resolve import Outcome, explain_missing, observed_range, per_accelerator, resolve_price
from tests.catalog.builders import make_offer, make_row, make_snapshot

DAY = date(2026, 11, 30)
STEPS = (
    make_row("98.32", "2023-09-18", "2025-04-29", "2025-04-28"),
    make_row("55.04", "2025-06-23", None, "2026-07-20"),
)


def resolve(*rows, on=DAY, offer=None, held=()):
    offer = offer or make_offer()
    return resolve_price(make_snapshot([offer], rows, held), offer, on)


def test_a_day_inside_an_observed_step_takes_its_price_and_is_fresh():
    answer = resolve(*STEPS, on=date(2024, 6, 1))
    assert (answer.outcome, answer.amount, answer.age_days, answer.stale) == (
        Outcome.PRICED,
        Decimal("98.32"),
        0,
        False,
    )
    assert resolve(*STEPS, on=date(2025, 7, 1)).amount == Decimal("55.04")


def test_between_two_observations_of_different_prices_there_is_no_price_but_both_neighbours():
    answer = resolve(*STEPS, on=date(2025, 5, 15))
    assert answer.outcome is Outcome.OBSERVATION_GAP
    assert answer.row is None
    assert answer.before.amount == Decimal("98.32")
    assert answer.after.amount == Decimal("55.04")


def test_two_single_observations_of_one_rank_leave_a_gap_between_them():
    rows = (
        make_row("3.49", "2026-09-25", method="tracker"),
        make_row("3.99", "2026-11-09", method="tracker", id="later"),
    )
    assert resolve(*rows, on=date(2026, 9, 25)).amount == Decimal("3.49")
    assert resolve(*rows, on=date(2026, 10, 15)).outcome is Outcome.OBSERVATION_GAP
    assert resolve(*rows, on=date(2026, 11, 9)).amount == Decimal("3.99")


def test_equal_prices_on_both_sides_leave_no_gap():
    rows = (make_row("3.19", "2026-09-25"), make_row("3.19", "2026-11-09", id="later"))
    assert resolve(*rows, on=date(2026, 10, 15)).amount == Decimal("3.19")


def test_before_the_first_observation_the_price_is_unknown():
    answer = resolve(*STEPS, on=date(2023, 9, 17))
    assert answer.outcome is Outcome.UNKNOWN_PRICE
    assert answer.after.amount == Decimal("98.32")


def test_after_a_stated_end_the_price_is_unknown():
    answer = resolve(make_row("39.33", "2024-12-31", "2025-01-01"), on=date(2025, 1, 1))
    assert answer.outcome is Outcome.UNKNOWN_PRICE
    assert answer.before.amount == Decimal("39.33")


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"kind": "contracted", "method": "manual"}, {"method": "api"}),
        ({"method": "api"}, {"method": "verbatim"}),
        ({"method": "verbatim"}, {"method": "manual"}),
        ({"method": "manual"}, {"method": "tracker"}),
        ({"method": "tracker"}, {"method": "tracker", "kind": "marketplace_stat"}),
        ({"method": "tracker", "kind": "marketplace_stat"}, {"method": "generated"}),
        ({"method": "generated"}, {"method": "api", "kind": "estimate"}),
    ],
)
def test_rank_beats_recency_and_the_loser_is_named(better, worse):
    winner = make_row("2.00", "2026-06-01", id="winner", **better)
    loser = make_row("1.00", "2026-11-29", id="loser", **worse)
    answer = resolve(winner, loser)
    assert answer.row is winner
    assert [(lost.row.id, lost.reason.split(":")[0]) for lost in answer.lost] == [("loser", "lower_rank")]


def test_within_a_rank_the_newest_observation_wins():
    old, new = make_row("2.00", "2026-11-01", id="old"), make_row("3.00", "2026-11-20", id="new")
    answer = resolve(old, new)
    assert answer.row is new
    assert answer.lost[0].reason == "older_observation"


def test_equal_rank_and_day_with_different_amounts_is_ambiguous_unless_confidence_decides():
    first, second = make_row("2.00", "2026-11-20", id="a"), make_row("3.00", "2026-11-20", id="b")
    assert resolve(first, second).outcome is Outcome.AMBIGUOUS
    unsure = make_row("3.00", "2026-11-20", id="b", confidence="low")
    assert resolve(first, unsure).row is first


@pytest.mark.parametrize(
    ("model", "term", "limit"),
    [("spot", 0, 1), ("marketplace", 0, 1), ("on_demand", 0, 30), ("reserved", 12, 90), ("capacity_block", 0, 90)],
)
def test_a_price_past_its_limit_is_shown_and_flagged(model, term, limit):
    offer = make_offer(purchase_model=model, term_months=term)
    fresh = date.fromordinal(DAY.toordinal() - limit).isoformat()
    late = date.fromordinal(DAY.toordinal() - limit - 1).isoformat()
    assert not resolve(make_row("2.00", fresh), offer=offer).stale
    answer = resolve(make_row("2.00", late), offer=offer)
    assert (answer.outcome, answer.stale, answer.max_age_days) == (Outcome.PRICED, True, limit)


def test_an_unknown_observation_day_is_stale_with_unknown_age_and_loses_to_a_dated_one():
    undated = make_row("2.95", "2026-11-30", None, None, method="tracker", id="undated")
    answer = resolve(undated)
    assert (answer.stale, answer.age_days) == (True, None)
    dated = make_row("3.85", "2026-09-25", method="tracker", id="dated")
    assert resolve(undated, dated).row is dated


def test_a_row_held_back_by_a_check_prices_nothing():
    row = make_row("0.01", "2026-11-01")
    held = QuarantinedRow(id="q1", provider="acme", offer_id="ofr_1", reason="below_band", detail="0.01 USD", row=row)
    answer = resolve(held=[held])
    assert answer.outcome is Outcome.QUARANTINED
    assert answer.row is None
    assert "below_band" in answer.message


def test_no_price_at_all_is_unknown_and_never_zero():
    answer = resolve()
    assert answer.outcome is Outcome.UNKNOWN_PRICE
    assert answer.amount is None


def test_another_purchase_model_or_region_is_never_used_instead():
    offer = make_offer()
    snapshot = make_snapshot([offer], [make_row("2.00", "2026-11-01")])
    spot = explain_missing(snapshot, "acme", "node.8x", "r1", "spot")
    assert spot.outcome is Outcome.UNKNOWN_PRICE
    elsewhere = explain_missing(snapshot, "acme", "node.8x", "r2", "on_demand")
    assert elsewhere.outcome is Outcome.NOT_OFFERED
    assert "r1" in elsewhere.message


def test_a_machine_price_splits_over_its_accelerators():
    assert per_accelerator(Decimal("55.04"), make_offer()) == Decimal("6.88")
    assert per_accelerator(Decimal("10"), make_offer(accelerator_count=3)) == Decimal("3.333333333333")


def test_a_moving_price_has_the_range_it_was_seen_in_up_to_the_day():
    offer = make_offer(purchase_model="spot")
    rows = (
        make_row("2.40", "2026-10-07"),
        make_row("3.10", "2026-10-19", id="b"),
        make_row("2.75", "2026-11-20", id="c"),
        make_row("9.00", "2026-11-20", id="d", currency="EUR", method="tracker", observed_on="2026-11-01"),
    )
    found = observed_range(make_snapshot([offer], rows), offer, date(2026, 11, 25))
    assert (found.low, found.high, found.currency, found.observations) == (Decimal("2.40"), Decimal("3.10"), "USD", 3)
    assert (found.first_on, found.last_on) == (date(2026, 10, 7), date(2026, 11, 20))
    early = observed_range(make_snapshot([offer], rows), offer, date(2026, 10, 10))
    assert (early.low, early.high, early.observations) == (Decimal("2.40"), Decimal("2.40"), 1)
    assert observed_range(make_snapshot([offer], rows), offer, date(2026, 10, 1)) is None
