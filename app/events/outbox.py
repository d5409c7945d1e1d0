"""Announce that something happened, in the transaction in which it happens."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.events import repository
from app.events.event import EVENT_TYPES, Event
from app.foundation.identifiers import new_id

__all__ = ["EVENT_TYPES", "Event", "announce", "feed", "publish_pending"]

PUBLISH_LIMIT = 500


def announce(
    connection: Connection, *, tenant_id: str, event_type: str, subject: str, at: datetime, data: Mapping[str, Any]
) -> Event:
    """Put an event into the outbox. ``data`` is thin: ids, revision, status, content hash; never cost or secrets."""
    if event_type not in EVENT_TYPES:
        raise ValueError(f"{event_type!r} is not one of the event types")
    event = Event(tenant_id=tenant_id, id=new_id("evt"), type=event_type, subject=subject, occurred_at=at, data=data)
    repository.insert_event(connection, event)
    return event


def publish_pending(connection: Connection, *, now: datetime, limit: int = PUBLISH_LIMIT) -> int:
    """Number what was committed since the last call and queue its deliveries; run as the system. One at a time."""
    if not repository.lock_publisher(connection):
        return 0
    pending = repository.unpublished(connection, limit)
    for event in pending:
        sequence = repository.next_sequence(connection, event.tenant_id)
        repository.set_sequence(connection, event, sequence)
        repository.queue_deliveries(connection, event, now)
    return len(pending)


def feed(connection: Connection, tenant_id: str, *, after_sequence: int, limit: int) -> list[Event]:
    """Return the tenant's published events in order."""
    return repository.feed(connection, tenant_id, after_sequence=after_sequence, limit=limit)
