"""Statements on the audit chain."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.access.audit_entry import GENESIS_HASH, AuditEntry
from app.access.tables import audit_entries, audit_heads, audit_signed_heads


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHead:
    """The end of a tenant's chain at a moment, with a signature over it."""

    tenant_id: str
    day: str
    sequence: int
    entry_hash: str
    signed_at: datetime
    public_key: str
    signature: str


def lock_head(connection: Connection, tenant_id: str) -> tuple[int, str]:
    """Return sequence and hash of the tenant's last entry, and keep others from appending until the commit."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    first = dialect.insert(audit_heads).values(tenant_id=tenant_id, sequence=0, entry_hash=GENESIS_HASH)
    connection.execute(first.on_conflict_do_nothing())
    row = connection.execute(
        select(audit_heads.c.sequence, audit_heads.c.entry_hash)
        .where(audit_heads.c.tenant_id == tenant_id)
        .with_for_update()
    ).one()
    return row.sequence, row.entry_hash


def append(connection: Connection, entry: AuditEntry) -> None:
    connection.execute(insert(audit_entries).values(**asdict(entry)))
    connection.execute(
        update(audit_heads)
        .where(audit_heads.c.tenant_id == entry.tenant_id)
        .values(sequence=entry.sequence, entry_hash=entry.entry_hash)
    )


def head(connection: Connection, tenant_id: str) -> tuple[int, str]:
    row = connection.execute(
        select(audit_heads.c.sequence, audit_heads.c.entry_hash).where(audit_heads.c.tenant_id == tenant_id)
    ).one_or_none()
    return (0, GENESIS_HASH) if row is None else (row.sequence, row.entry_hash)


def entries(
    connection: Connection, tenant_id: str, *, subject: str | None, after_sequence: int, limit: int
) -> list[AuditEntry]:
    statement = select(audit_entries).where(
        audit_entries.c.tenant_id == tenant_id, audit_entries.c.sequence > after_sequence
    )
    if subject is not None:
        statement = statement.where(audit_entries.c.subject == subject)
    rows = connection.execute(statement.order_by(audit_entries.c.sequence).limit(limit))
    return [AuditEntry(**row._mapping) for row in rows]


def walk(connection: Connection, tenant_id: str, *, chunk: int = 1_000) -> Iterator[AuditEntry]:
    """Yield every entry of the tenant in order."""
    after = 0
    while rows := entries(connection, tenant_id, subject=None, after_sequence=after, limit=chunk):
        yield from rows
        after = rows[-1].sequence


def tenants_without_head(connection: Connection, day: str) -> list[str]:
    """Tenants with a chain and no signed head of the day."""
    signed = select(audit_signed_heads.c.tenant_id).where(
        audit_signed_heads.c.tenant_id == audit_heads.c.tenant_id, audit_signed_heads.c.day == day
    )
    rows = connection.execute(select(audit_heads.c.tenant_id).where(~signed.exists()).order_by(audit_heads.c.tenant_id))
    return list(rows.scalars())


def keep_head(connection: Connection, head: SignedHead) -> bool:
    """Keep a head unless the day has one already."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(audit_signed_heads).values(**asdict(head)).on_conflict_do_nothing()
    return connection.execute(statement.returning(audit_signed_heads.c.day)).first() is not None


def signed_heads(connection: Connection, tenant_id: str, *, before_day: str | None, limit: int) -> list[SignedHead]:
    statement = select(audit_signed_heads).where(audit_signed_heads.c.tenant_id == tenant_id)
    if before_day is not None:
        statement = statement.where(audit_signed_heads.c.day < before_day)
    rows = connection.execute(statement.order_by(audit_signed_heads.c.day.desc()).limit(limit))
    return [SignedHead(**row._mapping) for row in rows]
