"""Dated exchange rates."""

from datetime import date
from decimal import Decimal

import pytest

from app.pricing.errors import CurrencyMismatchError, FxUnavailableError
from app.pricing.money import Money
from app.pricing.rates import FxRate, conversion

SOURCE = "ECB euro reference rates"
RATES = [
    FxRate(base="EUR", quote="USD", rate=Decimal("1.1172"), observed_on=date(2026, 10, 30), source=SOURCE),
    FxRate(base="EUR", quote="CNY", rate=Decimal("7.4326"), observed_on=date(2026, 10, 30), source=SOURCE),
    FxRate(base="EUR", quote="USD", rate=Decimal("1.1355"), observed_on=date(2026, 9, 30), source=SOURCE),
    FxRate(base="EUR", quote="CNY", rate=Decimal("7.613"), observed_on=date(2026, 9, 30), source=SOURCE),
]


def test_a_saturday_uses_the_last_business_day_and_says_so() -> None:
    rate = conversion(RATES, "USD", "CNY", date(2026, 10, 31))
    assert rate.observed_on == date(2026, 10, 30)
    assert rate.method == "cross via EUR"
    assert abs(rate.rate - Decimal("6.652882")) < Decimal("0.000001")


def test_alibaba_yuan_are_not_dollars() -> None:
    price = Money.parse("297.476", "CNY")
    assert conversion(RATES, "CNY", "USD", date(2026, 10, 30)).convert(price).text == "44.71"


def test_an_older_day_uses_the_older_rate() -> None:
    assert conversion(RATES, "EUR", "USD", date(2026, 10, 1)).rate == Decimal("1.1355")


def test_same_currency_is_the_identity() -> None:
    price = Money.parse("1.23456789", "USD")
    assert conversion([], "USD", "USD", date(2026, 1, 1)).convert_unit(price) == price


@pytest.mark.parametrize(("quote", "day"), [("KWD", date(2026, 10, 30)), ("CNY", date(2024, 1, 1))])
def test_no_rate_is_an_error_and_nothing_is_extrapolated(quote: str, day: date) -> None:
    with pytest.raises(FxUnavailableError):
        conversion(RATES, "USD", quote, day)


def test_a_rate_refuses_the_wrong_currency() -> None:
    with pytest.raises(CurrencyMismatchError):
        conversion(RATES, "USD", "CNY", date(2026, 10, 30)).convert(Money.parse("1", "EUR"))


def test_a_newer_inverse_beats_an_older_direct_rate() -> None:
    older = FxRate(base="USD", quote="CNY", rate=Decimal(7), observed_on=date(2026, 1, 1), source="a")
    newer = FxRate(base="CNY", quote="USD", rate=Decimal("0.125"), observed_on=date(2026, 2, 1), source="b")
    assert conversion([older, newer], "USD", "CNY", date(2026, 3, 1)).rate == 8
