"""Statements on the outbox."""

from datetime import datetime

from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from app.events.event import Event
from app.events.tables import deliveries, event_sequences, events, webhooks
from app.foundation.identifiers import new_id

# Any number no other program uses on the same database.
_PUBLISHER_LOCK = 0x6770_7571_6F74_6502
_COLUMNS = (
    events.c.tenant_id,
    events.c.id,
    events.c.type,
    events.c.subject,
    events.c.occurred_at,
    events.c.data,
    events.c.sequence,
)


def insert_event(connection: Connection, event: Event) -> None:
    connection.execute(
        insert(events).values(
            tenant_id=event.tenant_id,
            id=event.id,
            type=event.type,
            subject=event.subject,
            occurred_at=event.occurred_at,
            data=dict(event.data),
        )
    )


def lock_publisher(connection: Connection) -> bool:
    """Be the only publisher until the commit; SQLite has one writer anyway."""
    if connection.dialect.name != "postgresql":
        return True
    statement = text("SELECT pg_try_advisory_xact_lock(:key)")
    return bool(connection.execute(statement, {"key": _PUBLISHER_LOCK}).scalar_one())


def unpublished(connection: Connection, limit: int) -> list[Event]:
    rows = connection.execute(select(*_COLUMNS).where(events.c.sequence.is_(None)).order_by(events.c.id).limit(limit))
    return [Event(**row._mapping) for row in rows]


def next_sequence(connection: Connection, tenant_id: str) -> int:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(event_sequences).values(tenant_id=tenant_id, last_sequence=1)
    statement = statement.on_conflict_do_update(
        index_elements=["tenant_id"], set_={"last_sequence": event_sequences.c.last_sequence + 1}
    )
    sequence: int = connection.execute(statement.returning(event_sequences.c.last_sequence)).scalar_one()
    return sequence


def set_sequence(connection: Connection, event: Event, sequence: int) -> None:
    connection.execute(
        update(events)
        .where(events.c.tenant_id == event.tenant_id, events.c.id == event.id, events.c.sequence.is_(None))
        .values(sequence=sequence)
    )


def queue_deliveries(connection: Connection, event: Event, now: datetime) -> None:
    """Queue the event for every enabled webhook of its tenant that asked for its type; tests go to one alone."""
    if event.type == "webhook.test":
        return
    rows = connection.execute(
        select(webhooks.c.id, webhooks.c.event_types).where(
            webhooks.c.tenant_id == event.tenant_id, webhooks.c.status == "enabled"
        )
    )
    for row in rows.all():
        if "*" in row.event_types or event.type in row.event_types:
            insert_delivery(connection, event.tenant_id, row.id, event.id, now)


def insert_delivery(connection: Connection, tenant_id: str, webhook_id: str, event_id: str, now: datetime) -> str:
    delivery_id = new_id("dlv")
    connection.execute(
        insert(deliveries).values(
            tenant_id=tenant_id,
            id=delivery_id,
            webhook_id=webhook_id,
            event_id=event_id,
            status="pending",
            attempts=0,
            next_attempt_at=now,
            created_at=now,
        )
    )
    return delivery_id


def feed(connection: Connection, tenant_id: str, *, after_sequence: int, limit: int) -> list[Event]:
    rows = connection.execute(
        select(*_COLUMNS)
        .where(events.c.tenant_id == tenant_id, events.c.sequence > after_sequence)
        .order_by(events.c.sequence)
        .limit(limit)
    )
    return [Event(**row._mapping) for row in rows]


def find_event(connection: Connection, tenant_id: str, event_id: str) -> Event | None:
    row = connection.execute(
        select(*_COLUMNS).where(events.c.tenant_id == tenant_id, events.c.id == event_id)
    ).one_or_none()
    return None if row is None else Event(**row._mapping)
