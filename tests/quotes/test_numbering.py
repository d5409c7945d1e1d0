import pytest

from app.quotes.numbering import Series, display_number, split_display_number


def test_number_and_revision() -> None:
    number = Series(prefix="Q", year=2026).number(123)
    assert number == "Q-2026-000123"
    assert display_number(number, 2) == "Q-2026-000123-2"


def test_numbers_grow_past_their_padding() -> None:
    assert Series(prefix="Q", year=2026).number(12_345_678) == "Q-2026-12345678"


@pytest.mark.parametrize("prefix", ["", "报价", "Q-1", "ABCDEFGHIJK"])
def test_bad_prefixes(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        Series(prefix=prefix, year=2026)


def test_no_number_zero() -> None:
    with pytest.raises(ValueError, match="from 1"):
        Series(prefix="Q", year=2026).number(0)


def test_display_number_stays_inside_oci() -> None:
    longest = display_number(Series(prefix="ABCDEFGHIJ", year=2026).number(999_999_999), 9_999)
    assert len(longest) <= 35
    with pytest.raises(ValueError, match="35"):
        display_number("A" * 34, 12)


@pytest.mark.parametrize(
    ("text", "number", "revision"),
    [("Q-2026-000123", "Q-2026-000123", None), ("Q-2026-000123-2", "Q-2026-000123", 2), ("quo_1", "quo_1", None)],
)
def test_reading_it_back(text: str, number: str, revision: int | None) -> None:
    assert split_display_number(text) == (number, revision)
