"""Reading quotes: lists, one quote, one revision, its trail, and what a new catalog revision would move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from app.catalog import service as catalog
from app.quotes import repository
from app.quotes.calculation import Calculator, calculator_for
from app.quotes.content import Pins, open_content
from app.quotes.errors import bad_field, no_quote, no_revision
from app.quotes.lifecycle import Status
from app.quotes.records import Acceptance, Quote, Revision, RevisionHead
from app.quotes.signed import acceptance_of, as_signed, read_signed


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One revision with its quote, and how it was accepted where it was."""

    quote: Quote
    revision: Revision
    acceptance: Acceptance | None
    now: datetime

    @property
    def signed(self) -> Revision:
        """The revision with the options that were accepted: what to draft from, compare with and explain."""
        return as_signed(self.revision, self.acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a list is narrowed to; None lets everything pass."""

    status: Status | None = None
    customer: str | None = None
    number: str | None = None
    external_ref: str | None = None
    owner: str | None = None
    updated_since: datetime | None = None

    def equal(self) -> Mapping[str, str]:
        """Columns that have to have a value."""
        wanted = {
            "customer_ref": self.customer,
            "number": self.number,
            "external_ref": self.external_ref,
            "owner": self.owner,
        }
        return {column: value for column, value in wanted.items() if value is not None}


def list_quotes(
    connection: Connection, tenant_id: str, filters: Filters, *, now: datetime, before_id: str | None, limit: int
) -> list[Quote]:
    """Read headers, newest first."""
    return repository.list_quotes(
        connection,
        tenant_id,
        now=now,
        status=filters.status,
        equal=filters.equal(),
        updated_since=filters.updated_since,
        before_id=before_id,
        limit=limit,
    )


def page_quotes(connection: Connection, tenant_id: str, *, offset: int, limit: int) -> tuple[Sequence[Quote], int]:
    """Read headers from a position on, newest first, and how many there are in all."""
    found = repository.page_quotes(connection, tenant_id, offset=offset, limit=limit)
    return found, repository.count_quotes(connection, tenant_id)


def find_quote(connection: Connection, tenant_id: str, quote_id: str) -> Quote:
    """Read a header or refuse."""
    quote = repository.find_quote(connection, tenant_id, quote_id)
    if quote is None:
        raise no_quote()
    return quote


def show(connection: Connection, tenant_id: str, quote_id: str, n: int | None = None, *, now: datetime) -> Shown:
    """Read one revision of a quote; None = the current one."""
    quote = find_quote(connection, tenant_id, quote_id)
    revision = repository.find_revision(connection, tenant_id, quote_id, quote.current_n if n is None else n)
    if revision is None:
        raise no_revision()
    return Shown(quote=quote, revision=revision, acceptance=acceptance_of(connection, revision.head), now=now)


def list_revisions(connection: Connection, tenant_id: str, quote_id: str) -> tuple[Quote, Sequence[RevisionHead]]:
    """Read all revisions of a quote, oldest first."""
    quote = find_quote(connection, tenant_id, quote_id)
    return quote, repository.list_heads(connection, tenant_id, quote_id)


def show_by_id(connection: Connection, tenant_id: str, revision_id: str) -> tuple[Revision, str | None]:
    """Read a revision by its own id, with the number of its quote."""
    revision = repository.find_revision_by_id(connection, tenant_id, revision_id)
    if revision is None:
        raise no_revision()
    number = find_quote(connection, tenant_id, revision.head.quote_id).number
    return read_signed(connection, revision), number


def pinned_calculator(connection: Connection, revision: Revision) -> Calculator:
    """Read the catalog revision and price book a revision was made with."""
    try:
        content = open_content(revision.content_text)
        pins = Pins.from_content(content["pins"])
        spec = content["spec"]
    except (ValueError, KeyError, TypeError):  # damaged: verification says so, at today's catalog
        return Calculator(snapshot=catalog.snapshot(connection, None), book=None)
    return calculator_for(
        connection,
        revision.head.tenant_id,
        spec,
        catalog_revision=pins.catalog_revision,
        price_book_version=pins.price_book_version,
    )


def find_base(connection: Connection, tenant_id: str, quote_id: str, source: str | int | None) -> Revision:
    """Find the revision to draft from: by number or id within the quote; None = the current one."""
    quote = find_quote(connection, tenant_id, quote_id)
    n = source if source is not None else quote.current_n
    found = (
        repository.find_revision(connection, tenant_id, quote_id, n)
        if isinstance(n, int)
        else repository.find_revision_by_id(connection, tenant_id, n)
    )
    if found is None or found.head.quote_id != quote_id:
        raise bad_field("/from", "unknown_revision", f"The quote has no revision {n!r}; it has 1 to {quote.latest_n}.")
    return read_signed(connection, found)
