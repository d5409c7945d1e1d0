"""Applying a dated exchange rate; the rate, its date and its source are part of the answer.

Which rate holds on a day is the catalog's business (``catalog.rates.FxTable``); here it arrives as a value.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from app.pricing.currency import exponent
from app.pricing.errors import CurrencyMismatchError, MoneyFormatError
from app.pricing.money import CONTEXT, ONE, Money, plain

IDENTITY = "identity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The rate applied from one currency to another: one unit of ``base`` is ``rate`` units of ``quote``.

    Parameters
    ----------
    observed_on : date
        The business day whose fixing applies (a Saturday takes Friday's).
    source, method : str
        ``identity``, ``direct`` or ``cross via EUR``.
    """

    base: str
    quote: str
    rate: Decimal
    observed_on: date
    source: str
    method: str

    def __post_init__(self) -> None:
        exponent(self.base)
        exponent(self.quote)
        if not self.rate.is_finite() or self.rate <= 0:
            raise MoneyFormatError(str(self.rate), "an exchange rate is positive and finite")

    @classmethod
    def identity(cls, currency: str, on: date) -> "Conversion":
        """The rate of a currency to itself."""
        return cls(base=currency, quote=currency, rate=ONE, observed_on=on, source="", method=IDENTITY)

    def convert_unit(self, price: Money) -> Money:
        """A unit price in the other currency."""
        self._check(price)
        return price if self.method == IDENTITY else Money.unit(CONTEXT.multiply(price.amount, self.rate), self.quote)

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
