"""proposals: files made from revisions"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, UtcDateTime
from app.foundation.schema_guards import guard_append_only, protect_tenant_table, unguard_append_only

revision = "2026_12_01_0400"
down_revision = "2026_12_01_0130"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "proposals",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("quote_id", sa.String(40), nullable=False),
        sa.Column("revision_id", sa.String(40), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("revision_content_sha256", sa.String(64), nullable=False),
        sa.Column("standing", sa.String(8), nullable=False),
        sa.Column("format", sa.String(16), nullable=False),
        sa.Column("options", CanonicalJson(), nullable=False),
        sa.Column("media_type", sa.String(64), nullable=False),
        sa.Column("file_name", sa.String(80), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size_bytes", sa.Integer(), nullable=False),
        sa.Column("adaptations", CanonicalJson(), nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_proposals")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id"],
            ["quotes.tenant_id", "quotes.id"],
            name=op.f("fk_proposals_tenant_id_quote_id_quotes"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "revision_id"],
            ["quote_revisions.tenant_id", "quote_revisions.id"],
            name=op.f("fk_proposals_tenant_id_revision_id_quote_revisions"),
        ),
        sa.CheckConstraint("standing IN ('draft', 'offer', 'void')", name=op.f("ck_proposals_standing")),
        sa.CheckConstraint("size_bytes > 0", name=op.f("ck_proposals_not_empty")),
    )
    op.create_index("ix_proposals_tenant_id_revision_id", "proposals", ["tenant_id", "revision_id"])
    protect_tenant_table("proposals")
    guard_append_only("proposals")


def downgrade() -> None:
    unguard_append_only("proposals")
    op.drop_table("proposals")
