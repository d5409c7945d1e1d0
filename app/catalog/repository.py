"""Rows of the catalog in and out of the database. Nothing here decides; everything is insert only."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, func, insert, select

from app.catalog import tables

# Rows in one executemany call: PostgreSQL pipelines them, SQLite does not care, memory stays small.
BATCH = 2_000
# Of one statement, not of the connection: a server-side cursor cannot run the INSERT that comes next.
STREAMED = {"yield_per": 5_000}
# Offers without the revision that brought them, prices without the time that follows from theirs: the values made of
# them take the cells in this order.
OFFER_COLUMNS = tuple(column for column in tables.offer.c if column.name != "recorded_revision")
PRICE_COLUMNS = tuple(column for column in tables.price.c if column.name != "recorded_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionInfo:
    """One published revision."""

    number: int
    id: str
    content_sha256: str
    recorded_at: datetime
    reason: str
    actor: str
    summary: Mapping[str, Any]


def _revision(row: Row[Any]) -> RevisionInfo:
    return RevisionInfo(
        number=row.number,
        id=row.id,
        content_sha256=row.content_sha256,
        recorded_at=row.recorded_at,
        reason=row.reason,
        actor=row.actor,
        summary=row.summary,
    )


def find_head(connection: Connection) -> RevisionInfo | None:
    """Find the newest revision."""
    query = select(tables.revision).order_by(tables.revision.c.number.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    return None if row is None else _revision(row)


def find_revision(connection: Connection, number: int) -> RevisionInfo | None:
    """Find a revision by number."""
    row = connection.execute(select(tables.revision).where(tables.revision.c.number == number)).one_or_none()
    return None if row is None else _revision(row)


def find_revision_by_id(connection: Connection, revision_id: str) -> RevisionInfo | None:
    """Find a revision by its public id."""
    row = connection.execute(select(tables.revision).where(tables.revision.c.id == revision_id)).one_or_none()
    return None if row is None else _revision(row)


def list_revisions(connection: Connection, *, before: int | None, limit: int) -> list[RevisionInfo]:
    """List revisions, newest first."""
    query = select(tables.revision).order_by(tables.revision.c.number.desc()).limit(limit)
    if before is not None:
        query = query.where(tables.revision.c.number < before)
    return [_revision(row) for row in connection.execute(query)]


def insert_revision(connection: Connection, values: Mapping[str, Any]) -> None:
    """Insert the revision row; a concurrent publisher of the same number makes this fail and the unit run again."""
    connection.execute(insert(tables.revision).values(**values))


def insert_rows(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert many rows in batches."""
    source = iter(rows)
    while batch := list(islice(source, BATCH)):
        connection.execute(insert(table), batch)


