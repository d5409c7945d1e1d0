"""The time, as something that can be handed over and replaced in tests."""

from datetime import UTC, datetime, timedelta
from typing import Protocol

from sqlalchemy import Connection, text


class Clock(Protocol):
    """Where a service gets the time from."""

    def now(self) -> datetime:
        """Aware, in UTC."""
        ...

    def database_now(self, connection: Connection) -> datetime:
        """Return the time of the database server: the one clock that several application hosts share."""
        ...


class SystemClock:
    """The real time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def database_now(self, connection: Connection) -> datetime:
        if connection.dialect.name == "postgresql":
            moment: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
            return moment.astimezone(UTC)
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, at: datetime) -> None:
        self.set(at)

    def set(self, at: datetime) -> None:
        if at.tzinfo is None:
            raise ValueError("a clock needs a time with a zone")
        self._at = at.astimezone(UTC)

    def advance(self, by: timedelta) -> None:
        self._at += by

    def now(self) -> datetime:
        return self._at

    def database_now(self, connection: Connection) -> datetime:  # noqa: ARG002
        return self._at


def rfc3339(moment: datetime) -> str:
    """Format as RFC 3339 in UTC with milliseconds, ``2026-12-31T16:00:00.000Z``."""
    if moment.tzinfo is None:
        raise ValueError("a time on the wire needs a zone")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
