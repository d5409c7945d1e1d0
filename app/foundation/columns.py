"""Column types that keep a value exactly on SQLite and PostgreSQL, and the one metadata of all tables."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import DateTime, Dialect, MetaData, Numeric, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from app.foundation.canonical import canonical_bytes

# Every constraint has a name, because SQLite can only drop named ones (batch migrations).
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

DECIMAL_PRECISION = 38
DECIMAL_SCALE = 12
_LARGEST = Decimal(10) ** (DECIMAL_PRECISION - DECIMAL_SCALE)


def plain_decimal(value: Decimal) -> str:
    """Write a decimal in fixed notation without an exponent, trailing zeros or a negative zero."""
    if not value.is_finite():
        raise ValueError(f"{value} is not a number that can be stored")
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


class ExactDecimal(TypeDecorator[Decimal]):
    """A decimal that comes back as it went in: canonical TEXT on SQLite, NUMERIC(38,12) on PostgreSQL.

    Never order, compare or add it in SQL: on SQLite it is text. A value that would be rounded is refused.
    """

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(Numeric(DECIMAL_PRECISION, DECIMAL_SCALE))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: Decimal | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if not isinstance(value, Decimal):
            raise TypeError(f"an exact decimal is a Decimal, not {type(value).__name__}")
        text = plain_decimal(value)
        if abs(value) >= _LARGEST or len(text.partition(".")[2]) > DECIMAL_SCALE:
            raise ValueError(f"{value} does not fit NUMERIC({DECIMAL_PRECISION},{DECIMAL_SCALE}) exactly")
        return Decimal(text) if dialect.name == "postgresql" else text

    def process_result_value(self, value: Any, dialect: Dialect) -> Decimal | None:  # noqa: ARG002
        return None if value is None else Decimal(plain_decimal(Decimal(value)))


class UtcDateTime(TypeDecorator[datetime]):
    """An instant: TIMESTAMPTZ on PostgreSQL, fixed-width ISO 8601 TEXT (sorts by time) on SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        return dialect.type_descriptor(Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored time needs a zone")
        instant = value.astimezone(UTC)
        if dialect.name == "postgresql":
            return instant
        return instant.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        if value is None:
            return None
        if isinstance(value, str):
            return datetime.fromisoformat(value)
        moment: datetime = value
        return moment.astimezone(UTC)


class CanonicalJson(TypeDecorator[Any]):
    """A JSON value kept as its RFC 8785 text, so that the stored bytes are the hashed bytes on either database."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002
        return None if value is None else canonical_bytes(value).decode()

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:  # noqa: ARG002
        return None if value is None else orjson.loads(value)
