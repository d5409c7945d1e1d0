"""service roles and idempotency keys"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, UtcDateTime
from app.foundation.schema_guards import create_service_roles, protect_tenant_table, withdraw_service_roles

revision = "2026_11_30_0900"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    create_service_roles()
    op.create_table(
        "idempotency_keys",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("key_sha256", sa.String(64), nullable=False),
        sa.Column("fingerprint_sha256", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("lease_until", UtcDateTime()),
        sa.Column("lease_owner", sa.String(64)),
        sa.Column("status", sa.Integer()),
        sa.Column("headers", CanonicalJson()),
        sa.Column("body", sa.LargeBinary()),
        sa.CheckConstraint("state IN ('in_progress', 'done')", name=op.f("ck_idempotency_keys_state")),
        sa.CheckConstraint(
            "state <> 'done' OR (status IS NOT NULL AND body IS NOT NULL)",
            name=op.f("ck_idempotency_keys_done_is_whole"),
        ),
        sa.PrimaryKeyConstraint("tenant_id", "key_sha256", name=op.f("pk_idempotency_keys")),
    )
    op.create_index("ix_idempotency_keys_expires_at", "idempotency_keys", ["expires_at"])
    protect_tenant_table("idempotency_keys")


def downgrade() -> None:
    op.drop_table("idempotency_keys")
    withdraw_service_roles()
