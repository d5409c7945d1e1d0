"""heads of audit chains, signed daily"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import UtcDateTime
from app.foundation.schema_guards import guard_append_only, protect_tenant_table, unguard_append_only

revision = "2026_12_01_0450"
down_revision = "2026_12_01_0440"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit_signed_heads",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("entry_hash", sa.String(length=64), nullable=False),
        sa.Column("signed_at", UtcDateTime(), nullable=False),
        sa.Column("public_key", sa.String(length=64), nullable=False),
        sa.Column("signature", sa.String(length=128), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "day", name=op.f("pk_audit_signed_heads")),
    )
    protect_tenant_table("audit_signed_heads")
    guard_append_only("audit_signed_heads")


def downgrade() -> None:
    unguard_append_only("audit_signed_heads")
    op.drop_table("audit_signed_heads")
