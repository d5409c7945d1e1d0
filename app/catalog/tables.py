"""Tables of the catalog. Insert only: a correction is a new row with a later revision, and triggers refuse the rest."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from app.foundation.database import CanonicalJson, ExactDecimal, UtcDateTime, metadata

revision = Table(
    "catalog_revision",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", String(64), nullable=False, unique=True),
    Column("parent_number", Integer, ForeignKey("catalog_revision.number"), nullable=True, unique=True),
    Column("content_sha256", String(64), nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("reason", String(32), nullable=False),
    Column("actor", String(128), nullable=False),
    Column("summary", CanonicalJson, nullable=False),
    CheckConstraint("number >= 1", name="number_from_one"),
)

record = Table(
    "catalog_record",
    metadata,
    Column("kind", String(32), primary_key=True),
    Column("key", String(256), primary_key=True),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), primary_key=True),
    # NULL = withdrawn from this revision on.
    Column("payload", CanonicalJson, nullable=True),
)

source = Table(
    "catalog_source",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("citation", Text, nullable=False),
    Column("method", String(16), nullable=False),
    Column("retrieved_on", Date, nullable=True),
    Column("licence", String(64), nullable=True),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), nullable=False),
)

offer = Table(
    "catalog_offer",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), nullable=False),
    Column("provider", String(64), nullable=False),
    Column("sku", String(256), nullable=False),
    Column("accelerator_label", String(128), nullable=False),
    Column("region", String(128), nullable=False),
    Column("purchase_model", String(32), nullable=False),
    Column("product", String(64), nullable=False),
    Column("term_months", Integer, nullable=False),
    Column("payment_option", String(16), nullable=False),
    Column("tier", String(64), nullable=False),
    Column("tenancy", String(32), nullable=False),
    Column("os", String(32), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("sold_unit", String(16), nullable=False),
    Column("accelerator_id", String(128), nullable=True),
    Column("accelerator_count", Integer, nullable=False),
    Column("vcpus", Integer, nullable=True),
    Column("memory_gib", ExactDecimal, nullable=True),
    Column("node_shape_id", String(256), nullable=True),
    Column("min_quantity", Integer, nullable=False),
    Column("quantity_step", Integer, nullable=False),
    Column("indicative", Boolean, nullable=False),
    Column("excluded_reason", String(64), nullable=True),
    Column("notes", Text, nullable=True),
    UniqueConstraint(
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
    CheckConstraint("accelerator_count >= 1", name="accelerator_count_from_one"),
    CheckConstraint("(term_months > 0) = (purchase_model = 'reserved')", name="term_of_reserved"),
)

price = Table(
    "catalog_price",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("offer_id", String(64), ForeignKey("catalog_offer.id"), nullable=False),
    Column("source_id", String(64), ForeignKey("catalog_source.id"), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("amount", ExactDecimal, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("price_unit", String(16), nullable=False),
    Column("valid_from", Date, nullable=False),
    Column("valid_to", Date, nullable=True),
    Column("observed_on", Date, nullable=True),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), nullable=False),
    Column("confidence", String(16), nullable=False),
    Column("note", Text, nullable=True),
    UniqueConstraint("offer_id", "source_id", "kind", "valid_from", "recorded_revision", name="uq_catalog_price_step"),
    CheckConstraint("valid_to IS NULL OR valid_to > valid_from", name="range_not_empty"),
    CheckConstraint("length(currency) = 3", name="currency_stated"),
    Index("ix_catalog_price_recorded_revision", "recorded_revision"),
)

fx_rate = Table(
    "catalog_fx_rate",
    metadata,
    Column("fixed_on", Date, primary_key=True),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), primary_key=True),
    # Decimal strings by currency: units of it for one euro. A later revision adds or corrects currencies of the day.
    Column("per_euro", CanonicalJson, nullable=False),
    Column("source", Text, nullable=False),
)

quarantine = Table(
    "catalog_quarantine",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("provider", String(64), nullable=False),
    Column("offer_id", String(64), nullable=True),
    Column("reason", String(64), nullable=False),
    Column("detail", Text, nullable=False),
    # The staged price when the row could be read, else its cells as they were.
    Column("staged", CanonicalJson, nullable=True),
    Column("raw", CanonicalJson, nullable=False),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), nullable=False),
)

quarantine_decision = Table(
    "catalog_quarantine_decision",
    metadata,
    Column("quarantine_id", String(64), primary_key=True),
    Column("decision", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), nullable=False),
    ForeignKeyConstraint(["quarantine_id"], ["catalog_quarantine.id"]),
    CheckConstraint("decision IN ('accepted', 'rejected')", name="decision_known"),
)

availability = Table(
    "catalog_availability",
    metadata,
    Column("offer_id", String(64), ForeignKey("catalog_offer.id"), primary_key=True),
    Column("observed_on", Date, primary_key=True),
    Column("recorded_revision", Integer, ForeignKey("catalog_revision.number"), primary_key=True),
    Column("status", String(32), nullable=False),
    Column("lead_time_days", Integer, nullable=True),
    Column("source_id", String(64), ForeignKey("catalog_source.id"), nullable=False),
)

import_file = Table(
    "catalog_import_file",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("byte_count", Integer, nullable=False),
    Column("content_zlib", LargeBinary, nullable=False),
)

import_run = Table(
    "catalog_import",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("file_sha256", String(64), ForeignKey("catalog_import_file.sha256"), nullable=False),
    Column("format", String(32), nullable=False),
    Column("provider", String(64), nullable=False),
    Column("filename", String(256), nullable=False),
    Column("row_count", Integer, nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("revision_number", Integer, ForeignKey("catalog_revision.number"), nullable=False),
    Column("report", CanonicalJson, nullable=False),
    Index("ix_catalog_import_provider_format", "provider", "format"),
)

# Every table above is append only; the migration makes triggers for these names.
APPEND_ONLY = (
    revision,
    record,
    source,
    offer,
    price,
    fx_rate,
    quarantine,
    quarantine_decision,
    availability,
    import_file,
    import_run,
)

price_book = Table(
    "price_book",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("name", String(128), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("valid_from", Date, nullable=False),
    Column("valid_to", Date, nullable=True),
    Column("priority", Integer, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("actor", String(128), nullable=False),
    UniqueConstraint("tenant_id", "name", "version", name="uq_price_book_name"),
    CheckConstraint("valid_to IS NULL OR valid_to > valid_from", name="range_not_empty"),
)

price_rule = Table(
    "price_rule",
    metadata,
    Column("tenant_id", String(64), primary_key=True),
    Column("book_id", String(64), primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("provider", String(64), nullable=True),
    Column("sku", String(256), nullable=True),
    Column("accelerator_id", String(128), nullable=True),
    Column("region", String(128), nullable=True),
    Column("purchase_model", String(32), nullable=True),
    Column("term_months", Integer, nullable=True),
    Column("action", String(16), nullable=False),
    # A price for fixed, floor and cap; a fraction of list for percent_off. Per ``basis`` and hour.
    Column("amount", ExactDecimal, nullable=False),
    Column("basis", String(16), nullable=False),
    Column("contract", Text, nullable=True),
    ForeignKeyConstraint(
        ["tenant_id", "book_id", "version"],
        ["price_book.tenant_id", "price_book.id", "price_book.version"],
        name="fk_price_rule_book_price_book",
    ),
    CheckConstraint("action IN ('fixed', 'percent_off', 'floor', 'cap')", name="action_known"),
    CheckConstraint("basis IN ('sold_unit', 'accelerator')", name="basis_known"),
)

# Tables of one tenant's own prices: append only too, and behind row-level security.
TENANT_TABLES = (price_book, price_rule)