def insert_new(connection: Connection, table: Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert the rows whose ``id`` is not there yet."""
    source = iter(rows)
    while batch := list(islice(source, BATCH)):
        known = ids_among(connection, table, [row["id"] for row in batch])
        fresh = [row for row in batch if row["id"] not in known]
        if fresh:
            connection.execute(insert(table), fresh)


def ids_among(connection: Connection, table: Table, ids: Sequence[str]) -> set[str]:
    """Find which of the ids are in a table."""
    found: set[str] = set()
    for start in range(0, len(ids), BATCH):
        query = select(table.c.id).where(table.c.id.in_(ids[start : start + BATCH]))
        found.update(connection.execute(query).scalars())
    return found


def rows_until(connection: Connection, table: Table, number: int) -> Iterator[Any]:
    """Stream every row of a table that a revision knows, in no order: sorting would cost more than the reading."""
    query = select(table).where(table.c.recorded_revision <= number)
    yield from connection.execute(query, execution_options=STREAMED)


def driver_rows(connection: Connection, query: Select[Any]) -> Sequence[tuple[Any, ...]]:
    """Run a query and take its cells as the driver gives them: for tens of thousands of rows, few of which are used."""
    result = connection.execute(query)
    assert result.cursor is not None
    rows: Sequence[tuple[Any, ...]] = result.cursor.fetchall()
    result.close()
    return rows


def offers_until(connection: Connection, number: int) -> Sequence[tuple[Any, ...]]:
    """Read every offer a revision knows, as ``OFFER_COLUMNS``."""
    return driver_rows(connection, select(*OFFER_COLUMNS).where(tables.offer.c.recorded_revision <= number))


def prices_until(connection: Connection, number: int) -> Sequence[tuple[Any, ...]]:
    """Read every price belief of a revision, as ``PRICE_COLUMNS``."""
    return driver_rows(connection, select(*PRICE_COLUMNS).where(tables.price.c.recorded_revision <= number))


def recorded_at(connection: Connection) -> dict[int, datetime]:
    """Give the time each revision was recorded at."""
    return {row.number: row.recorded_at for row in connection.execute(select(tables.revision))}


def latest_records(connection: Connection, number: int) -> dict[tuple[str, str], Any]:
    """Read the newest payload of every record at a revision, withdrawn ones left out."""
    found: dict[tuple[str, str], Any] = {}
    for row in sorted(rows_until(connection, tables.record, number), key=lambda row: row.recorded_revision):
        found[row.kind, row.key] = row.payload
    return {key: payload for key, payload in found.items() if payload is not None}


def find_record(connection: Connection, kind: str, key: str) -> Any:
    """Read the newest payload of one record."""
    query = (
        select(tables.record.c.payload)
        .where(tables.record.c.kind == kind, tables.record.c.key == key)
        .order_by(tables.record.c.recorded_revision.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def keep_import_file(connection: Connection, sha256: str, content: bytes) -> None:
    """Keep the raw file once, compressed."""
    if connection.execute(select(tables.import_file.c.sha256).where(tables.import_file.c.sha256 == sha256)).first():
        return
    connection.execute(
        insert(tables.import_file).values(
            sha256=sha256, byte_count=len(content), content_zlib=zlib.compress(content, level=6)
        )
    )


def read_import_file(connection: Connection, sha256: str) -> bytes | None:
    """Read a kept file back."""
    query = select(tables.import_file.c.content_zlib).where(tables.import_file.c.sha256 == sha256)
    found = connection.execute(query).scalar_one_or_none()
    return None if found is None else zlib.decompress(found)


def insert_import(connection: Connection, values: Mapping[str, Any]) -> None:
    """Record a committed import."""
    connection.execute(insert(tables.import_run).values(**values))


def last_row_count(connection: Connection, provider: str, file_format: str) -> int | None:
    """Find how many rows the last committed import of a provider in a format had."""
    query = (
        select(tables.import_run.c.row_count)
        .where(tables.import_run.c.provider == provider, tables.import_run.c.format == file_format)
        .order_by(tables.import_run.c.revision_number.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none()


def find_quarantined(connection: Connection, quarantine_id: str) -> Row[Any] | None:
    """Find a held row."""
    query = select(tables.quarantine).where(tables.quarantine.c.id == quarantine_id)
    return connection.execute(query).one_or_none()


def find_decision(connection: Connection, quarantine_id: str) -> Row[Any] | None:
    """Find what was decided about a held row."""
    query = select(tables.quarantine_decision).where(tables.quarantine_decision.c.quarantine_id == quarantine_id)
    return connection.execute(query).one_or_none()


def price_beliefs(connection: Connection, offer_id: str) -> Sequence[Row[Any]]:
    """Read every belief ever held about the prices of an offer, oldest first, with the source's citation."""
    query = (
        select(tables.price, tables.source.c.citation, tables.source.c.method)
        .join(tables.source, tables.source.c.id == tables.price.c.source_id)
        .where(tables.price.c.offer_id == offer_id)
        .order_by(tables.price.c.recorded_revision, tables.price.c.valid_from)
    )
    return connection.execute(query).all()


def find_price(connection: Connection, price_id: str) -> tuple[Any, ...] | None:
    """Read one belief about a price, also one that a later revision replaced, as ``PRICE_COLUMNS``."""
    found = driver_rows(connection, select(*PRICE_COLUMNS).where(tables.price.c.id == price_id))
    return found[0] if found else None


def count_rows(connection: Connection, table: Table) -> int:
    """Count the rows of a table."""
    return connection.execute(select(func.count()).select_from(table)).scalar_one()


def offers_of_provider(connection: Connection, provider: str) -> Sequence[tuple[Any, ...]]:
    """Read every offer of a known provider, as ``OFFER_COLUMNS``."""
    return driver_rows(connection, select(*OFFER_COLUMNS).where(tables.offer.c.provider == provider))


def prices_of_provider(connection: Connection, provider: str) -> Sequence[tuple[Any, ...]]:
    """Read every belief about the prices of a known provider, as ``PRICE_COLUMNS``."""
    offers = select(tables.offer.c.id).where(tables.offer.c.provider == provider)
    return driver_rows(connection, select(*PRICE_COLUMNS).where(tables.price.c.offer_id.in_(offers)))


def list_imports(connection: Connection, *, before: str | None, limit: int) -> Sequence[Row[Any]]:
    """List committed imports, newest first; ids sort by time."""
    query = select(tables.import_run).order_by(tables.import_run.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tables.import_run.c.id < before)
    return connection.execute(query).all()
