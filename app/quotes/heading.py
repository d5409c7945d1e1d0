"""Changing what is said about a quote beside its revisions: title, external reference, owner, tags."""

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import Connection

from app.quotes import repository
from app.quotes.acting import Acting
from app.quotes.drafting import draft_notice
from app.quotes.errors import no_quote, no_revision
from app.quotes.headers import check_external_ref, refresh_header
from app.quotes.notices import announce
from app.quotes.records import Quote


def edit_header(
    connection: Connection, acting: Acting, quote_id: str, fields: Mapping[str, Any], *, check: Callable[[str], None]
) -> Quote:
    """Change title, external reference, owner or tags; ``check`` sees the tag of the header and may refuse."""
    now = acting.now(connection)
    quote = repository.find_quote(connection, acting.tenant_id, quote_id, lock=True)
    if quote is None:
        raise no_quote()
    check(quote.etag_at(now))
    check_external_ref(connection, acting, fields.get("external_ref"), quote_id)
    changed = {name: value for name, value in fields.items() if getattr(quote, name) != value}
    if not changed:
        return quote
    after = refresh_header(connection, quote, now, **changed)
    revision = repository.find_revision(connection, acting.tenant_id, quote_id, after.current_n)
    if revision is None:
        raise no_revision()
    detail = {"changed": sorted(changed)}
    notice = draft_notice(revision.head, "update", now, before=revision.head, event="quote.updated", detail=detail)
    announce(connection, acting, notice)
    return after
