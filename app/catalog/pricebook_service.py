"""Storing and finding a tenant's price books."""

from datetime import date, datetime

from sqlalchemy import Connection

from app.access.principal import Principal
from app.catalog import errors, pricebook_repository, trail
from app.catalog.pricebooks import PriceBook, PriceRule, newest_versions
from app.foundation.identifiers import new_id


def price_books(connection: Connection, tenant_id: str) -> list[PriceBook]:
    """Give the newest version of each of the tenant's books."""
    return newest_versions(pricebook_repository.read_books(connection, tenant_id))


def find_price_book(connection: Connection, tenant_id: str, book: str, version: int | None = None) -> PriceBook:
    """Find a book by id or name, in its newest version or the one asked for."""
    found = pricebook_repository.read_books(connection, tenant_id, book) or [
        known for known in pricebook_repository.read_books(connection, tenant_id) if known.name == book
    ]
    chosen = [known for known in found if version in (None, known.version)]
    if not chosen:
        raise errors.no_price_book()
    return max(chosen, key=lambda known: known.version)


def save_price_book(
    connection: Connection,
    principal: Principal,
    book_id: str | None,
    *,
    name: str,
    currency: str,
    valid_from: date,
    valid_to: date | None,
    priority: int,
    rules: tuple[PriceRule, ...],
    now: datetime,
) -> PriceBook:
    """Insert a new book, or a new version of one, and record it in the audit chain."""
    tenant_id = principal.tenant_id
    last = None if book_id is None else _newest(connection, tenant_id, book_id)
    if pricebook_repository.name_taken(connection, tenant_id, name, None if last is None else last.id):
        raise errors.price_book_name_taken(name)
    book = PriceBook(
        id=new_id("pb") if last is None else last.id,
        version=1 if last is None else last.version + 1,
        name=name,
        currency=currency,
        valid_from=valid_from,
        valid_to=valid_to,
        priority=priority,
        rules=rules,
        recorded_at=now,
        actor=principal.actor,
    )
    return _insert(connection, principal, last, book)


def withdraw_price_book(connection: Connection, principal: Principal, book_id: str, *, now: datetime) -> PriceBook:
    """Insert a last version of a book that holds for nothing, and record it in the audit chain."""
    last = _newest(connection, principal.tenant_id, book_id)
    book = PriceBook(
        id=last.id,
        version=last.version + 1,
        name=last.name,
        currency=last.currency,
        valid_from=last.valid_from,
        valid_to=last.valid_to,
        priority=last.priority,
        rules=(),
        recorded_at=now,
        actor=principal.actor,
        withdrawn=True,
    )
    return _insert(connection, principal, last, book)


def _insert(connection: Connection, principal: Principal, last: PriceBook | None, book: PriceBook) -> PriceBook:
    pricebook_repository.insert_book(connection, principal.tenant_id, book)
    trail.record_book(connection, principal, last, book)
    return book


def _newest(connection: Connection, tenant_id: str, book: str) -> PriceBook:
    """The last version of the book that is meant, also where a name is given that it had before."""
    return find_price_book(connection, tenant_id, find_price_book(connection, tenant_id, book).id)
