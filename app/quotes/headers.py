"""The header follows its revisions: which one is current, and what a list shows of it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.quotes import repository
from app.quotes.acting import Acting
from app.quotes.errors import external_ref_conflict, header_changed
from app.quotes.lifecycle import Status
from app.quotes.options import money
from app.quotes.records import Quote, RevisionHead
from app.quotes.signed import acceptance_of

# A contract outranks an offer, an offer outranks work in progress; among equals the newest counts.
_RANK = {Status.ACCEPTED: 2, Status.ISSUED: 1}


def current_of(heads: Sequence[RevisionHead]) -> RevisionHead:
    """Give the revision a quote stands for: what was accepted, else what is on offer, else the newest."""
    return max(heads, key=lambda head: (_RANK.get(head.status, 0), head.n))


def refresh_header(connection: Connection, quote: Quote, now: datetime, **changes: Any) -> Quote:
    """Write the header anew from the revisions as they are in this transaction."""
    current = current_of(repository.list_heads(connection, quote.tenant_id, quote.id))
    acceptance = acceptance_of(connection, current)
    net_total = current.net_total if acceptance is None else money(acceptance.totals["net"]).amount
    changes = {
        "status": current.status,
        "current_n": current.n,
        "expires_at": current.expires_at,
        "currency": current.currency,
        "net_total": net_total,
        "updated_at": now,
        **changes,
    }
    if not repository.update_quote(connection, quote, changes):
        raise header_changed(quote)
    return replace(quote, **changes, version=quote.version + 1)


def check_external_ref(
    connection: Connection, acting: Acting, external_ref: str | None, quote_id: str | None = None
) -> None:
    """Refuse a reference that another quote of the tenant has."""
    if external_ref is None:
        return
    taken = repository.find_by_external_ref(connection, acting.tenant_id, external_ref)
    if taken not in (None, quote_id):
        raise external_ref_conflict(external_ref, str(taken))
