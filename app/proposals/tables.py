"""Tables of the room: the files that were made, as they were handed out."""

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    String,
    Table,
)

from app.foundation.columns import CanonicalJson, UtcDateTime, metadata

proposals = Table(
    "proposals",
    metadata,
    Column("tenant_id", String(64), nullable=False),
    Column("id", String(40), nullable=False),
    Column("quote_id", String(40), nullable=False),
    Column("revision_id", String(40), nullable=False),
    Column("n", Integer, nullable=False),
    Column("revision_content_sha256", String(64), nullable=False),
    Column("standing", String(8), nullable=False),
    Column("format", String(16), nullable=False),
    Column("options", CanonicalJson, nullable=False),
    Column("media_type", String(64), nullable=False),
    Column("file_name", String(80), nullable=False),
    Column("content", LargeBinary, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("size_bytes", Integer, nullable=False),
    Column("adaptations", CanonicalJson, nullable=False),
    Column("created_by", String(128), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("tenant_id", "id"),
    ForeignKeyConstraint(["tenant_id", "quote_id"], ["quotes.tenant_id", "quotes.id"]),
    ForeignKeyConstraint(["tenant_id", "revision_id"], ["quote_revisions.tenant_id", "quote_revisions.id"]),
    CheckConstraint("standing IN ('draft', 'offer', 'void')", name="standing"),
    CheckConstraint("size_bytes > 0", name="not_empty"),
    Index("ix_proposals_tenant_id_revision_id", "tenant_id", "revision_id"),
)
