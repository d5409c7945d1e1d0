"""What every file format is read into before anything is checked or stored."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from app.catalog.offers import OfferKey, Source

# Longest decimal text of a price (API contract 2.4): longer is an attack or a binary float printed in full.
MAX_DECIMAL_CHARACTERS = 30
MAX_DECIMALS = 12
# No exponent, no grouping, no other digits than ASCII, at most 18 before the dot (API contract 2.4).
PLAIN_DECIMAL = re.compile(r"-?[0-9]{1,18}(\.[0-9]+)?", re.ASCII)
# Longest texts the catalog's columns hold, by the column of a price file.
LONGEST: Mapping[str, int] = {
    "provider": 64,
    "instance_type": 256,
    "accelerator": 128,
    "region": 128,
    "product": 64,
    "tier": 64,
    "tenancy": 32,
    "os": 32,
    "licence": 64,
}
# Reason of a rejected row that stands for a provider's whole file: its last good prices stay.
BROKEN_PROVIDER = "broken_provider_file"


class RowError(ValueError):
    """A row that cannot be read, with a stable reason code."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class FileError(ValueError):
    """A file that cannot be read at all: nothing of it is imported."""

    def __init__(self, reason: str, detail: str, line: int | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedPrice:
    """One price as a file states it, units and names normalised, not yet believed."""

    line: int
    key: OfferKey
    scope: str
    sold_unit: str
    accelerator_id: str | None
    accelerator_count: int
    amount: Decimal
    currency: str
    price_unit: str
    observed_on: date | None
    valid_from: date
    valid_to: date | None
    valid_from_published: bool
    source: Source
    kind: str
    confidence: str
    vcpus: int | None = None
    memory_gib: Decimal | None = None
    min_quantity: int = 1
    quantity_step: int = 1
    indicative: bool = False
    excluded_reason: str | None = None
    note: str | None = None
    jump_confirmed: bool = False
    doubts: tuple[tuple[str, str], ...] = ()
    # Identity of the offer: the same key gives the same id on every installation.
    offer_id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "offer_id", offer_id_of(self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRow:
    """A row that could not be staged, as read, with the reason; it is reported and quarantined, never dropped."""

    line: int
    reason: str
    detail: str
    raw: Mapping[str, str] = field(default_factory=dict)
    provider: str | None = None


StagedRow = StagedPrice | RejectedRow


def offer_id_of(key: OfferKey) -> str:
    """Derive an offer's id from its key."""
    return "ofr_" + hashlib.sha256("\x1f".join(key.parts()).encode()).hexdigest()[:32]


@lru_cache(maxsize=4_096)
def source_of(citation: str, method: str, retrieved_on: date | None = None, licence: str | None = None) -> Source:
    """Make a source whose id follows from what it is."""
    digest = hashlib.sha256(f"{citation}\x1f{method}".encode()).hexdigest()[:32]
    return Source(id="src_" + digest, citation=citation, method=method, retrieved_on=retrieved_on, licence=licence)


def check_texts(row: Mapping[str, object]) -> None:
    """Refuse a row with a value that is not text, or is longer than its column."""
    for name, value in row.items():
        if not isinstance(value, str):
            raise RowError("malformed_row", f"{name} is a text in this format, not {str(value)[:40]}")
        if len(value) > LONGEST.get(name, len(value)):
            raise RowError("text_too_long", f"{name} has {len(value)} characters, at most {LONGEST[name]} are kept")


def text_of(value: object) -> str:
    """Give a text of a JSON file; anything else in its place makes the file another kind of file."""
    if not isinstance(value, str):
        raise TypeError(f"a text is expected, not {str(value)[:40]}")
    return value


def decimal_of(value: object) -> Decimal:
    """Give a number of a JSON file; one that would take thousands of digits to write out is not an amount."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise TypeError(f"a decimal number is expected, not {str(value)[:40]}")
    number = Decimal(value)
    if not number.is_finite() or abs(number.adjusted()) > MAX_DECIMAL_CHARACTERS:
        raise ValueError(f"{str(value)[:40]} is not an amount")
    return number


def read_amount(text: str) -> Decimal:
    """Read a price; a blank is unknown, zero is a sentinel of its source and neither is ever a price."""
    text = text.strip()
    if not text:
        raise RowError("missing_price", "the price is blank: unknown, not zero")
    if len(text) > MAX_DECIMAL_CHARACTERS or not PLAIN_DECIMAL.fullmatch(text):
        raise RowError("malformed_price", f"{text[:40]!r} is not a plain decimal number")
    amount = Decimal(text)
    if amount <= 0:
        raise RowError("non_positive_price", f"{text} is not a price; an unknown price is left blank")
    exponent = amount.normalize().as_tuple().exponent
    if not isinstance(exponent, int) or -exponent > MAX_DECIMALS:
        raise RowError("malformed_price", f"{text} has more than {MAX_DECIMALS} decimals")
    return amount


def read_date(text: str, name: str) -> date | None:
    """Read a date, blank = unknown."""
    if not text.strip():
        return None
    try:
        return date.fromisoformat(text.strip()[:10])
    except ValueError:
        raise RowError("malformed_date", f"{name} {text!r} is not YYYY-MM-DD") from None


def read_count(text: str, name: str) -> int:
    """Read a whole number from 1."""
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise RowError("malformed_count", f"{name} {text!r} is not a number") from None
    if number != number.to_integral_value() or not 1 <= number <= 100_000:
        raise RowError("malformed_count", f"{name} {text!r} is not a whole number from 1")
    return int(number)


def read_word(text: str, known: Sequence[str], reason: str, name: str) -> str:
    """Read a word of a fixed vocabulary; a blank or another word is an error, nothing is implied."""
    word = text.strip()
    if word not in known:
        raise RowError(reason, f"{name} {text[:40]!r} is not one of {', '.join(known)}")
    return word


def read_currency(text: str) -> str:
    """Read an ISO 4217 code; blank is an error, there is no default currency."""
    code = text.strip()
    if len(code) != 3 or not code.isascii() or not code.isalpha() or not code.isupper():
        raise RowError("missing_currency", f"currency {text!r} is not an ISO 4217 code; no currency is ever assumed")
    return code
