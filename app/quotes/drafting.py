"""Making and changing drafts: a new quote, an edited draft, a new revision of an existing quote."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.access import quotas
from app.foundation.identifiers import new_id
from app.quotes import repository
from app.quotes.acting import Acting, Notice
from app.quotes.calculation import Calculation
from app.quotes.composing import Composed, compose, validity_for, with_validity
from app.quotes.content import open_content
from app.quotes.errors import (
    edited_meanwhile,
    no_quote,
    no_revision,
    refuse_second_draft,
    revision_immutable,
)
from app.quotes.headers import check_external_ref, refresh_header
from app.quotes.keeping import Selections, selections_of
from app.quotes.lifecycle import Status
from app.quotes.mergepatch import changed_pointers
from app.quotes.notices import announce
from app.quotes.policies import current_policy
from app.quotes.records import Quote, Revision, RevisionHead
from app.quotes.signed import read_signed


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFields:
    """What a caller says about a quote beside its spec."""

    title: str | None = None
    external_ref: str | None = None
    owner: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A spec with its calculation, made before the transaction because the engine may take long."""

    spec: Mapping[str, Any]
    calculation: Calculation
    selections: Selections = field(default_factory=dict)
    # What became of the supply that was selected before, item by item.
    supply: Sequence[Mapping[str, Any]] = ()
    # Version and build of the engine that made the outputs, where they were kept.
    engine: tuple[str, str] | None = None


def create_quote(
    connection: Connection, acting: Acting, prepared: Prepared, header: HeaderFields
) -> tuple[Quote, Revision]:
    """Store a new quote with its first draft."""
    now = acting.now(connection)
    quotas.take_quote(connection, acting.tenant_id, now)
    check_external_ref(connection, acting, header.external_ref)
    composed = _compose(connection, acting, prepared, now)
    customer = prepared.spec.get("customer") or {}
    quote = Quote(
        tenant_id=acting.tenant_id,
        id=new_id("quo"),
        number=None,
        title=header.title or prepared.spec.get("title"),
        customer_ref=customer.get("external_ref"),
        customer_name=customer.get("name"),
        external_ref=header.external_ref,
        owner=header.owner or acting.actor,
        tags=header.tags,
        status=Status.DRAFT,
        current_n=1,
        latest_n=1,
        expires_at=composed.validity.expires_at,
        currency=composed.currency,
        net_total=composed.net_total,
        version=1,
        created_by=acting.actor,
        created_at=now,
        updated_at=now,
    )
    repository.insert_quote(connection, quote)
    revision = _draft(acting, composed, now, quote_id=quote.id, n=1, pricing="new")
    repository.insert_revision(connection, revision)
    announce(connection, acting, draft_notice(revision.head, "create", now, event="quote.created"))
    return quote, revision


def edit_draft(
    connection: Connection, acting: Acting, quote_id: str, n: int, *, edit: int, prepared: Prepared
) -> tuple[Quote, Revision]:
    """Replace the content of a draft that still is at edition ``edit``."""
    now = acting.now(connection)
    quote, before = locked(connection, acting, quote_id, n)
    head = before.head
    if head.status is not Status.DRAFT:
        raise revision_immutable(head, head.status_at(now))
    if head.edit != edit:
        raise edited_meanwhile(head.etag, head.changed_since(edit), head.updated_at)
    composed = _compose(connection, acting, prepared, now)
    old = open_content(before.content_text)
    new = open_content(composed.sealed.text)
    changed = changed_pointers(old["spec"], new["spec"])
    changed += changed_pointers({"selections": selections_of(old)}, {"selections": selections_of(new)})
    entry = {"edit": edit + 1, "by": acting.actor, "changed": changed}
    authors = (*head.authors, *(name for name in (acting.actor,) if name not in head.authors))
    after = replace(
        head,
        **_columns(composed),
        edit=edit + 1,
        edits=(*head.edits, entry)[-50:],
        authors=authors,
        updated_at=now,
        submitted_sha256=None,
        review=None,
    )
    fields = [*_columns(composed), "edit", "updated_at", "submitted_sha256", "review"]
    changes = {name: getattr(after, name) for name in fields}
    changes |= {"content": composed.sealed.text, "engine_outputs": composed.engine_outputs_text}
    changes |= {"authors": list(authors), "edits": list(after.edits)}
    if not repository.update_revision(connection, head, changes, status=Status.DRAFT):
        raise edited_meanwhile(head.etag, head.changed_since(edit), head.updated_at)
    customer = prepared.spec.get("customer") or {}
    more = {"customer_ref": customer.get("external_ref"), "customer_name": customer.get("name")}
    quote = refresh_header(connection, quote, now, **(more if quote.latest_n == n else {}))
    announce(
        connection,
        acting,
        draft_notice(after, "edit", now, before=head, event="quote.updated", detail={"changed": changed}),
    )
    revision = Revision(head=after, content_text=composed.sealed.text, engine_outputs_text=composed.engine_outputs_text)
    return quote, revision


