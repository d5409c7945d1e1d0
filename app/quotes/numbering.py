"""How a quote is called on paper: a series per tenant and year, and the revision as suffix."""

from dataclasses import dataclass

# SAP OCI carries a quote id in 35 characters, revision suffix included (NEW_ITEM-EXT_QUOTE_ID).
LONGEST_DISPLAY_NUMBER = 35
DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One number series: prefix and year; the counter itself lives in the database."""

    prefix: str
    year: int

    def __post_init__(self) -> None:
        if not self.prefix.isascii() or not self.prefix.isalnum() or not 1 <= len(self.prefix) <= 10:
            raise ValueError("a series prefix is 1 to 10 ASCII letters or digits")

    def number(self, counter: int) -> str:
        """Write the number of a quote: ``Q-2026-000123``."""
        if counter < 1:
            raise ValueError("quote numbers count from 1")
        return f"{self.prefix}-{self.year}-{counter:0{DIGITS}d}"


def display_number(number: str, revision: int) -> str:
    """Write the number of a revision: ``Q-2026-000123-2``."""
    shown = f"{number}-{revision}"
    if len(shown) > LONGEST_DISPLAY_NUMBER:
        raise ValueError(f"{shown} is longer than {LONGEST_DISPLAY_NUMBER} characters")
    return shown


def split_display_number(text: str) -> tuple[str, int | None]:
    """Read ``Q-2026-000123`` or ``Q-2026-000123-2`` back into a number and an optional revision."""
    parts = text.rsplit("-", 1)
    if text.count("-") >= 3 and parts[1].isdigit():
        return parts[0], int(parts[1])
    return text, None
