"""Tables of the events room: the outbox with its numbering, webhooks and their deliveries."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Table,
    Text,
)

from app.foundation.columns import CanonicalJson, UtcDateTime, metadata

events = Table(
    "events",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("type", String(80), nullable=False),
    Column("subject", String(64), nullable=False),
    Column("occurred_at", UtcDateTime, nullable=False),
    Column("data", CanonicalJson, nullable=False),
    # Given by the publisher after the commit, so that a reader of the feed never skips a row that commits late.
    Column("sequence", BigInteger),
    Index("ix_events_feed", "tenant_id", "sequence", unique=True),
    Index("ix_events_unpublished", "sequence", "id"),
)

event_sequences = Table(
    "event_sequences",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("last_sequence", BigInteger, nullable=False),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("url", Text, nullable=False),
    Column("event_types", CanonicalJson, nullable=False),
    Column("description", String(200), nullable=False),
    Column("sealed_secret", Text, nullable=False),
    Column("sealed_previous_secret", Text),
    Column("previous_secret_expires_at", UtcDateTime),
    Column("status", String(16), nullable=False),
    Column("disabled_reason", String(200)),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("updated_at", UtcDateTime, nullable=False),
    CheckConstraint("status IN ('enabled', 'disabled', 'deleted')", name="status"),
)

deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("webhook_id", String(64), nullable=False),
    Column("event_id", String(64), nullable=False),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_attempt_at", UtcDateTime),
    Column("lease_until", UtcDateTime),
    Column("response_status", Integer),
    Column("response_excerpt", String(256)),
    Column("failure", String(200)),
    Column("created_at", UtcDateTime, nullable=False),
    Column("finished_at", UtcDateTime),
    CheckConstraint("status IN ('pending', 'succeeded', 'failed', 'cancelled')", name="status"),
    ForeignKeyConstraint(["tenant_id", "webhook_id"], ["webhooks.tenant_id", "webhooks.id"]),
    ForeignKeyConstraint(["tenant_id", "event_id"], ["events.tenant_id", "events.id"]),
    Index("ix_webhook_deliveries_due", "status", "next_attempt_at"),
    Index("ix_webhook_deliveries_webhook", "tenant_id", "webhook_id", "created_at", "id"),
)
