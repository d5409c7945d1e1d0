"""From list price to net, in a fixed order, every step on the record."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pricing.errors import CurrencyMismatchError, MoneyFormatError
from app.pricing.money import Money
from app.pricing.waterfall import Adjustments, PriceBookRule, VolumeTier, waterfall

shares = st.decimals(min_value=0, max_value=1, places=4)


def usd(text: str) -> Money:
    return Money.parse(text, "USD")


def test_steps_apply_in_the_contract_order() -> None:
    result = waterfall(
        usd("10"),
        Decimal(100),
        Adjustments(
            price_book=PriceBookRule(source="pb@1", percent_off=Decimal("0.1")),
            volume_tiers=(
                VolumeTier(from_quantity=Decimal(50), percent_off=Decimal("0.1"), source="tier 50"),
                VolumeTier(from_quantity=Decimal(500), percent_off=Decimal("0.5"), source="tier 500"),
            ),
            commitment_off=Decimal("0.5"),
            negotiated_off=Decimal("0.2"),
            fixed_off=usd("0.24"),
            markup=Decimal("0.15"),
        ),
    )
    assert [(s.name, s.after.text) for s in result.steps] == [
        ("price_book", "9.00"), ("volume_tier", "8.10"), ("commitment", "4.05"), ("negotiated", "3.24"),
        ("fixed_discount", "3.00"), ("markup", "3.45"),
    ]  # fmt: skip
    assert result.cost_unit_price == usd("3")


def test_a_contracted_price_wins_and_list_stays_visible() -> None:
    result = waterfall(
        usd("55.04"), Decimal(1), Adjustments(price_book=PriceBookRule(source="pb@7", unit_price=usd("40")))
    )
    assert result.list_unit_price == usd("55.04")
    assert result.net_unit_price == usd("40")
    assert result.steps[0].source == "pb@7"


@pytest.mark.parametrize(("floor", "cap", "net"), [("9.5", None, "9.50"), (None, "8", "8.00"), (None, None, "9.00")])
def test_floor_and_cap_hold_the_booked_price(floor: str | None, cap: str | None, net: str) -> None:
    rule = PriceBookRule(
        source="pb", percent_off=Decimal("0.1"), floor=usd(floor) if floor else None, cap=usd(cap) if cap else None
    )
    assert waterfall(usd("10"), Decimal(1), Adjustments(price_book=rule)).net_unit_price.text == net


def test_a_fixed_discount_never_makes_a_price_negative() -> None:
    assert waterfall(usd("1"), Decimal(1), Adjustments(fixed_off=usd("2"))).net_unit_price.text == "0.00"


def test_a_book_in_another_currency_is_refused() -> None:
    rule = PriceBookRule(source="pb", unit_price=Money.parse("300", "CNY"))
    with pytest.raises(CurrencyMismatchError):
        waterfall(usd("10"), Decimal(1), Adjustments(price_book=rule))


@pytest.mark.parametrize("share", ["-0.1", "1.1", "NaN"])
def test_shares_outside_zero_to_one_are_refused(share: str) -> None:
    with pytest.raises(MoneyFormatError):
        Adjustments(negotiated_off=Decimal(share))


@given(shares, shares, shares, st.decimals(min_value=0, max_value=3, places=3))
def test_deltas_add_up_from_list_to_net(book: Decimal, tier: Decimal, off: Decimal, markup: Decimal) -> None:
    result = waterfall(
        usd("98.32"),
        Decimal(8),
        Adjustments(
            price_book=PriceBookRule(source="pb", percent_off=book),
            commitment_off=tier,
            negotiated_off=off,
            markup=markup,
        ),
    )
    moved = sum((s.delta.amount for s in result.steps), Decimal(0))
    assert result.list_unit_price.amount + moved == result.net_unit_price.amount
    assert result.net_unit_price.amount >= 0
