"""Amounts of money: decimal strings in, exact decimals inside, fixed-scale strings out (``docs``: money rules)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal, DivisionByZero, InvalidOperation, Overflow

from app.pricing.currency import exponent
from app.pricing.errors import CurrencyMismatchError, MoneyFormatError, MoneyNotStringError

# 18 integer digits and 12 decimals are 30; four guard digits keep one product or quotient exact enough to round once
CONTEXT = Context(prec=34, rounding=ROUND_HALF_UP, traps=[InvalidOperation, DivisionByZero, Overflow])

UNIT_PRICE_DECIMALS = 12
QUANTITY_DECIMALS = 9
INTEGER_DIGITS = 18

_PATTERN = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,12})?", re.ASCII)
_LONGEST = 30
ZERO = Decimal(0)
ONE = Decimal(1)


def parse_decimal(value: object) -> Decimal:
    """Read a decimal string of the wire format.

    Raises
    ------
    MoneyNotStringError
        The value is a number: JSON parsers have already rounded it.
    MoneyFormatError
        Exponents, separators, other digits than ASCII, ``-0``, too long.
    """
    if not isinstance(value, str):
        raise MoneyNotStringError(value)
    if len(value) > _LONGEST:
        raise MoneyFormatError(value[:_LONGEST] + "...", f"longer than {_LONGEST} characters")
    if not _PATTERN.fullmatch(value):
        raise MoneyFormatError(value, "expected digits with at most 18 before and 12 after one dot, no exponent")
    number = Decimal(value)
    if value.startswith("-") and number == 0:
        raise MoneyFormatError(value, "negative zero")
    return number


def quantize(number: Decimal, decimals: int) -> Decimal:
    """Round half up, away from zero, to ``decimals`` places; never yields a negative zero.

    Raises
    ------
    MoneyFormatError
        More digits than any amount has: a price of 18 digits over a tiny share, say.
    """
    try:
        rounded = number.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP, context=CONTEXT)
    except InvalidOperation:
        raise MoneyFormatError(f"{number:.6E}", f"more than {INTEGER_DIGITS} digits before the dot") from None
    return ZERO.scaleb(-decimals) if rounded == 0 else rounded


def plain(number: Decimal, least_decimals: int = 0) -> str:
    """The shortest plain notation with at least ``least_decimals`` decimals and no exponent."""
    text = format(number, "f")
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(least_decimals, "0")
    shown = f"{whole}.{fraction}" if fraction else whole
    return shown.removeprefix("-") if number == 0 else shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Money:
    """An amount in one currency; a unit price may have twelve decimals, a line or total has the currency's own."""

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        exponent(self.currency)
        if not isinstance(self.amount, Decimal) or not self.amount.is_finite():
            raise MoneyFormatError(str(self.amount), "not a finite decimal")
        scale = self.amount.as_tuple().exponent
        if isinstance(scale, int) and -scale > UNIT_PRICE_DECIMALS:
            raise MoneyFormatError(str(self.amount), f"more than {UNIT_PRICE_DECIMALS} decimals")
        if self.amount.adjusted() >= INTEGER_DIGITS and self.amount != 0:
            raise MoneyFormatError(str(self.amount), f"more than {INTEGER_DIGITS} digits before the dot")

    @classmethod
    def parse(cls, text: object, currency: str) -> "Money":
        """Read the wire format."""
        return cls(amount=parse_decimal(text), currency=currency)

    @classmethod
    def zero(cls, currency: str) -> "Money":
        """A true zero, of something that was counted and costs nothing; never a stand-in for a missing price."""
        return cls(amount=ZERO.scaleb(-exponent(currency)), currency=currency)

    @classmethod
    def unit(cls, amount: Decimal, currency: str) -> "Money":
        """A unit price, rounded to twelve decimals."""
        return cls(amount=quantize(amount, UNIT_PRICE_DECIMALS), currency=currency)

    @classmethod
    def settled(cls, amount: Decimal, currency: str) -> "Money":
        """An amount rounded once to the currency's minor unit."""
        return cls(amount=quantize(amount, exponent(currency)), currency=currency)

    def _same(self, other: "Money") -> None:
        if self.currency != other.currency:
            raise CurrencyMismatchError(self.currency, other.currency)

    def __add__(self, other: "Money") -> "Money":
        self._same(other)
        return Money(amount=CONTEXT.add(self.amount, other.amount), currency=self.currency)

    def __sub__(self, other: "Money") -> "Money":
        self._same(other)
        return Money(amount=CONTEXT.subtract(self.amount, other.amount), currency=self.currency)

    def __neg__(self) -> "Money":
        return Money(amount=-self.amount if self.amount else self.amount, currency=self.currency)

    def __lt__(self, other: "Money") -> bool:
        self._same(other)
        return self.amount < other.amount

    def times_unit(self, factor: Decimal) -> "Money":
        """The product as a unit price."""
        return Money.unit(CONTEXT.multiply(self.amount, factor), self.currency)

    def times(self, quantity: Decimal) -> "Money":
        """The product rounded once to the currency's minor unit: a line's net."""
        return Money.settled(CONTEXT.multiply(self.amount, quantity), self.currency)

    def per(self, quantity: Decimal) -> "Money":
        """The quotient as a unit price."""
        return Money.unit(CONTEXT.divide(self.amount, quantity), self.currency)

    @property
    def text(self) -> str:
        """Plain notation, at least the currency's decimals, up to twelve."""
        return plain(self.amount, exponent(self.currency))

    def as_json(self) -> dict[str, str]:
        """The wire format."""
        return {"amount": self.text, "currency": self.currency}


def total(amounts: Iterable[Money], currency: str) -> Money:
    """Exact sum; the currency is stated because an empty sum has none of its own."""
    result = Money.zero(currency)
    for amount in amounts:
        result = result + amount
    return result


def quantity(number: Decimal) -> Decimal:
    """A billed quantity, rounded half up to nine decimals."""
    return quantize(number, QUANTITY_DECIMALS)


def quantity_from_float(number: float, significant_digits: int = 6) -> Decimal:
    """The one door by which an engine figure becomes a quantity: quantised to significant digits first.

    Parameters
    ----------
    number : float
        A performance figure.
    significant_digits : int
        Digits kept; differences below them come from floating point, not from physics.
    """
    value = Decimal(repr(float(number)))
    if not value.is_finite():
        raise MoneyFormatError(repr(number), "a quantity must be finite")
    if value == 0:
        return ZERO
    return quantity(quantize(value, significant_digits - 1 - value.adjusted()))
