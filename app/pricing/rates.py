"""Exchange rates: dated observations, direct, inverse or crossed through a common base; the date used is part of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Context, Decimal

from app.pricing.currency import exponent
from app.pricing.errors import CurrencyMismatchError, FxUnavailableError, MoneyFormatError
from app.pricing.money import CONTEXT, ONE, ZERO, Money, plain

# Reference rates are published with five to six significant digits; twelve leave crossing them exact to the cent
# on the largest amount the wire format allows to be sensible (10^10).
APPLIED_RATE_DIGITS = 12
_APPLIED = Context(prec=APPLIED_RATE_DIGITS, rounding=CONTEXT.rounding)


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRate:
    """One published rate: one unit of ``base`` is ``rate`` units of ``quote``, as of ``observed_on``."""

    base: str
    quote: str
    rate: Decimal
    observed_on: date
    source: str

    def __post_init__(self) -> None:
        exponent(self.base)
        exponent(self.quote)
        if not self.rate.is_finite() or self.rate <= 0:
            raise MoneyFormatError(str(self.rate), "an exchange rate is positive and finite")


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The rate applied from one currency to another, and where it came from.

    Parameters
    ----------
    base, quote : str
    rate : Decimal
        Rounded half up to ``APPLIED_RATE_DIGITS`` significant digits before use.
    observed_on : date
        The older of the legs.
    source, method : str
        ``identity``, ``direct``, ``inverse`` or ``cross via EUR``.
    """

    base: str
    quote: str
    rate: Decimal
    observed_on: date
    source: str
    method: str

    def convert_unit(self, price: Money) -> Money:
        """A unit price in the other currency."""
        self._check(price)
        return price if self.method == "identity" else Money.unit(CONTEXT.multiply(price.amount, self.rate), self.quote)

    def convert(self, amount: Money) -> Money:
        """A settled amount in the other currency."""
        self._check(amount)
        return Money.settled(CONTEXT.multiply(amount.amount, self.rate), self.quote)

    def _check(self, amount: Money) -> None:
        if amount.currency != self.base:
            raise CurrencyMismatchError(amount.currency, self.base)

    def as_json(self) -> dict[str, str]:
        """The statement printed beside converted figures."""
        return {
            "pair": f"{self.base}/{self.quote}",
            "rate": plain(self.rate),
            "as_of": self.observed_on.isoformat(),
            "source": self.source,
            "side": "mid",
            "method": self.method,
        }


def conversion(rates: Iterable[FxRate], base: str, quote: str, as_of: date) -> Conversion:
    """The newest rate on or before ``as_of``: direct, else inverse, else crossed through one common currency.

    Raises
    ------
    FxUnavailableError
        No published rate connects the two; nothing is extrapolated.
    """
    exponent(base)
    exponent(quote)
    if base == quote:
        return Conversion(base=base, quote=quote, rate=ONE, observed_on=as_of, source="", method="identity")
    legs = _newest_legs(rates, as_of)
    direct = legs.get((base, quote))
    if direct is not None:
        return direct
    crossings = [
        _cross(legs[base, middle], legs[middle, quote])
        for middle in sorted({b for b, _ in legs})
        if (base, middle) in legs and (middle, quote) in legs
    ]
    if not crossings:
        raise FxUnavailableError(base, quote, as_of.isoformat())
    return max(crossings, key=lambda c: c.observed_on)


def _newest_legs(rates: Iterable[FxRate], as_of: date) -> dict[tuple[str, str], Conversion]:
    """Both directions of the newest usable observation of each pair; a published direction beats an inverted one."""
    legs: dict[tuple[str, str], Conversion] = {}
    for rate in sorted((r for r in rates if r.observed_on <= as_of), key=lambda r: (r.observed_on, r.source)):
        legs[rate.base, rate.quote] = _leg(rate.base, rate.quote, rate.rate, rate, "direct")
        opposite = legs.get((rate.quote, rate.base))
        if opposite is None or opposite.method == "inverse" or opposite.observed_on < rate.observed_on:
            inverse = CONTEXT.divide(ONE, rate.rate)
            legs[rate.quote, rate.base] = _leg(rate.quote, rate.base, inverse, rate, "inverse")
    return legs


def _leg(base: str, quote: str, rate: Decimal, published: FxRate, method: str) -> Conversion:
    return Conversion(
        base=base,
        quote=quote,
        rate=_APPLIED.plus(rate),
        observed_on=published.observed_on,
        source=published.source,
        method=method,
    )


def _cross(first: Conversion, second: Conversion) -> Conversion:
    sources = first.source if first.source == second.source else f"{first.source}; {second.source}"
    return Conversion(
        base=first.base,
        quote=second.quote,
        rate=_APPLIED.plus(CONTEXT.multiply(first.rate, second.rate)),
        observed_on=min(first.observed_on, second.observed_on),
        source=sources,
        method=f"cross via {first.quote}",
    )


def fraction(text_or_number: Decimal) -> Decimal:
    """A percentage as a decimal fraction in [0, 1)."""
    if not ZERO <= text_or_number < ONE:
        raise MoneyFormatError(str(text_or_number), "a share is at least 0 and below 1")
    return text_or_number
