"""Field types of the request schemas: bounded numbers, decimal strings, money. JSON numbers are never money."""

from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, Strict
from pydantic_core import PydanticCustomError

from app.foundation.texts import Visible
from app.pricing.currency import exponent
from app.pricing.errors import PricingError
from app.pricing.money import Money, parse_decimal, plain

V = TypeVar("V")


class Schema(BaseModel):
    """Base of everything a client sends: unknown keys are refused, values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True)


def _checked(read: Callable[[Any], V]) -> Callable[[Any], V]:
    """Turn pricing errors into field errors that keep their problem slug as the error's code."""

    def check(value: Any) -> V:
        try:
            return read(value)
        except PricingError as error:
            raise PydanticCustomError(error.code, "{reason}", {"reason": str(error)}) from None

    return check


def _currency(value: str) -> str:
    exponent(value)
    return value


def _read_decimal(value: Any) -> Decimal:
    return value if isinstance(value, Decimal) else parse_decimal(value)


def _read_fraction(value: Any) -> Decimal:
    try:
        return _read_decimal(value)
    except PricingError as error:
        raise PydanticCustomError(
            error.code,
            'a decimal fraction in a string is expected, "0.15" for fifteen percent, with at most 12 digits after the '
            "point (strings, because JSON numbers are rounded on the way), got {given}",
            {"given": repr(value)[:40]},
        ) from None


def _decimal_text(value: Decimal) -> str:
    return plain(value)


Name = Annotated[Visible, Field(min_length=1, max_length=128)]
Text = Annotated[Visible, Field(min_length=1, max_length=200)]
CurrencyCode = Annotated[str, Strict(), AfterValidator(_checked(_currency))]
DecimalText = Annotated[Decimal, BeforeValidator(_checked(_read_decimal)), PlainSerializer(_decimal_text)]
Fraction = Annotated[Decimal, BeforeValidator(_read_fraction), PlainSerializer(_decimal_text)]
Share = Annotated[Fraction, Field(ge=0, le=1)]
"""A decimal fraction as a string: "0.15" is fifteen percent."""


class MoneyField(Schema):
    """An amount on the wire: ``{"amount": "12.50", "currency": "USD"}``."""

    amount: DecimalText
    currency: CurrencyCode

    @property
    def money(self) -> Money:
        """The value pricing works with."""
        return Money(amount=self.amount, currency=self.currency)


def _positive(value: MoneyField) -> MoneyField:
    if value.amount <= 0:
        raise PydanticCustomError("greater_than", "a price is above zero; leave it out when it is not known", {"gt": 0})
    return value


Price = Annotated[MoneyField, AfterValidator(_positive)]
"""A price somebody states: above zero, because an unknown price is left out and never written as zero."""
