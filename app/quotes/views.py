"""How quotes and revisions look in an answer."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from app.estimates import service as estimates
from app.foundation.clock import rfc3339
from app.quotes.content import open_content
from app.quotes.errors import quote_path, revision_path
from app.quotes.lifecycle import IMMUTABLE, Status, allowed_actions
from app.quotes.numbering import display_number
from app.quotes.options import amount_json
from app.quotes.records import Acceptance, Quote, Revision, RevisionHead


def quote_view(quote: Quote, now: datetime) -> dict[str, Any]:
    """Give the header."""
    return {
        "id": quote.id,
        "number": quote.number,
        "title": quote.title,
        "customer": {"external_ref": quote.customer_ref, "name": quote.customer_name},
        "external_ref": quote.external_ref,
        "owner": quote.owner,
        "tags": list(quote.tags),
        "status": quote.status_at(now),
        "revision": quote.current_n,
        "latest_revision": quote.latest_n,
        "expires_at": _time(quote.expires_at),
        "net_total": amount_json(quote.net_total, quote.currency),
        "created_by": quote.created_by,
        "created_at": rfc3339(quote.created_at),
        "updated_at": rfc3339(quote.updated_at),
        "links": {"self": quote_path(quote.id), "current": revision_path(quote.id, quote.current_n)},
    }


def head_view(head: RevisionHead, number: str | None, now: datetime, *, with_costs: bool) -> dict[str, Any]:
    """Give a revision without its content."""
    status = head.status_at(now)
    # The number belongs to what was issued; a draft under a numbered quote carries it already, without a suffix.
    issued = head.issued_at is not None
    return {
        "id": head.id,
        "quote_id": head.quote_id,
        "revision": head.n,
        "etag": head.etag_as(status),
        "status": status,
        "number": number,
        "display_number": display_number(number, head.n) if number and issued else None,
        "pricing": head.pricing,
        "based_on": head.based_on_n,
        "amends": head.amends_n,
        "content_sha256": head.content_sha256,
        "complete": head.complete,
        "net_total": amount_json(head.net_total, head.currency),
        "valid_through": head.valid_through_on.isoformat(),
        "timezone": head.timezone,
        "expires_at": rfc3339(head.expires_at),
        "catalog_revision": head.catalog_revision,
        "engine_version": head.engine_version,
        "authors": list(head.authors),
        # Why a revision needed review tells margin and discount.
        "review": head.review if with_costs else None,
        "approval": head.approval if with_costs else None,
        "approved_by": None if head.approval is None else head.approval["by"],
        "created_by": head.created_by,
        "created_at": rfc3339(head.created_at),
        "updated_at": rfc3339(head.updated_at),
        "issued_by": head.issued_by,
        "issued_at": _time(head.issued_at),
        "closed_by": head.closed_by,
        "closed_at": _time(head.closed_at),
        "closed_reason": head.closed_reason,
        "allowed_actions": [str(action) for action in allowed_actions(status)],
    }


def revision_view(
    revision: Revision,
    number: str | None,
    now: datetime,
    *,
    with_costs: bool,
    acceptance: Acceptance | None = None,
) -> dict[str, Any]:
    """Give a revision in full: what is said about it, and the hashed content as it is stored."""
    content = open_content(revision.content_text)
    if not with_costs:
        content = estimates.without_costs(content)
    return {
        **head_view(revision.head, number, now, with_costs=with_costs),
        # of an accepted revision what was accepted, which may be other options than those it was offered with
        **({} if acceptance is None else {"net_total": acceptance.totals["net"]}),
        **content,
        "acceptance": None if acceptance is None else acceptance_view(acceptance),
    }


def acceptance_view(acceptance: Acceptance) -> dict[str, Any]:
    """Give what was accepted, by whom."""
    return {
        "id": acceptance.id,
        "content_sha256": acceptance.content_sha256,
        "selections": dict(acceptance.selections),
        "totals": dict(acceptance.totals),
        "signatory": acceptance.signatory,
        "evidence": acceptance.evidence,
        "accepted_by": acceptance.accepted_by,
        "on_behalf_of": acceptance.on_behalf_of,
        "accepted_at": rfc3339(acceptance.accepted_at),
    }


def cache_headers(head: RevisionHead, now: datetime) -> Mapping[str, str]:
    """Give ETag and Cache-Control: content is fixed from issued on, the state only once it is final."""
    status = head.status_at(now)
    if status is Status.ISSUED:
        caching = "private, max-age=0, must-revalidate, immutable"
    elif status in IMMUTABLE:
        caching = "private, max-age=31536000, immutable"
    else:
        caching = "private, no-cache"
    return {"ETag": head.etag_as(status), "Cache-Control": caching}


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)
