"""One step of a revision through its states: hold the row, check the table, write guarded, make it known."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.quotes import repository
from app.quotes.acting import Acting, Notice
from app.quotes.drafting import locked
from app.quotes.errors import changed_meanwhile, invalid_transition, quote_expired, superseded
from app.quotes.headers import refresh_header
from app.quotes.lifecycle import PAST_TENSE, TERMINAL, Action, Status, Transition, transitions_for
from app.quotes.notices import announce
from app.quotes.records import Quote, Revision, RevisionHead


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A quote held for one action on one of its revisions."""

    quote: Quote
    revision: Revision
    action: Action
    status: Status
    transitions: tuple[Transition, ...]
    now: datetime

    @property
    def head(self) -> RevisionHead:
        """The revision as it is before the step."""
        return self.revision.head


def begin(connection: Connection, acting: Acting, quote_id: str, n: int, action: Action) -> Step:
    """Hold the quote and find what the table says about this action now, on the database's clock."""
    quote, revision = locked(connection, acting, quote_id, n)
    now = acting.now(connection)
    head = revision.head
    status = head.status_at(now)
    transitions = transitions_for(status, action)
    if not transitions:
        if status is Status.EXPIRED and action in (Action.ACCEPT, Action.DECLINE, Action.WITHDRAW):
            raise quote_expired(head)
        if status is Status.SUPERSEDED and action is Action.ACCEPT:
            raise superseded(head, _successor(connection, quote, head))
        raise invalid_transition(action, head, status)
    return Step(quote=quote, revision=revision, action=action, status=status, transitions=transitions, now=now)


def _successor(connection: Connection, quote: Quote, head: RevisionHead) -> int:
    """Revision that took the place: the next one that was issued."""
    heads = repository.list_heads(connection, quote.tenant_id, quote.id)
    issued = [other.n for other in heads if other.n > head.n and other.issued_at is not None]
    return min(issued, default=quote.latest_n)


def finish(
    connection: Connection,
    acting: Acting,
    step: Step,
    target: Status,
    *,
    changes: Mapping[str, Any] | None = None,
    header: Mapping[str, Any] | None = None,
    reason: str | None = None,
    detail: Mapping[str, Any] | None = None,
    content_text: str | None = None,
) -> tuple[Quote, Revision]:
    """Write the step: one guarded update, the header, one audit row, one event."""
    after = move(
        connection, acting, step.head, step.action, target, step.now,
        changes=changes, reason=reason, detail=detail, content_text=content_text,
    )  # fmt: skip
    quote = refresh_header(connection, step.quote, step.now, **(header or {}))
    return quote, replace(step.revision, head=after, content_text=content_text or step.revision.content_text)


def move(
    connection: Connection,
    acting: Acting,
    head: RevisionHead,
    action: Action,
    target: Status,
    now: datetime,
    *,
    changes: Mapping[str, Any] | None = None,
    reason: str | None = None,
    detail: Mapping[str, Any] | None = None,
    content_text: str | None = None,
) -> RevisionHead:
    """Move one revision and make it known; the header is the caller's."""
    closing = {"closed_by": acting.actor, "closed_at": now, "closed_reason": reason} if target in TERMINAL else {}
    written = {"status": target, "updated_at": now, **closing, **(changes or {})}
    stored = written if content_text is None else {**written, "content": content_text}
    if not repository.update_revision(connection, head, stored, status=head.status):
        raise changed_meanwhile(head)
    after = replace(head, **written)
    announce(
        connection,
        acting,
        Notice(
            action=action,
            quote_id=head.quote_id,
            revision_id=head.id,
            n=head.n,
            status=target,
            at=now,
            before_sha256=head.content_sha256,
            after_sha256=after.content_sha256,
            event=f"quote.{PAST_TENSE[action]}",
            reason=reason,
            detail=detail or {},
        ),
    )
    return after
