"""quotas of tenants as data, and what they used by day"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson
from app.foundation.schema_guards import protect_tenant_table
from app.foundation.tenancy import SYSTEM_ROLE

revision = "2026_12_01_0440"
down_revision = "2026_12_01_0420"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tenants", sa.Column("quotas", CanonicalJson(), nullable=True))
    op.create_table(
        "usage_counters",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("measure", sa.String(length=32), nullable=False),
        sa.Column("period", sa.String(length=10), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "measure", "period", name=op.f("pk_usage_counters")),
    )
    protect_tenant_table("usage_counters")
    on_postgresql = op.get_bind().dialect.name == "postgresql"
    if on_postgresql:
        # The owner sees no tenant's rows: row-level security is forced on it too.
        op.execute(f"SET LOCAL ROLE {SYSTEM_ROLE}")
    op.execute(
        "INSERT INTO usage_counters (tenant_id, measure, period, used)"
        " SELECT tenant_id, 'stored_quotes', 'total', count(*) FROM quotes GROUP BY tenant_id"
    )
    if on_postgresql:
        op.execute("RESET ROLE")


def downgrade() -> None:
    op.drop_table("usage_counters")
    op.drop_column("tenants", "quotas")
