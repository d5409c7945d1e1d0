"""Statements on quotes and revisions. Every function takes the tenant; nothing here decides anything."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, func, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.quotes.lifecycle import Status
from app.quotes.records import Acceptance, Quote, Revision, RevisionHead
from app.quotes.tables import quote_acceptances as acceptances
from app.quotes.tables import quote_number_series as series
from app.quotes.tables import quote_policies as policies
from app.quotes.tables import quote_revisions as revisions
from app.quotes.tables import quotes

_HEAD_COLUMNS = [column for column in revisions.c if column.name not in ("content", "engine_outputs")]


def insert_quote(connection: Connection, quote: Quote) -> None:
    connection.execute(quotes.insert().values(**_quote_values(quote)))


def update_quote(connection: Connection, before: Quote, changes: Mapping[str, Any]) -> bool:
    """Write a changed header if nobody else did since; tells whether it happened."""
    done = connection.execute(
        update(quotes)
        .where(
            quotes.c.tenant_id == before.tenant_id,
            quotes.c.id == before.id,
            quotes.c.version == before.version,
        )
        .values(**changes, version=before.version + 1)
    )
    return done.rowcount == 1


def find_quote(connection: Connection, tenant_id: str, quote_id: str, *, lock: bool = False) -> Quote | None:
    """Read a header; ``lock`` holds the row until the end of the transaction."""
    statement = select(quotes).where(quotes.c.tenant_id == tenant_id, quotes.c.id == quote_id)
    if lock:
        statement = statement.with_for_update()
    row = connection.execute(statement).one_or_none()
    return None if row is None else _quote(row)


def find_quote_id(connection: Connection, tenant_id: str, *, number: str) -> str | None:
    return connection.execute(
        select(quotes.c.id).where(quotes.c.tenant_id == tenant_id, quotes.c.number == number)
    ).scalar_one_or_none()


def find_by_external_ref(connection: Connection, tenant_id: str, external_ref: str) -> str | None:
    return connection.execute(
        select(quotes.c.id).where(quotes.c.tenant_id == tenant_id, quotes.c.external_ref == external_ref)
    ).scalar_one_or_none()


def list_quotes(
    connection: Connection,
    tenant_id: str,
    *,
    now: datetime,
    status: Status | None,
    equal: Mapping[str, str],
    updated_since: datetime | None,
    before_id: str | None,
    limit: int,
) -> list[Quote]:
    """Read headers, newest first; a status filter sees the status as it is at ``now``."""
    statement = select(quotes).where(quotes.c.tenant_id == tenant_id)
    for column, value in equal.items():
        statement = statement.where(quotes.c[column] == value)
    if status is Status.ISSUED:
        statement = statement.where(quotes.c.status == status, quotes.c.expires_at > now)
    elif status is Status.EXPIRED:
        over = and_(quotes.c.status == Status.ISSUED, quotes.c.expires_at <= now)
        statement = statement.where(or_(quotes.c.status == status, over))
    elif status is not None:
        statement = statement.where(quotes.c.status == status)
    if updated_since is not None:
        statement = statement.where(quotes.c.updated_at >= updated_since)
    if before_id is not None:
        statement = statement.where(quotes.c.id < before_id)
    rows = connection.execute(statement.order_by(quotes.c.id.desc()).limit(limit))
    return [_quote(row) for row in rows]


def page_quotes(connection: Connection, tenant_id: str, *, offset: int, limit: int) -> list[Quote]:
    """Read headers from a position on, newest first, for standards that count pages."""
    statement = select(quotes).where(quotes.c.tenant_id == tenant_id).order_by(quotes.c.id.desc())
    return [_quote(row) for row in connection.execute(statement.offset(offset).limit(limit))]


def count_quotes(connection: Connection, tenant_id: str) -> int:
    counted: int = connection.execute(
        select(func.count()).select_from(quotes).where(quotes.c.tenant_id == tenant_id)
    ).scalar_one()
    return counted


def insert_revision(connection: Connection, revision: Revision) -> None:
    connection.execute(revisions.insert().values(**_revision_values(revision)))


def find_revision(connection: Connection, tenant_id: str, quote_id: str, n: int) -> Revision | None:
    row = connection.execute(
        select(revisions).where(
            revisions.c.tenant_id == tenant_id, revisions.c.quote_id == quote_id, revisions.c.n == n
        )
    ).one_or_none()
    return None if row is None else _revision(row)


def find_revision_by_id(connection: Connection, tenant_id: str, revision_id: str) -> Revision | None:
    row = connection.execute(
        select(revisions).where(revisions.c.tenant_id == tenant_id, revisions.c.id == revision_id)
    ).one_or_none()
    return None if row is None else _revision(row)


def list_heads(connection: Connection, tenant_id: str, quote_id: str) -> list[RevisionHead]:
    """Read all revisions of a quote without their content, in order."""
    rows = connection.execute(
        select(*_HEAD_COLUMNS)
        .where(revisions.c.tenant_id == tenant_id, revisions.c.quote_id == quote_id)
        .order_by(revisions.c.n)
    )
    return [_head(row) for row in rows]


def update_revision(
    connection: Connection, before: RevisionHead, changes: Mapping[str, Any], *, status: Status
) -> bool:
    """Write a changed revision if it still is in the state and edition that was read; tells whether it happened."""
    done = connection.execute(
        update(revisions)
        .where(
            revisions.c.tenant_id == before.tenant_id,
            revisions.c.id == before.id,
            revisions.c.status == status,
            revisions.c.edit == before.edit,
        )
        .values(**changes)
    )
    return done.rowcount == 1


def overdue_heads(connection: Connection, now: datetime, *, limit: int) -> list[RevisionHead]:
    """Read issued revisions past their end, of all tenants, for the sweeper."""
    rows = connection.execute(
        select(*_HEAD_COLUMNS)
        .where(revisions.c.status == Status.ISSUED, revisions.c.expires_at <= now)
        .order_by(revisions.c.expires_at)
        .limit(limit)
    )
    return [_head(row) for row in rows]


def open_heads_not_at(
    connection: Connection,
    tenant_id: str,
    catalog_revision: str,
    *,
    statuses: Sequence[Status],
    now: datetime,
    pinned_to: str | None,
    before_id: str | None,
    limit: int,
) -> list[RevisionHead]:
    """Read revisions in these states as of ``now`` that are pinned to another catalog revision, newest first."""
    statement = select(*_HEAD_COLUMNS).where(
        revisions.c.tenant_id == tenant_id,
        revisions.c.status.in_(statuses),
        or_(revisions.c.status != Status.ISSUED, revisions.c.expires_at > now),
        revisions.c.catalog_revision != catalog_revision,
    )
    if pinned_to is not None:
        statement = statement.where(revisions.c.catalog_revision == pinned_to)
    if before_id is not None:
        statement = statement.where(revisions.c.id < before_id)
    rows = connection.execute(statement.order_by(revisions.c.id.desc()).limit(limit))
    return [_head(row) for row in rows]


def insert_acceptance(connection: Connection, tenant_id: str, acceptance: Acceptance) -> None:
    connection.execute(
        acceptances.insert().values(
            tenant_id=tenant_id,
            **{name: getattr(acceptance, name) for name in Acceptance.__slots__},
        )
    )


def find_acceptance(connection: Connection, tenant_id: str, revision_id: str) -> Acceptance | None:
    row = connection.execute(
        select(acceptances).where(acceptances.c.tenant_id == tenant_id, acceptances.c.revision_id == revision_id)
    ).one_or_none()
    if row is None:
        return None
    return Acceptance(**{name: value for name, value in row._mapping.items() if name != "tenant_id"})


def next_counter(connection: Connection, tenant_id: str, *, prefix: str, year: int) -> int:
    """Take the next number of a series in one statement: two callers never get the same one."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = (
        dialect.insert(series)
        .values(tenant_id=tenant_id, prefix=prefix, year=year, last_counter=1)
        .on_conflict_do_update(
            index_elements=["tenant_id", "prefix", "year"], set_={"last_counter": series.c.last_counter + 1}
        )
        .returning(series.c.last_counter)
    )
    counter: int = connection.execute(statement).scalar_one()
    return counter


