"""Dates and instants as clients write them: text in ISO 8601, never a number.

Pydantic would read ``0`` and ``"0.5"`` as seconds since 1970, and price a job at a day nobody named.
"""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*", re.ASCII)


def _date_text(value: Any) -> Any:
    if value is None or isinstance(value, date) or (isinstance(value, str) and _DATE.fullmatch(value)):
        return value
    raise PydanticCustomError("date_format", "a date is written 2026-12-31", {})


def _instant_text(value: Any) -> Any:
    if value is None or isinstance(value, datetime) or (isinstance(value, str) and _INSTANT.fullmatch(value)):
        return value
    raise PydanticCustomError("instant_format", "an instant is written 2026-12-31T16:00:00Z", {})


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("instant_range", "in UTC the year is from 1 to 9999", {}) from None


DateText = Annotated[date, BeforeValidator(_date_text)]
InstantText = Annotated[AwareDatetime, BeforeValidator(_instant_text), AfterValidator(_in_utc)]
"""An instant whose zone is stated, in UTC."""
