"""Applying dated exchange rates."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from app.pricing.errors import CurrencyMismatchError, CurrencyUnknownError, MoneyFormatError
from app.pricing.money import Money
from app.pricing.rates import Conversion

CNY_TO_USD = Conversion(
    base="CNY",
    quote="USD",
    # 1.1172 USD and 7.4326 CNY for a euro on 2026-10-30
    rate=Decimal("1.1172") / Decimal("7.4326"),
    observed_on=date(2026, 10, 30),
    source="ECB euro reference rates",
    method="cross via EUR",
)


def test_alibaba_yuan_are_not_dollars() -> None:
    assert CNY_TO_USD.convert(Money.parse("297.476", "CNY")).text == "44.71"


def test_a_unit_price_keeps_twelve_decimals_and_an_amount_the_currencys() -> None:
    price = Money.parse("0.000001", "CNY")
    assert CNY_TO_USD.convert_unit(price).text == "0.000000150311"
    assert CNY_TO_USD.convert(price).text == "0.00"


def test_same_currency_is_the_identity() -> None:
    price = Money.parse("1.23456789", "USD")
    assert Conversion.identity("USD", date(2026, 1, 1)).convert_unit(price) == price


def test_a_rate_refuses_the_wrong_currency() -> None:
    with pytest.raises(CurrencyMismatchError):
        CNY_TO_USD.convert(Money.parse("1", "EUR"))


@pytest.mark.parametrize("rate", ["0", "-1", "NaN", "Infinity"])
def test_a_rate_is_positive_and_finite(rate: str) -> None:
    with pytest.raises(MoneyFormatError):
        replace(CNY_TO_USD, rate=Decimal(rate))


def test_a_rate_names_real_currencies() -> None:
    with pytest.raises(CurrencyUnknownError):
        replace(CNY_TO_USD, quote="USX")
