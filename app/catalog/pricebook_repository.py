"""Price books in and out of the database; the tenant is a required argument everywhere."""

from collections import defaultdict

from sqlalchemy import Connection, func, insert, select

from app.catalog import tables
from app.catalog.pricebooks import PriceBook, PriceRule


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
        by_version[row.book_id, row.version].append(
            PriceRule(
                action=row.action,
                amount=row.amount,
                basis=row.basis,
                provider=row.provider,
                sku=row.sku,
                accelerator_id=row.accelerator_id,
                region=row.region,
                purchase_model=row.purchase_model,
                term_months=row.term_months,
                contract=row.contract,
            )
        )
    return [
        PriceBook(
            id=row.id,
            version=row.version,
            name=row.name,
            currency=row.currency,
            valid_from=row.valid_from,
            valid_to=row.valid_to,
            priority=row.priority,
            rules=tuple(by_version[row.id, row.version]),
            recorded_at=row.recorded_at,
            actor=row.actor,
            withdrawn=row.withdrawn,
        )
        for row in connection.execute(wanted.order_by(books.c.id, books.c.version))
    ]


def insert_book(connection: Connection, tenant_id: str, book: PriceBook) -> None:
    """Insert one version of a book with its rules."""
    connection.execute(
        insert(tables.price_book).values(
            tenant_id=tenant_id,
            id=book.id,
            version=book.version,
            name=book.name,
            currency=book.currency,
            valid_from=book.valid_from,
            valid_to=book.valid_to,
            priority=book.priority,
            withdrawn=book.withdrawn,
            recorded_at=book.recorded_at,
            actor=book.actor,
        )
    )
    rows = [
        {
            "tenant_id": tenant_id,
            "book_id": book.id,
            "version": book.version,
            "position": position,
            "provider": rule.provider,
            "sku": rule.sku,
            "accelerator_id": rule.accelerator_id,
            "region": rule.region,
            "purchase_model": rule.purchase_model,
            "term_months": rule.term_months,
            "action": rule.action,
            "amount": rule.amount,
            "basis": rule.basis,
            "contract": rule.contract,
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
