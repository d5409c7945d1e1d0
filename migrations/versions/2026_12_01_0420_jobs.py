"""jobs"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, UtcDateTime
from app.foundation.schema_guards import protect_tenant_table

revision = "2026_12_01_0420"
down_revision = "2026_12_01_0400"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("caller", CanonicalJson(), nullable=False),
        sa.Column("trace_id", sa.String(length=32), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=64), nullable=True),
        sa.Column("lease_until", UtcDateTime(), nullable=True),
        sa.Column("result_url", sa.Text(), nullable=True),
        sa.Column("problem", sa.Text(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("started_at", UtcDateTime(), nullable=True),
        sa.Column("finished_at", UtcDateTime(), nullable=True),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'done', 'failed', 'cancelled')", name=op.f("ck_jobs_status")
        ),
        sa.CheckConstraint(
            "status <> 'running' OR (lease_owner IS NOT NULL AND lease_until IS NOT NULL)", name=op.f("ck_jobs_leased")
        ),
        sa.CheckConstraint("(status = 'done') = (result_url IS NOT NULL)", name=op.f("ck_jobs_done_has_result")),
        sa.CheckConstraint("(status = 'failed') = (problem IS NOT NULL)", name=op.f("ck_jobs_failed_says_why")),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_jobs")),
    )
    op.create_index("ix_jobs_due", "jobs", ["status", "created_at"], unique=False)
    op.create_index("ix_jobs_tenant", "jobs", ["tenant_id", "status"], unique=False)
    protect_tenant_table("jobs")


def downgrade() -> None:
    op.drop_table("jobs")