def add_revision(
    connection: Connection, acting: Acting, quote_id: str, base_n: int, *, pricing: str, prepared: Prepared | None
) -> tuple[Quote, Revision]:
    """Draft the next revision of a quote; ``prepared`` is None when the earlier prices are held."""
    now = acting.now(connection)
    quote, base = locked(connection, acting, quote_id, base_n)
    heads = repository.list_heads(connection, acting.tenant_id, quote_id)
    refuse_second_draft(quote_id, heads)
    composed = _compose(connection, acting, prepared, now) if prepared else _held(connection, acting, base, now)
    accepted = [head.n for head in heads if head.status is Status.ACCEPTED]
    revision = _draft(
        acting,
        composed,
        now,
        quote_id=quote_id,
        n=quote.latest_n + 1,
        pricing=pricing,
        based_on_n=base_n,
        amends_n=max(accepted, default=None),
    )
    repository.insert_revision(connection, revision)
    quote = refresh_header(connection, quote, now, latest_n=quote.latest_n + 1)
    detail = {"based_on": base_n, "pricing": pricing, "amends": revision.head.amends_n}
    announce(
        connection, acting, draft_notice(revision.head, "create_revision", now, event="revision.created", detail=detail)
    )
    return quote, revision


def locked(connection: Connection, acting: Acting, quote_id: str, n: int) -> tuple[Quote, Revision]:
    """Hold the quote's row and read one of its revisions."""
    quote = repository.find_quote(connection, acting.tenant_id, quote_id, lock=True)
    if quote is None:
        raise no_quote()
    revision = repository.find_revision(connection, acting.tenant_id, quote_id, n)
    if revision is None:
        raise no_revision()
    return quote, revision


def _compose(connection: Connection, acting: Acting, prepared: Prepared, now: datetime) -> Composed:
    policy = current_policy(connection, acting.tenant_id)
    validity = validity_for(prepared.spec.get("terms") or {}, policy, now=now)
    return compose(
        prepared.spec,
        prepared.calculation,
        validity=validity,
        tenant_id=acting.tenant_id,
        selections=prepared.selections,
        engine=prepared.engine,
    )


def _held(connection: Connection, acting: Acting, base: Revision, now: datetime) -> Composed:
    """Give the same lines with a new period: the seller carries what prices did meanwhile."""
    base = read_signed(connection, base)
    content = open_content(base.content_text)
    policy = current_policy(connection, acting.tenant_id)
    timezone = content["validity"]["timezone"]
    validity = validity_for({"timezone": timezone}, policy, now=now)
    changed, sealed = with_validity(content, validity)
    return Composed(
        content=changed,
        sealed=sealed,
        engine_outputs_text=base.engine_outputs_text,
        validity=validity,
        complete=base.head.complete,
        currency=base.head.currency or "",
        net_total=base.head.net_total,
        catalog_revision=base.head.catalog_revision,
        engine_version=base.head.engine_version,
    )


def _columns(composed: Composed) -> dict[str, Any]:
    return {
        "content_sha256": composed.sealed.sha256,
        "complete": composed.complete,
        "currency": composed.currency,
        "net_total": composed.net_total,
        "valid_from_on": composed.validity.valid_from_on,
        "valid_through_on": composed.validity.valid_through_on,
        "timezone": composed.validity.timezone,
        "expires_at": composed.validity.expires_at,
        "catalog_revision": composed.catalog_revision,
        "engine_version": composed.engine_version,
    }


def _draft(
    acting: Acting,
    composed: Composed,
    now: datetime,
    *,
    quote_id: str,
    n: int,
    pricing: str,
    based_on_n: int | None = None,
    amends_n: int | None = None,
) -> Revision:
    head = RevisionHead(
        tenant_id=acting.tenant_id,
        id=new_id("rev"),
        quote_id=quote_id,
        n=n,
        edit=1,
        status=Status.DRAFT,
        pricing=pricing,
        based_on_n=based_on_n,
        amends_n=amends_n,
        **_columns(composed),
        authors=(acting.actor,),
        edits=(),
        submitted_sha256=None,
        review=None,
        approval=None,
        created_by=acting.actor,
        created_at=now,
        updated_at=now,
        issued_by=None,
        issued_at=None,
        closed_by=None,
        closed_at=None,
        closed_reason=None,
    )
    return Revision(head=head, content_text=composed.sealed.text, engine_outputs_text=composed.engine_outputs_text)


def draft_notice(
    head: RevisionHead,
    action: str,
    now: datetime,
    *,
    before: RevisionHead | None = None,
    event: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> Notice:
    return Notice(
        action=action,
        quote_id=head.quote_id,
        revision_id=head.id,
        n=head.n,
        status=head.status,
        at=now,
        before_sha256=None if before is None else before.content_sha256,
        after_sha256=head.content_sha256,
        event=event,
        detail=detail or {},
    )
