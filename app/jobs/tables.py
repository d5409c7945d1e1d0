"""The table of the room."""

from sqlalchemy import CheckConstraint, Column, Index, Integer, String, Table, Text

from app.foundation.columns import CanonicalJson, UtcDateTime, metadata

jobs = Table(
    "jobs",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(40), primary_key=True),
    Column("kind", String(40), nullable=False),
    # Plain JSON text: a body may hold whole numbers that RFC 8785 cannot.
    Column("arguments", Text, nullable=False),
    Column("caller", CanonicalJson, nullable=False),
    Column("trace_id", String(32)),
    Column("status", String(16), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("lease_owner", String(64)),
    Column("lease_until", UtcDateTime),
    Column("result_url", Text),
    Column("problem", Text),
    Column("created_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    CheckConstraint("status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name="status"),
    CheckConstraint("status <> 'running' OR (lease_owner IS NOT NULL AND lease_until IS NOT NULL)", name="leased"),
    CheckConstraint("(status = 'done') = (result_url IS NOT NULL)", name="done_has_result"),
    CheckConstraint("(status = 'failed') = (problem IS NOT NULL)", name="failed_says_why"),
    Index("ix_jobs_due", "status", "created_at"),
    Index("ix_jobs_tenant", "tenant_id", "status"),
)
