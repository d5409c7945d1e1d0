"""Tables of the foundation: the answers kept for idempotent retries."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, LargeBinary, String, Table

from app.foundation.columns import CanonicalJson, UtcDateTime, metadata

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("key_sha256", String(64), primary_key=True),
    Column("fingerprint_sha256", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("lease_until", UtcDateTime),
    Column("lease_owner", String(64)),
    Column("status", Integer),
    Column("headers", CanonicalJson),
    Column("body", LargeBinary),
    CheckConstraint("state IN ('in_progress', 'done')", name="state"),
    CheckConstraint("state <> 'done' OR (status IS NOT NULL AND body IS NOT NULL)", name="done_is_whole"),
    Index("ix_idempotency_keys_expires_at", "expires_at"),
)
