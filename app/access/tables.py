"""Tables of the access room: tenants, keys, share links, shared counters, and the audit chain."""

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
    UniqueConstraint,
)

from app.foundation.columns import CanonicalJson, UtcDateTime, metadata

tenants = Table(
    "tenants",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("name", String(200), nullable=False),
    Column("default_currency", String(3), nullable=False),
    Column("requests_per_minute", Integer),
    # Limits by name; what is not named has the service's own.
    Column("quotas", CanonicalJson),
    Column("created_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("prefix", String(24), nullable=False),
    Column("name", String(200), nullable=False),
    Column("secret_hmac", String(64), nullable=False),
    Column("pepper_id", String(32), nullable=False),
    Column("scopes", CanonicalJson, nullable=False),
    Column("allowed_networks", CanonicalJson, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
    Column("replaces_id", String(64)),
    ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"]),
    UniqueConstraint("prefix"),
)

share_links = Table(
    "share_links",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("quote_id", String(64), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("may_accept", Integer, nullable=False),
    Column("created_by", String(200), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("revoked_at", UtcDateTime),
    CheckConstraint("may_accept IN (0, 1)", name="may_accept"),
    Index("ix_share_links_quote", "tenant_id", "quote_id"),
)

request_windows = Table(
    "request_windows",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("window_started_at", UtcDateTime, primary_key=True),
    Column("used", Integer, nullable=False),
)

# What a tenant used of a measure, on a day or in all (period "total"); also the row that a quota is held by.
usage_counters = Table(
    "usage_counters",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("measure", String(32), primary_key=True),
    Column("period", String(10), primary_key=True),
    Column("used", BigInteger, nullable=False),
)

audit_heads = Table(
    "audit_heads",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("entry_hash", String(64), nullable=False),
)

# One head a day and tenant, signed: append-only, so that a chain written anew is found by those who kept a head.
audit_signed_heads = Table(
    "audit_signed_heads",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("day", String(10), primary_key=True),
    Column("sequence", BigInteger, nullable=False),
    Column("entry_hash", String(64), nullable=False),
    Column("signed_at", UtcDateTime, nullable=False),
    Column("public_key", String(64), nullable=False),
    Column("signature", String(128), nullable=False),
)

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", String(200), nullable=False),
    Column("on_behalf_of", String(200)),
    Column("key_id", String(64)),
    Column("trace_id", String(32)),
    Column("action", String(80), nullable=False),
    Column("subject", String(64), nullable=False),
    Column("before_sha256", String(64)),
    Column("after_sha256", String(64)),
    Column("reason", Text),
    Column("details", CanonicalJson, nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("entry_hash", String(64), nullable=False),
    Index("ix_audit_entries_subject", "tenant_id", "subject", "sequence"),
)
