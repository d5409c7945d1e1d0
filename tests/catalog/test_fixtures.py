"""The eight traps the shipped data holds (catalog design 8), one test each, named after it."""

from datetime import date
from decimal import Decimal

import pytest

from app.catalog.imports.labels import region_code
from app.catalog.resolve import Outcome, per_accelerator, resolve_price
from app.catalog.seeding import labels_of

DAY = date(2026, 11, 30)


def on(shipped, day, **wanted):
    (offer,) = shipped.find_offers(**wanted)
    return offer, resolve_price(shipped, offer, day)


@pytest.mark.parametrize(
    ("day", "outcome", "amount"),
    [
        (date(2024, 6, 1), Outcome.PRICED, "98.32"),
        (date(2025, 7, 1), Outcome.PRICED, "55.04"),
        (date(2025, 5, 15), Outcome.OBSERVATION_GAP, None),
    ],
)
def test_fixture_history_a_day_takes_the_price_of_its_step_and_a_gap_stays_a_gap(shipped, day, outcome, amount):
    wanted = {"providers": ["aws"], "instance_type": "p5.48xlarge", "regions": ["us-east-1"]}
    _, answer = on(shipped, day, **wanted, purchase_models=["on_demand"])
    assert (answer.outcome, answer.amount) == (outcome, None if amount is None else Decimal(amount))
    if outcome is Outcome.OBSERVATION_GAP:
        assert (answer.before.amount, answer.after.amount) == (Decimal("98.32"), Decimal("55.04"))
        assert (answer.before.observed_on, answer.after.valid_from) == (date(2025, 4, 28), date(2025, 6, 23))


def test_fixture_component_no_machine_is_priced_by_an_accelerator_without_a_host(shipped):
    automatic = shipped.find_offers(providers=["gcp"], automatic_only=True)
    assert automatic
    assert {offer.scope for offer in automatic} == {"bundle"}
    components = [offer for offer in shipped.find_offers(providers=["gcp"]) if offer.scope == "component"]
    assert {row.amount for offer in components for row in shipped.prices_of(offer.id)} >= {Decimal("9.7966")}


def test_fixture_currency_an_alibaba_amount_is_yuan_for_eight_and_44_71_dollars(shipped):
    wanted = {"providers": ["alibaba"], "instance_type": "ecs.ebmgn7e.32xlarge", "regions": ["ap-northeast-1"]}
    offer, answer = on(shipped, date(2024, 12, 31), **wanted)
    assert (answer.amount, answer.row.currency, offer.accelerator_count) == (Decimal("297.476"), "CNY", 8)
    rate = shipped.fx.rate("CNY", "USD", date(2026, 10, 30)).rate
    assert (answer.amount * rate).quantize(Decimal("0.01")) == Decimal("44.71")


def test_fixture_unit_a_gb200_is_sold_by_the_accelerator_the_superchip_and_the_node(shipped):
    held = {offer.sold_unit: offer.accelerator_count for offer in shipped.offers_of_accelerator("gb200-186")}
    assert held["superchip"] == 2
    assert held["node"] == 4
    superchip, answer = on(shipped, date(2026, 3, 17), providers=["spheron"], instance_type="GB200 superchip (2 GPUs)")
    assert (answer.amount, per_accelerator(answer.amount, superchip)) == (Decimal("9.08"), Decimal("4.54"))


def test_fixture_freshness_a_row_without_a_day_has_an_unknown_age_and_is_stale(shipped):
    undated = [
        (shipped.offers[offer_id], row)
        for offer_id, rows in shipped.prices.items()
        for row in rows
        if row.observed_on is None
    ]
    assert len(undated) >= 50
    for offer, _ in undated:
        answer = resolve_price(shipped, offer, DAY)
        if answer.row is not None and answer.row.observed_on is None:
            assert (answer.stale, answer.age_days) == (True, None)


def test_fixture_alias_names_fold_only_where_they_say_the_same(shipped):
    labels = labels_of(shipped)
    assert {labels.provider(name) for name in ("DataCrunch", "datacrunch", "verda")} == {"verda"}
    assert labels.accelerator("H100-80GB") == (None, "form_factor_unstated")
    assert labels.accelerator("A10")[0] != labels.accelerator("A10G")[0]
    assert {region_code(name) for name in ("any", "na", "global")} == {"global"}


def test_fixture_conflict_three_sources_price_a_nebius_h100_and_each_says_its_rank(shipped):
    offers = shipped.find_offers(providers=["nebius"], accelerators=["h100-sxm5-80"], purchase_models=["on_demand"])
    answers = [resolve_price(shipped, offer, DAY) for offer in offers if offer.accelerator_count == 1]
    assert sorted(answer.amount for answer in answers) == [Decimal("2.15"), Decimal("2.95"), Decimal("3.85")]
    assert {answer.rule for answer in answers} == {"list_tracker", "marketplace_stat"}


def test_fixture_fx_a_saturday_takes_the_rate_of_friday_and_shows_its_day(shipped):
    rate = shipped.fx.rate("USD", "CNY", date(2026, 10, 31))
    assert (rate.rate_on, rate.requested_on) == (date(2026, 10, 30), date(2026, 10, 31))
