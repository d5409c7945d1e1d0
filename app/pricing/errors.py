"""What can be wrong with money; the codes are the problem slugs a client sees."""


class PricingError(ValueError):
    """Base of all pricing errors; ``code`` is stable."""

    code = "pricing"


class MoneyFormatError(PricingError):
    """An amount that is not a plain decimal string of at most 18 + 12 digits."""

    code = "money-format"

    def __init__(self, text: str, why: str) -> None:
        super().__init__(f"{text!r} is not an amount: {why}")


class MoneyNotStringError(PricingError):
    """An amount that came as a JSON number, which binary floating point may already have changed."""

    code = "money-not-string"

    def __init__(self, value: object) -> None:
        super().__init__(f'amounts are decimal strings ("12.50"), got the {type(value).__name__} {value!r}')


class CurrencyUnknownError(PricingError):
    """A code that is not in the ISO 4217 table."""

    code = "currency-unknown"

    def __init__(self, currency: str) -> None:
        super().__init__(f"{currency!r} is not an ISO 4217 currency code")


class CurrencyMismatchError(PricingError):
    """Two currencies met where no rate was given."""

    code = "currency-mismatch"

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} and {other} cannot be added or compared without a dated exchange rate")
