"""The money rules of the API contract, and the public bugs behind them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pricing.currency import EXPONENTS, exponent
from app.pricing.errors import CurrencyMismatchError, CurrencyUnknownError, MoneyFormatError, MoneyNotStringError
from app.pricing.money import Money, parse_decimal, plain, quantity_from_float, total

amounts = st.decimals(min_value=-(10**12), max_value=10**12, allow_nan=False, allow_infinity=False, places=12)


@pytest.mark.parametrize(
    "text",
    ["1e3", "1e400000", "1_000", "٣", "-0", "-0.00", "01", "+1", "1.", ".5", " 1", "NaN", "Infinity", "1,5", "",
     "1.1234567890123", "1234567890123456789", "9" * 31],
)  # fmt: skip
def test_everything_but_a_plain_decimal_string_is_refused(text: str) -> None:
    with pytest.raises(MoneyFormatError):
        parse_decimal(text)


@pytest.mark.parametrize("number", [1, 1.5, Decimal("1.5"), True, None])
def test_json_numbers_are_refused_because_binary_floats_already_changed_them(number: object) -> None:
    with pytest.raises(MoneyNotStringError):
        parse_decimal(number)


@pytest.mark.parametrize(
    ("currency", "decimals"), [("JPY", 0), ("USD", 2), ("CNY", 2), ("EUR", 2), ("KWD", 3), ("CLF", 4)]
)
def test_decimals_come_from_iso_4217(currency: str, decimals: int) -> None:
    assert exponent(currency) == decimals


def test_the_table_knows_only_codes_of_three_letters_once() -> None:
    assert all(len(code) == 3 and code.isupper() for code in EXPONENTS)
    assert len(EXPONENTS) > 150
    with pytest.raises(CurrencyUnknownError):
        exponent("usd")


@pytest.mark.parametrize(
    ("amount", "currency", "settled"),
    [("2.345", "USD", "2.35"), ("-2.345", "USD", "-2.35"), ("4.5", "JPY", "5"), ("1.0005", "KWD", "1.001"),
     ("-0.001", "USD", "0.00"), ("0.125", "CNY", "0.13")],
)  # fmt: skip
def test_settling_rounds_half_away_from_zero_at_the_minor_unit(amount: str, currency: str, settled: str) -> None:
    assert Money.settled(Decimal(amount), currency).text == settled


def test_what_has_more_digits_than_an_amount_is_refused_by_name() -> None:
    with pytest.raises(MoneyFormatError, match=r"8\.108094E\+26"):
        Money.unit(Decimal("810809426228697539762961065.6508108"), "USD")


def test_a_yen_unit_price_keeps_its_decimals() -> None:
    price = Money.parse("4.5", "JPY")
    assert price.text == "4.5"
    assert price.times(Decimal(3)).text == "14"


def test_two_currencies_never_meet_without_a_rate() -> None:
    with pytest.raises(CurrencyMismatchError):
        Money.parse("1", "USD") + Money.parse("1", "CNY")


@given(amounts)
def test_text_reads_back_as_the_same_amount(amount: Decimal) -> None:
    money = Money(amount=amount, currency="USD")
    assert Money.parse(money.text, "USD").amount == amount
    assert "E" not in money.text


@given(st.lists(amounts, max_size=50))
def test_sums_are_exact(values: list[Decimal]) -> None:
    added = total((Money(amount=v, currency="KWD") for v in values), "KWD").amount
    cents = sum(int(v.scaleb(12)) for v in values)
    assert int(added.scaleb(12)) == cents


@pytest.mark.parametrize(
    ("figure", "shown"), [(123456789.0, "123457000"), (0.000123456789, "0.000123457"), (0.1 + 0.2, "0.3"), (0.0, "0")]
)
def test_engine_figures_become_quantities_at_six_digits(figure: float, shown: str) -> None:
    assert plain(quantity_from_float(figure)) == shown


def test_a_quantity_is_finite() -> None:
    with pytest.raises(MoneyFormatError):
        quantity_from_float(float("nan"))