def latest_policy(connection: Connection, tenant_id: str) -> tuple[int, Mapping[str, Any]] | None:
    """Read the newest approval policy of a tenant and its version."""
    row = connection.execute(
        select(policies.c.version, policies.c.document)
        .where(policies.c.tenant_id == tenant_id)
        .order_by(policies.c.version.desc())
        .limit(1)
    ).one_or_none()
    return None if row is None else (row.version, row.document)


def insert_policy(
    connection: Connection,
    tenant_id: str,
    *,
    version: int,
    document: Mapping[str, Any],
    created_by: str,
    created_at: datetime,
) -> None:
    connection.execute(
        policies.insert().values(
            tenant_id=tenant_id,
            version=version,
            document=dict(document),
            created_by=created_by,
            created_at=created_at,
        )
    )


def _quote_values(quote: Quote) -> dict[str, Any]:
    values = {name: getattr(quote, name) for name in Quote.__slots__}
    return {**values, "tags": list(quote.tags)}


def _quote(row: Row[Any]) -> Quote:
    values = dict(row._mapping)
    return Quote(**{**values, "tags": tuple(values["tags"]), "status": Status(values["status"])})


def _head(row: Row[Any]) -> RevisionHead:
    values = dict(row._mapping)
    return _head_of(values)


def _head_of(values: Mapping[str, Any]) -> RevisionHead:
    read = {
        "authors": tuple(values["authors"]),
        "edits": tuple(values["edits"]),
        "status": Status(values["status"]),
    }
    return RevisionHead(**{**values, **read})


def _revision(row: Row[Any]) -> Revision:
    values = dict(row._mapping)
    content, outputs = values.pop("content"), values.pop("engine_outputs")
    return Revision(head=_head_of(values), content_text=content, engine_outputs_text=outputs)


def _revision_values(revision: Revision) -> dict[str, Any]:
    values = {name: getattr(revision.head, name) for name in RevisionHead.__slots__}
    return {
        **values,
        "authors": list(revision.head.authors),
        "edits": list(revision.head.edits),
        "content": revision.content_text,
        "engine_outputs": revision.engine_outputs_text,
    }
