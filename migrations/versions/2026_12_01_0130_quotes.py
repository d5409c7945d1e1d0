"""quotes, revisions, acceptances, number series and approval policies"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, ExactDecimal, UtcDateTime
from app.foundation.schema_guards import guard_append_only, protect_tenant_table, unguard_append_only

revision = "2026_12_01_0130"
down_revision = "2026_12_01_0110"
branch_labels = None
depends_on = None

STATUS_CHECK = (
    "status IN ('draft', 'in_review', 'approved', 'issued', 'accepted', 'declined', 'withdrawn', 'expired',"
    " 'superseded', 'cancelled')"
)
TENANT_TABLES = ("quotes", "quote_revisions", "quote_acceptances", "quote_number_series", "quote_policies")

# The content of a revision and everything said about it: fixed from issued on.
# fmt: off
FROZEN_COLUMNS = (
    "tenant_id", "id", "quote_id", "n", "pricing", "based_on_n", "amends_n", "content", "content_sha256",
    "engine_outputs", "complete", "currency", "net_total", "valid_from_on", "valid_through_on", "timezone",
    "expires_at", "catalog_revision", "engine_version", "authors", "edits", "submitted_sha256", "review", "approval",
    "created_by", "created_at", "issued_by", "issued_at",
)
# fmt: on
FROZEN_STATES = "('issued', 'accepted', 'declined', 'withdrawn', 'expired', 'superseded', 'cancelled')"
ALLOWED_MOVES = (
    "('draft>in_review', 'draft>approved', 'draft>cancelled', 'in_review>approved', 'in_review>draft',"
    " 'in_review>cancelled', 'in_review>superseded', 'approved>issued', 'approved>cancelled', 'approved>superseded',"
    " 'issued>accepted', 'issued>declined', 'issued>withdrawn', 'issued>expired', 'issued>superseded')"
)
RULES = (
    ("update", f"OLD.status IN {FROZEN_STATES} AND ({{changed}})", "an issued revision is immutable"),
    (
        "update",
        f"OLD.status <> NEW.status AND (OLD.status || '>' || NEW.status) NOT IN {ALLOWED_MOVES}",
        "a revision cannot move between these states",
    ),
    ("insert", "NEW.status <> 'draft'", "a revision begins as a draft"),
)


def upgrade() -> None:
    _create_quotes()
    _create_revisions()
    _create_acceptances()
    _create_series_and_policies()
    for table in TENANT_TABLES:
        protect_tenant_table(table)
    for table in ("quote_acceptances", "quote_policies"):
        guard_append_only(table)
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgresql()
    else:
        _guard_sqlite()


def downgrade() -> None:
    for table in ("quote_acceptances", "quote_policies"):
        unguard_append_only(table)
    for table in reversed(TENANT_TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        for function in ("quote_revisions_guard", "quotes_guard"):
            op.execute(f"DROP FUNCTION {function}()")


def _create_quotes() -> None:
    op.create_table(
        "quotes",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("number", sa.String(35)),
        sa.Column("title", sa.String(200)),
        sa.Column("customer_ref", sa.String(128)),
        sa.Column("customer_name", sa.String(200)),
        sa.Column("external_ref", sa.String(128)),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("tags", CanonicalJson(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("current_n", sa.Integer(), nullable=False),
        sa.Column("latest_n", sa.Integer(), nullable=False),
        sa.Column("expires_at", UtcDateTime()),
        sa.Column("currency", sa.String(3)),
        sa.Column("net_total", ExactDecimal()),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_quotes")),
        sa.UniqueConstraint("tenant_id", "number", name=op.f("uq_quotes_tenant_id_number")),
        sa.UniqueConstraint("tenant_id", "external_ref", name=op.f("uq_quotes_tenant_id_external_ref")),
        sa.CheckConstraint(STATUS_CHECK, name=op.f("ck_quotes_status")),
    )
    op.create_index("ix_quotes_tenant_id_status", "quotes", ["tenant_id", "status", "id"])
    op.create_index("ix_quotes_tenant_id_customer_ref", "quotes", ["tenant_id", "customer_ref", "id"])
    op.create_index("ix_quotes_expires_at", "quotes", ["status", "expires_at"])


def _create_revisions() -> None:
    op.create_table(
        "quote_revisions",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("quote_id", sa.String(40), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("edit", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("pricing", sa.String(8), nullable=False),
        sa.Column("based_on_n", sa.Integer()),
        sa.Column("amends_n", sa.Integer()),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("engine_outputs", sa.Text(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("currency", sa.String(3)),
        sa.Column("net_total", ExactDecimal()),
        sa.Column("valid_from_on", sa.Date(), nullable=False),
        sa.Column("valid_through_on", sa.Date(), nullable=False),
        sa.Column("timezone", sa.String(64), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
        sa.Column("catalog_revision", sa.String(128), nullable=False),
        sa.Column("engine_version", sa.String(64), nullable=False),
        sa.Column("authors", CanonicalJson(), nullable=False),
        sa.Column("edits", CanonicalJson(), nullable=False),
        sa.Column("submitted_sha256", sa.String(64)),
        sa.Column("review", CanonicalJson()),
        sa.Column("approval", CanonicalJson()),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("updated_at", UtcDateTime(), nullable=False),
        sa.Column("issued_by", sa.String(128)),
        sa.Column("issued_at", UtcDateTime()),
        sa.Column("closed_by", sa.String(128)),
        sa.Column("closed_at", UtcDateTime()),
        sa.Column("closed_reason", sa.String(2000)),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_quote_revisions")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id"],
            ["quotes.tenant_id", "quotes.id"],
            name=op.f("fk_quote_revisions_tenant_id_quote_id_quotes"),
        ),
        sa.UniqueConstraint("tenant_id", "quote_id", "n", name=op.f("uq_quote_revisions_tenant_id_quote_id_n")),
        sa.CheckConstraint(STATUS_CHECK, name=op.f("ck_quote_revisions_status")),
        sa.CheckConstraint("pricing IN ('new', 'hold', 'reprice')", name=op.f("ck_quote_revisions_pricing")),
        sa.CheckConstraint("n >= 1 AND edit >= 1", name=op.f("ck_quote_revisions_counts_from_one")),
        sa.CheckConstraint(
            "(status <> 'issued' AND status <> 'accepted') OR complete",
            name=op.f("ck_quote_revisions_issued_is_complete"),
        ),
    )
    for status in ("draft", "issued"):
        only = sa.text(f"status = '{status}'")
        op.create_index(
            f"uq_quote_revisions_one_{status}",
            "quote_revisions",
            ["tenant_id", "quote_id"],
            unique=True,
            sqlite_where=only,
            postgresql_where=only,
        )
    op.create_index("ix_quote_revisions_expires_at", "quote_revisions", ["status", "expires_at"])
    op.create_index("ix_quote_revisions_catalog_revision", "quote_revisions", ["tenant_id", "catalog_revision"])


def _create_acceptances() -> None:
    op.create_table(
        "quote_acceptances",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("quote_id", sa.String(40), nullable=False),
        sa.Column("revision_id", sa.String(40), nullable=False),
        sa.Column("content_sha256", sa.String(64), nullable=False),
        sa.Column("selections", CanonicalJson(), nullable=False),
        sa.Column("totals", CanonicalJson(), nullable=False),
        sa.Column("signatory", CanonicalJson()),
        sa.Column("evidence", CanonicalJson()),
        sa.Column("accepted_by", sa.String(128), nullable=False),
        sa.Column("on_behalf_of", sa.String(128)),
        sa.Column("accepted_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "id", name=op.f("pk_quote_acceptances")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "quote_id"],
            ["quotes.tenant_id", "quotes.id"],
            name=op.f("fk_quote_acceptances_tenant_id_quote_id_quotes"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "revision_id"],
            ["quote_revisions.tenant_id", "quote_revisions.id"],
            name=op.f("fk_quote_acceptances_tenant_id_revision_id_quote_revisions"),
        ),
        sa.UniqueConstraint("tenant_id", "revision_id", name=op.f("uq_quote_acceptances_tenant_id_revision_id")),
    )


def _create_series_and_policies() -> None:
    op.create_table(
        "quote_number_series",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("prefix", sa.String(10), nullable=False),
        sa.Column("year", sa.Integer(), nullable=False),
        sa.Column("last_counter", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "prefix", "year", name=op.f("pk_quote_number_series")),
    )
    op.create_table(
        "quote_policies",
        sa.Column("tenant_id", sa.String(64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("document", CanonicalJson(), nullable=False),
        sa.Column("created_by", sa.String(128), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.PrimaryKeyConstraint("tenant_id", "version", name=op.f("pk_quote_policies")),
    )


def _guard_postgresql() -> None:
    changed = " OR ".join(f"NEW.{name} IS DISTINCT FROM OLD.{name}" for name in FROZEN_COLUMNS)
    checks = "\n".join(
        f"IF TG_OP = '{when.upper()}' THEN IF {rule.format(changed=changed)} THEN"
        f" RAISE EXCEPTION '{message}' USING ERRCODE = 'restrict_violation'; END IF; END IF;"
        for when, rule, message in RULES
    )
    op.execute(
        "CREATE FUNCTION quote_revisions_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_OP = 'DELETE' THEN RAISE EXCEPTION 'revisions are never deleted'"
        f" USING ERRCODE = 'restrict_violation'; END IF; {checks} RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER quote_revisions_guard BEFORE INSERT OR UPDATE OR DELETE ON quote_revisions"
        " FOR EACH ROW EXECUTE FUNCTION quote_revisions_guard()"
    )
    op.execute(
        "CREATE FUNCTION quotes_guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF TG_OP = 'DELETE' THEN RAISE EXCEPTION 'quotes are never deleted' USING ERRCODE = 'restrict_violation';"
        " END IF; IF OLD.number IS NOT NULL AND NEW.number IS DISTINCT FROM OLD.number THEN"
        " RAISE EXCEPTION 'a quote keeps its number' USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW; END $$"
    )
    op.execute(
        "CREATE TRIGGER quotes_guard BEFORE UPDATE OR DELETE ON quotes FOR EACH ROW EXECUTE FUNCTION quotes_guard()"
    )


def _guard_sqlite() -> None:
    changed = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in FROZEN_COLUMNS)
    for position, (when, rule, message) in enumerate(RULES):
        op.execute(
            f"CREATE TRIGGER quote_revisions_guard_{position} BEFORE {when.upper()} ON quote_revisions"
            f" WHEN {rule.format(changed=changed)} BEGIN SELECT RAISE(ABORT, '{message}'); END"
        )
    op.execute(
        "CREATE TRIGGER quote_revisions_guard_delete BEFORE DELETE ON quote_revisions"
        " BEGIN SELECT RAISE(ABORT, 'revisions are never deleted'); END"
    )
    op.execute(
        "CREATE TRIGGER quotes_guard_delete BEFORE DELETE ON quotes"
        " BEGIN SELECT RAISE(ABORT, 'quotes are never deleted'); END"
    )
    op.execute(
        "CREATE TRIGGER quotes_guard_number BEFORE UPDATE ON quotes"
        " WHEN OLD.number IS NOT NULL AND NEW.number IS NOT OLD.number"
        " BEGIN SELECT RAISE(ABORT, 'a quote keeps its number'); END"
    )
