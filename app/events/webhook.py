"""A webhook and a delivery as they are kept, and when a delivery is tried again."""

from dataclasses import dataclass
from datetime import datetime, timedelta

# Pauses before each attempt, from the example schedule of the Standard Webhooks specification.
SCHEDULE = tuple(
    timedelta(seconds=seconds)
    for seconds in (0, 5, 5 * 60, 30 * 60, 2 * 3600, 5 * 3600, 10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600)
)
# Answers that ask for less, not only for later.
THROTTLING = frozenset({429, 502, 504})


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where a tenant's events are sent."""

    tenant_id: str
    id: str
    url: str
    event_types: tuple[str, ...]
    description: str
    sealed_secret: str
    sealed_previous_secret: str | None
    previous_secret_expires_at: datetime | None
    status: str
    disabled_reason: str | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One event on its way to one webhook."""

    tenant_id: str
    id: str
    webhook_id: str
    event_id: str
    status: str
    attempts: int
    next_attempt_at: datetime | None
    response_status: int | None
    response_excerpt: str | None
    failure: str | None
    created_at: datetime
    finished_at: datetime | None


def next_attempt_at(
    attempts_made: int, now: datetime, *, status: int | None, retry_after_s: int | None
) -> datetime | None:
    """Return when to try again, or None when every attempt was made."""
    if attempts_made >= len(SCHEDULE):
        return None
    pause = SCHEDULE[attempts_made]
    if status in THROTTLING:
        asked = timedelta(seconds=min(retry_after_s or 60, 86_400))
        pause = max(pause, asked)
    return now + pause
