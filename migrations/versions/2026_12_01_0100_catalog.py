"""catalog: revisions, records, offers, dated prices, quarantine, imports, price books"""

import sqlalchemy as sa
from alembic import op

from app.foundation.columns import CanonicalJson, ExactDecimal, UtcDateTime
from app.foundation.schema_guards import guard_append_only, protect_tenant_table, unguard_append_only

revision = "2026_12_01_0100"
down_revision = "2026_11_30_0900"
branch_labels = None
depends_on = None

TABLES = (
    "catalog_import_file",
    "catalog_revision",
    "price_book",
    "catalog_fx_rate",
    "catalog_import",
    "catalog_offer",
    "catalog_quarantine",
    "catalog_record",
    "catalog_source",
    "price_rule",
    "catalog_availability",
    "catalog_price",
    "catalog_quarantine_decision",
)
TENANT_TABLES = ("price_book", "price_rule")


def upgrade() -> None:
    op.create_table(
        "catalog_import_file",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("byte_count", sa.Integer(), nullable=False),
        sa.Column("content_zlib", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_catalog_import_file")),
    )
    op.create_table(
        "catalog_revision",
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("parent_number", sa.Integer(), nullable=True),
        sa.Column("content_sha256", sa.String(length=64), nullable=False),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("summary", CanonicalJson(), nullable=False),
        sa.CheckConstraint("number >= 1", name=op.f("ck_catalog_revision_number_from_one")),
        sa.ForeignKeyConstraint(
            ["parent_number"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_revision_parent_number_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_catalog_revision")),
        sa.UniqueConstraint("id", name=op.f("uq_catalog_revision_id")),
        sa.UniqueConstraint("parent_number", name=op.f("uq_catalog_revision_parent_number")),
    )
    op.create_table(
        "price_book",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("valid_to", sa.Date(), nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("withdrawn", sa.Boolean(), nullable=False),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.CheckConstraint("valid_to IS NULL OR valid_to > valid_from", name=op.f("ck_price_book_range_not_empty")),
        sa.PrimaryKeyConstraint("tenant_id", "id", "version", name=op.f("pk_price_book")),
        sa.UniqueConstraint("tenant_id", "name", "version", name="uq_price_book_name"),
    )
    op.create_table(
        "catalog_fx_rate",
        sa.Column("fixed_on", sa.Date(), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.Column("per_euro", CanonicalJson(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_fx_rate_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("fixed_on", "recorded_revision", name=op.f("pk_catalog_fx_rate")),
    )
    op.create_table(
        "catalog_import",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("file_sha256", sa.String(length=64), nullable=False),
        sa.Column("format", sa.String(length=32), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("filename", sa.String(length=256), nullable=False),
        sa.Column("row_count", sa.Integer(), nullable=False),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("revision_number", sa.Integer(), nullable=False),
        sa.Column("report", CanonicalJson(), nullable=False),
        sa.ForeignKeyConstraint(
            ["file_sha256"],
            ["catalog_import_file.sha256"],
            name=op.f("fk_catalog_import_file_sha256_catalog_import_file"),
        ),
        sa.ForeignKeyConstraint(
            ["revision_number"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_import_revision_number_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_import")),
    )
    op.create_index("ix_catalog_import_provider_format", "catalog_import", ["provider", "format"], unique=False)
    op.create_table(
        "catalog_offer",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("sku", sa.String(length=256), nullable=False),
        sa.Column("accelerator_label", sa.String(length=128), nullable=False),
        sa.Column("region", sa.String(length=128), nullable=False),
        sa.Column("purchase_model", sa.String(length=32), nullable=False),
        sa.Column("product", sa.String(length=64), nullable=False),
        sa.Column("term_months", sa.Integer(), nullable=False),
        sa.Column("payment_option", sa.String(length=16), nullable=False),
        sa.Column("tier", sa.String(length=64), nullable=False),
        sa.Column("tenancy", sa.String(length=32), nullable=False),
        sa.Column("os", sa.String(length=32), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("sold_unit", sa.String(length=16), nullable=False),
        sa.Column("accelerator_id", sa.String(length=128), nullable=True),
        sa.Column("accelerator_count", sa.Integer(), nullable=False),
        sa.Column("vcpus", sa.Integer(), nullable=True),
        sa.Column("memory_gib", ExactDecimal(), nullable=True),
        sa.Column("node_shape_id", sa.String(length=256), nullable=True),
        sa.Column("min_quantity", sa.Integer(), nullable=False),
        sa.Column("quantity_step", sa.Integer(), nullable=False),
        sa.Column("indicative", sa.Boolean(), nullable=False),
        sa.Column("excluded_reason", sa.String(length=64), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(term_months > 0) = (purchase_model = 'reserved')", name=op.f("ck_catalog_offer_term_of_reserved")
        ),
        sa.CheckConstraint("accelerator_count >= 1", name=op.f("ck_catalog_offer_accelerator_count_from_one")),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_offer_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_offer")),
        sa.UniqueConstraint(
            "provider",
            "sku",
            "accelerator_label",
            "region",
            "purchase_model",
            "product",
            "term_months",
            "payment_option",
            "tier",
            "tenancy",
            "os",
            name="uq_catalog_offer_key",
        ),
    )
    op.create_table(
        "catalog_quarantine",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("offer_id", sa.String(length=64), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("staged", CanonicalJson(), nullable=True),
        sa.Column("raw", CanonicalJson(), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_quarantine_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_quarantine")),
    )
    op.create_table(
        "catalog_record",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=256), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.Column("payload", CanonicalJson(), nullable=True),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_record_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("kind", "key", "recorded_revision", name=op.f("pk_catalog_record")),
    )
    op.create_table(
        "catalog_source",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("citation", sa.Text(), nullable=False),
        sa.Column("method", sa.String(length=16), nullable=False),
        sa.Column("retrieved_on", sa.Date(), nullable=True),
        sa.Column("licence", sa.String(length=64), nullable=True),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_source_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_source")),
    )
    op.create_table(
        "price_rule",
        sa.Column("tenant_id", sa.String(length=64), nullable=False),
        sa.Column("book_id", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=True),
        sa.Column("sku", sa.String(length=256), nullable=True),
        sa.Column("accelerator_id", sa.String(length=128), nullable=True),
        sa.Column("region", sa.String(length=128), nullable=True),
        sa.Column("purchase_model", sa.String(length=32), nullable=True),
        sa.Column("term_months", sa.Integer(), nullable=True),
        sa.Column("action", sa.String(length=16), nullable=False),
        sa.Column("amount", ExactDecimal(), nullable=False),
        sa.Column("basis", sa.String(length=16), nullable=False),
        sa.Column("contract", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "action IN ('fixed', 'percent_off', 'floor', 'cap')", name=op.f("ck_price_rule_action_known")
        ),
        sa.CheckConstraint("basis IN ('sold_unit', 'accelerator')", name=op.f("ck_price_rule_basis_known")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "book_id", "version"],
            ["price_book.tenant_id", "price_book.id", "price_book.version"],
            name="fk_price_rule_book_price_book",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "book_id", "version", "position", name=op.f("pk_price_rule")),
    )
    op.create_table(
        "catalog_availability",
        sa.Column("offer_id", sa.String(length=64), nullable=False),
        sa.Column("observed_on", sa.Date(), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=32), nullable=False),
        sa.Column("lead_time_days", sa.Integer(), nullable=True),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(
            ["offer_id"], ["catalog_offer.id"], name=op.f("fk_catalog_availability_offer_id_catalog_offer")
        ),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_availability_recorded_revision_catalog_revision"),
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["catalog_source.id"], name=op.f("fk_catalog_availability_source_id_catalog_source")
        ),
        sa.PrimaryKeyConstraint("offer_id", "observed_on", "recorded_revision", name=op.f("pk_catalog_availability")),
    )
    op.create_table(
        "catalog_price",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("offer_id", sa.String(length=64), nullable=False),
        sa.Column("source_id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("amount", ExactDecimal(), nullable=False),
        sa.Column("currency", sa.String(length=3), nullable=False),
        sa.Column("price_unit", sa.String(length=16), nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("valid_to", sa.Date(), nullable=True),
        sa.Column("observed_on", sa.Date(), nullable=True),
        sa.Column("recorded_at", UtcDateTime(), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.Column("confidence", sa.String(length=16), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.CheckConstraint("length(currency) = 3", name=op.f("ck_catalog_price_currency_stated")),
        sa.CheckConstraint("valid_to IS NULL OR valid_to > valid_from", name=op.f("ck_catalog_price_range_not_empty")),
        sa.ForeignKeyConstraint(
            ["offer_id"], ["catalog_offer.id"], name=op.f("fk_catalog_price_offer_id_catalog_offer")
        ),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_price_recorded_revision_catalog_revision"),
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["catalog_source.id"], name=op.f("fk_catalog_price_source_id_catalog_source")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_catalog_price")),
        sa.UniqueConstraint(
            "offer_id", "source_id", "kind", "valid_from", "recorded_revision", name="uq_catalog_price_step"
        ),
    )
    op.create_index("ix_catalog_price_recorded_revision", "catalog_price", ["recorded_revision"], unique=False)
    op.create_table(
        "catalog_quarantine_decision",
        sa.Column("quarantine_id", sa.String(length=64), nullable=False),
        sa.Column("decision", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(length=128), nullable=False),
        sa.Column("recorded_revision", sa.Integer(), nullable=False),
        sa.CheckConstraint(
            "decision IN ('accepted', 'rejected')", name=op.f("ck_catalog_quarantine_decision_decision_known")
        ),
        sa.ForeignKeyConstraint(
            ["quarantine_id"],
            ["catalog_quarantine.id"],
            name=op.f("fk_catalog_quarantine_decision_quarantine_id_catalog_quarantine"),
        ),
        sa.ForeignKeyConstraint(
            ["recorded_revision"],
            ["catalog_revision.number"],
            name=op.f("fk_catalog_quarantine_decision_recorded_revision_catalog_revision"),
        ),
        sa.PrimaryKeyConstraint("quarantine_id", name=op.f("pk_catalog_quarantine_decision")),
    )

    for table in TABLES:
        guard_append_only(table)
    for table in TENANT_TABLES:
        protect_tenant_table(table)
    if op.get_bind().dialect.name == "postgresql":
        # Two prices of one offer, source and kind cannot hold on one day in one revision; SQLite's side is the plan.
        op.execute("CREATE EXTENSION IF NOT EXISTS btree_gist")
        op.execute(
            "ALTER TABLE catalog_price ADD CONSTRAINT ex_catalog_price_no_overlap EXCLUDE USING gist ("
            "offer_id WITH =, source_id WITH =, kind WITH =, recorded_revision WITH =,"
            " daterange(valid_from, valid_to) WITH &&)"
        )


def downgrade() -> None:
    for table in reversed(TABLES):
        unguard_append_only(table)
        op.drop_table(table)
