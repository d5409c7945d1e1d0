"""Owned accelerator-hours against closed forms and a published band."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pricing.commitment import cheapest_mix, rent_or_own
from app.pricing.errors import PricingError
from app.pricing.money import Money
from app.pricing.outcome import Unpriced
from app.pricing.ownership import OwnedHour, OwnershipPrices, OwnershipTerms, annuity, owned_hour


def usd(text: str) -> Money:
    return Money.parse(text, "USD")


PRICES = OwnershipPrices(
    server=usd("240000"),
    accelerators_per_server=8,
    storage_per_accelerator=usd("1000"),
    electricity_per_kwh=usd("0.08"),
    colocation_per_kw_month=usd("184.06"),
    staff_per_accelerator_month=usd("30"),
)
TERMS = OwnershipTerms(
    network_share=Decimal("0.2"),
    spares_share=Decimal("0.02"),
    depreciation_months=60,
    residual_share=Decimal("0.1"),
    cost_of_capital=Decimal("0.1"),
    provisioned_kw_per_accelerator=Decimal("1.275"),
    load_kw_per_accelerator=Decimal("0.9"),
    pue=Decimal("1.54"),
    utilization=Decimal("0.8"),
)


def owned(prices: OwnershipPrices = PRICES, terms: OwnershipTerms = TERMS) -> OwnedHour:
    result = owned_hour(prices, terms)
    assert isinstance(result, OwnedHour)
    return result


def test_parts_add_up_to_the_hour() -> None:
    result = owned()
    parts = sum((result.share_per_hour(p).amount for p in result.monthly), Decimal(0))
    assert abs(parts - result.per_accelerator_hour.amount) < Decimal("1e-10")
    # (30,000 + 2 % spares + 1,000) / 0.8
    assert result.capital == usd("39500")
    # 0.9 kW x 1.54 x 730 h x 0.08
    assert result.monthly["electricity"] == usd("80.9424")


def test_without_a_rate_the_annuity_is_straight_line() -> None:
    assert annuity(usd("12000"), Decimal("0.1"), Decimal(0), 12) == usd("900")


def test_the_annuity_repays_the_capital_to_the_residual() -> None:
    payment = annuity(usd("10000"), Decimal("0.25"), Decimal("0.12"), 24)
    balance = Decimal(10000)
    for _ in range(24):
        balance = balance * Decimal("1.01") - payment.amount
    assert abs(balance - 2500) < Decimal("1e-6")


@pytest.mark.parametrize("field", ["server", "electricity_per_kwh", "staff_per_accelerator_month"])
def test_a_missing_price_is_an_answer_not_a_zero(field: str) -> None:
    result = owned_hour(replace(PRICES, **{field: None}), TERMS)
    assert isinstance(result, Unpriced)
    assert result.missing == (field,)


def test_half_the_utilization_doubles_the_hour() -> None:
    full = owned(terms=replace(TERMS, utilization=Decimal(1))).per_accelerator_hour.amount
    half = owned(terms=replace(TERMS, utilization=Decimal("0.5"))).per_accelerator_hour.amount
    assert abs(half - 2 * full) < Decimal("1e-10")


@pytest.mark.parametrize(("field", "value"), [("pue", "0.9"), ("utilization", "0"), ("network_share", "1")])
def test_impossible_terms_are_refused(field: str, value: str) -> None:
    with pytest.raises(PricingError):
        replace(TERMS, **{field: Decimal(value)})


def test_break_even_costs_the_same_either_way() -> None:
    result = owned()
    even = rent_or_own(result, usd("3.00"))
    assert abs(even.useful_hours_per_month * 3 - result.monthly_total.amount) < Decimal("1e-20")
    assert even.months_to_recover_capital is not None
    assert rent_or_own(result, usd("0.01")).months_to_recover_capital is None


@given(
    st.lists(st.integers(min_value=0, max_value=50).map(Decimal), min_size=1, max_size=48),
    st.integers(min_value=1, max_value=300),
)
def test_the_mix_is_the_cheapest_of_all_whole_bases(profile: list[Decimal], committed_cents: int) -> None:
    committed, on_demand = usd(str(Decimal(committed_cents) / 100)), usd("2.00")
    best = cheapest_mix(profile, committed, on_demand)
    for base in range(51):
        above = sum(max(u - base, Decimal(0)) for u in profile)
        assert best.cost.amount <= base * len(profile) * committed.amount + above * on_demand.amount


def test_a_break_even_worked_by_hand() -> None:
    """36,000 USD over 60 months are 600 a month, with staff 730: at 2 USD an hour that is 365 hours, half a month."""
    plain = owned(
        replace(
            PRICES,
            server=usd("36000"),
            accelerators_per_server=1,
            storage_per_accelerator=usd("0"),
            electricity_per_kwh=usd("0"),
            colocation_per_kw_month=usd("0"),
            staff_per_accelerator_month=usd("130"),
        ),
        replace(
            TERMS,
            network_share=Decimal(0),
            spares_share=Decimal(0),
            residual_share=Decimal(0),
            cost_of_capital=Decimal(0),
            utilization=Decimal(1),
        ),
    )
    assert plain.monthly_total == usd("730")
    even = rent_or_own(plain, usd("2"))
    assert (even.useful_hours_per_month, even.utilization) == (Decimal(365), Decimal("0.5"))
    # 36,000 over what is not paid as rent, less the staff: 2 x 730 - 130
    assert even.months_to_recover_capital is not None
    assert abs(even.months_to_recover_capital - Decimal(36000) / Decimal(1330)) < Decimal("1e-20")
    assert rent_or_own(plain, usd("1")).utilization == 1
    assert rent_or_own(plain, usd("0.5")).utilization == 2


def test_a_mix_of_commitment_and_on_demand_worked_by_hand() -> None:
    """Bases 0, 1, 2 and 4 of the profile 1, 2, 4, 2 cost 18, 14, 12 and 16."""
    best = cheapest_mix([Decimal(u) for u in (1, 2, 4, 2)], usd("1"), usd("2"))
    assert (best.committed_units, best.committed_unit_hours, best.on_demand_unit_hours) == (2, 8, 2)
    assert (best.cost, best.all_on_demand, best.all_committed) == (usd("12"), usd("18"), usd("16"))
