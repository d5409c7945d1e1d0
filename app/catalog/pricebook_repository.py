"""Price books in and out of the database; the tenant is a required argument everywhere."""

from collections import defaultdict
from dataclasses import fields

from sqlalchemy import Connection, func, insert, select

from app.catalog import tables
from app.catalog.pricebooks import PriceBook, PriceRule

# The columns are named as the fields, so that a field added to a rule is stored and read in one place.
RULE_COLUMNS = tuple(field.name for field in fields(PriceRule))
BOOK_COLUMNS = tuple(field.name for field in fields(PriceBook) if field.name != "rules")


def read_books(connection: Connection, tenant_id: str, book_id: str | None = None) -> list[PriceBook]:
    """Read every version of a tenant's books."""
    books, rules = tables.price_book, tables.price_rule
    wanted = select(books).where(books.c.tenant_id == tenant_id)
    lines = select(rules).where(rules.c.tenant_id == tenant_id).order_by(rules.c.position)
    if book_id is not None:
        wanted = wanted.where(books.c.id == book_id)
        lines = lines.where(rules.c.book_id == book_id)
    by_version: dict[tuple[str, int], list[PriceRule]] = defaultdict(list)
    for row in connection.execute(lines):
        rule = PriceRule(**{name: getattr(row, name) for name in RULE_COLUMNS})
        by_version[row.book_id, row.version].append(rule)
    return [
        PriceBook(**{name: getattr(row, name) for name in BOOK_COLUMNS}, rules=tuple(by_version[row.id, row.version]))
        for row in connection.execute(wanted.order_by(books.c.id, books.c.version))
    ]


def insert_book(connection: Connection, tenant_id: str, book: PriceBook) -> None:
    """Insert one version of a book with its rules."""
    values = {name: getattr(book, name) for name in BOOK_COLUMNS}
    connection.execute(insert(tables.price_book).values(tenant_id=tenant_id, **values))
    rows = [
        {
            "tenant_id": tenant_id,
            "book_id": book.id,
            "version": book.version,
            "position": position,
            **{name: getattr(rule, name) for name in RULE_COLUMNS},
        }
        for position, rule in enumerate(book.rules)
    ]
    if rows:
        connection.execute(insert(tables.price_rule), rows)


def name_taken(connection: Connection, tenant_id: str, name: str, book_id: str | None) -> bool:
    """Whether another book of the tenant has the name."""
    books = tables.price_book
    query = select(func.count()).where(books.c.tenant_id == tenant_id, books.c.name == name)
    if book_id is not None:
        query = query.where(books.c.id != book_id)
    return bool(connection.execute(query).scalar_one())
