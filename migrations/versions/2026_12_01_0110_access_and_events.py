"""access and events"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, UtcDateTime
from app.foundation.schema_guards import guard_append_only, protect_tenant_table, unguard_append_only

TENANT_TABLES = (
    "tenants",
    "api_keys",
    "share_links",
    "request_windows",
    "audit_heads",
    "audit_entries",
    "events",
    "event_sequences",
    "webhooks",
    "webhook_deliveries",
)

revision = "2026_12_01_0110"
down_revision = "2026_12_01_0100"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_entries",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("sequence", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", UtcDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("on_behalf_of", sa.String(length=200), nullable=True),
        sa.Column("key_id", sa.String(length=64), nullable=True),
        sa.Column("trace_id", sa.String(length=32), nullable=True),
        sa.Column("action", sa.String(length=80), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("before_sha256", sa.String(length=64), nullable=True),
        sa.Column("after_sha256", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("details", CanonicalJson(), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("entry_hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "sequence", name=op.f("pk_audit_entries")),
    )
    op.create_index("ix_audit_entries_subject", "audit_entries", ["tenant_id", "subject", "sequence"], unique=False)

    op.create_table(
        "audit_heads",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("entry_hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_audit_heads")),
    )
    op.create_table(
        "event_sequences",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("last_sequence", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_event_sequences")),
    )
    op.create_table(
        "events",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("type", sa.String(length=80), nullable=False),
        sa.Column("subject", sa.String(length=64), nullable=False),
        sa.Column("occurred_at", UtcDateTime(), nullable=False),
        sa.Column("data", CanonicalJson(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_feed", "events", ["tenant_id", "sequence"], unique=True)
    op.create_index("ix_events_unpublished", "events", ["sequence", "id"], unique=False)

    op.create_table(
        "request_windows",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("window_started_at", UtcDateTime(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "window_started_at", name=op.f("pk_request_windows")),
    )
    op.create_table(
        "share_links",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("quote_id", sa.String(length=64), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("may_accept", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint("may_accept IN (0, 1)", name=op.f("ck_share_links_may_accept")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_share_links")),
    )
    op.create_index("ix_share_links_quote", "share_links", ["tenant_id", "quote_id"], unique=False)

    op.create_table(
        "tenants",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("default_currency", sa.String(length=3), nullable=False),
        sa.Column("requests_per_minute", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("closed_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("tenant_id", name=op.f("pk_tenants")),
    )
    op.create_table(
        "webhooks",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("event_types", CanonicalJson(), nullable=False),
        sa.Column("description", sa.String(length=200), nullable=False),
        sa.Column("sealed_secret", sa.Text(), nullable=False),
        sa.Column("sealed_previous_secret", sa.Text(), nullable=True),
        sa.Column("previous_secret_expires_at", UtcDateTime(), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("disabled_reason", sa.String(length=200), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.CheckConstraint("status IN ('enabled', 'disabled', 'deleted')", name=op.f("ck_webhooks_status")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhooks")),
    )
    op.create_table(
        "api_keys",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("prefix", sa.String(length=24), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("secret_hmac", sa.String(length=64), nullable=False),
        sa.Column("pepper_id", sa.String(length=32), nullable=False),
        sa.Column("scopes", CanonicalJson(), nullable=False),
        sa.Column("allowed_networks", CanonicalJson(), nullable=False),
        sa.Column("created_by", sa.String(length=200), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=True),
        sa.Column("revoked_at", UtcDateTime(), nullable=True),
        sa.Column("last_used_at", UtcDateTime(), nullable=True),
        sa.Column("replaces_id", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name=op.f("fk_api_keys_tenant_id_tenants")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("prefix", name=op.f("uq_api_keys_prefix")),
    )
    op.create_table(
        "webhook_deliveries",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("webhook_id", sa.String(length=64), nullable=False),
        sa.Column("event_id", sa.String(length=64), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", UtcDateTime(), nullable=True),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_excerpt", sa.String(length=256), nullable=True),
        sa.Column("failure", sa.String(length=200), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('pending', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_webhook_deliveries_status")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "event_id"],
            ["events.tenant_id", "events.id"],
            name=op.f("fk_webhook_deliveries_tenant_id_event_id_events"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.id"],
            name=op.f("fk_webhook_deliveries_tenant_id_webhook_id_webhooks"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_webhook_deliveries")),
    )
    op.create_index("ix_webhook_deliveries_due", "webhook_deliveries", ["status", "next_attempt_at"], unique=False)
    op.create_index(
        "ix_webhook_deliveries_webhook",
        "webhook_deliveries",
        ["tenant_id", "webhook_id", "created_at", "id"],
        unique=False,
    )
    for table in TENANT_TABLES:
        protect_tenant_table(table)
    guard_append_only("audit_entries")


def downgrade() -> None:
    unguard_append_only("audit_entries")

    op.drop_table("webhook_deliveries")
    op.drop_table("api_keys")
    op.drop_table("webhooks")
    op.drop_table("tenants")

    op.drop_table("share_links")
    op.drop_table("request_windows")

    op.drop_table("events")
    op.drop_table("event_sequences")
    op.drop_table("audit_heads")

    op.drop_table("audit_entries")
