"""How long an offer stands: a local date, inclusive, in a named zone, and the instant it ends in UTC, exclusive."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from app.foundation.time_zones import is_zone


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """Period of one revision.

    Parameters
    ----------
    valid_from_on, valid_through_on : date
        Local dates in ``timezone``; the last day counts in full.
    timezone : str
        IANA name.
    """

    valid_from_on: date
    valid_through_on: date
    timezone: str

    def __post_init__(self) -> None:
        if self.valid_through_on < self.valid_from_on:
            raise ValueError(f"valid_through {self.valid_through_on} is before valid_from {self.valid_from_on}")
        if not is_zone(self.timezone):
            raise ValueError(f"{self.timezone!r} is not an IANA time zone")

    @property
    def expires_at(self) -> datetime:
        """The first instant at which the offer no longer stands (UTC)."""
        return end_of_local_day(self.valid_through_on, self.timezone)

    def as_content(self) -> dict[str, str]:
        """Give the form that is stored, hashed and shown."""
        return {
            "from": self.valid_from_on.isoformat(),
            "through": self.valid_through_on.isoformat(),
            "timezone": self.timezone,
            "expires_at": utc_text(self.expires_at),
        }


def stored_validity(content: Mapping[str, Any]) -> Validity:
    """Read the period of a stored revision."""
    stored = content["validity"]
    return Validity(
        valid_from_on=date.fromisoformat(stored["from"]),
        valid_through_on=date.fromisoformat(stored["through"]),
        timezone=stored["timezone"],
    )


def local_today(now: datetime, timezone: str) -> date:
    """Give the calendar date at ``now`` in ``timezone``."""
    return now.astimezone(ZoneInfo(timezone)).date()


def end_of_local_day(day: date, timezone: str) -> datetime:
    """Give the first instant after ``day`` in ``timezone``, in UTC.

    Where the following midnight is skipped by a clock change, ``fold=0`` reads it with the offset before the gap,
    which is the instant of the change: the first instant of the next local day. Where midnight happens twice,
    ``fold=0`` is the first of the two.
    """
    midnight = datetime.combine(day + timedelta(days=1), time.min, tzinfo=ZoneInfo(timezone))
    return midnight.astimezone(UTC)


def utc_text(instant: datetime) -> str:
    """Write an instant as RFC 3339 in UTC with ``Z``, milliseconds only where there are any."""
    moment = instant.astimezone(UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    if moment.microsecond:
        text += f".{moment.microsecond // 1000:03d}"
    return text + "Z"
