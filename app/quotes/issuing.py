"""Issue, accept, decline, withdraw, expire: the offer towards the customer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection

from app.access.principal import Principal
from app.estimates import service as estimates
from app.foundation.clock import Clock
from app.foundation.identifiers import new_id
from app.quotes import repository
from app.quotes.acting import Acting
from app.quotes.composing import check_selections, check_zone, validity_for, with_validity
from app.quotes.content import open_content
from app.quotes.errors import (
    bad_field,
    content_mismatch,
    incomplete_pricing,
    stale_price,
    tax_undetermined,
    validity_over,
)
from app.quotes.headers import refresh_header
from app.quotes.lifecycle import ACCEPT, Action, Status
from app.quotes.moving import Step, begin, finish, move
from app.quotes.numbering import Series
from app.quotes.options import stale_lines
from app.quotes.policies import current_policy
from app.quotes.records import Acceptance, Quote, Revision, RevisionHead
from app.quotes.reviewing import ACCEPT_STALE, waived
from app.quotes.validity import local_today

NUMBER_PREFIX = "Q"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceTerms:
    """What the accepting side says: which content, which options, signed by whom, on what evidence."""

    content_sha256: str
    selections: Mapping[str, str]
    signatory: Mapping[str, Any] | None = None
    evidence: Mapping[str, Any] | None = None


def issue(
    connection: Connection,
    acting: Acting,
    quote_id: str,
    n: int,
    *,
    valid_through: date | None = None,
    timezone: str | None = None,
    reason: str | None = None,
) -> tuple[Quote, Revision]:
    """Make the offer: number, period, and the end of the offer before it, in one transaction."""
    step = begin(connection, acting, quote_id, n, Action.ISSUE)
    if timezone is not None:
        check_zone(timezone, "")
    # The number comes first: no rule about dates below may leave an issued quote without one.
    number = step.quote.number or _new_number(connection, step, timezone or step.head.timezone)
    content = open_content(step.revision.content_text)
    if not step.head.complete:
        raise incomplete_pricing(step.head, content["completeness"]["unpriced_lines"])
    if content["totals"]["gross"] is None and current_policy(connection, acting.tenant_id).requires_tax:
        raise tax_undetermined(step.head, content["spec"]["terms"]["tax_region"])
    changes, text = _with_period(connection, acting, step, content, valid_through, timezone)
    detail: dict[str, Any] = {"number": number}
    stale = stale_lines(content["items"], local_today(step.now, step.head.timezone))
    if stale and not waived(step, ACCEPT_STALE):
        if not acting.principal.may_self_approve:
            raise stale_price(step.head, stale)
        changes["approval"] = _self_waived(step)
        detail["waiver"] = {"code": ACCEPT_STALE, "by": acting.actor, "lines": stale}
    _close_others(connection, acting, step)
    changes |= {"issued_by": acting.actor, "issued_at": step.now}
    return finish(
        connection, acting, step, Status.ISSUED,
        changes=changes, header={"number": number}, reason=reason, detail=detail, content_text=text,
    )  # fmt: skip


def accept(
    connection: Connection, acting: Acting, quote_id: str, n: int, terms: AcceptanceTerms
) -> tuple[Quote, Revision, Acceptance]:
    """Accept what was offered, before it ends, by the hash of what was read."""
    step = begin(connection, acting, quote_id, n, Action.ACCEPT)
    if not acting.principal.has(ACCEPT) and terms.evidence is None:
        raise bad_field(
            "/evidence", "missing", "A seller who records a customer's acceptance attaches the signed evidence."
        )
    if terms.content_sha256 != step.head.content_sha256:
        raise content_mismatch(step.head, terms.content_sha256)
    content = open_content(step.revision.content_text)
    check_selections(content["items"], terms.selections)
    chosen = {item["id"]: terms.selections.get(item["id"], item["selected_option_id"]) for item in content["items"]}
    totals, completeness = estimates.content_totals(
        content["items"], step.head.currency or "", content["pins"]["rounding_policy"], chosen
    )
    if totals is None:
        raise incomplete_pricing(step.head, completeness["unpriced_lines"])
    acceptance = Acceptance(
        id=new_id("acc"),
        quote_id=quote_id,
        revision_id=step.head.id,
        content_sha256=step.head.content_sha256,
        selections=chosen,
        totals=totals,
        signatory=terms.signatory,
        evidence=terms.evidence,
        accepted_by=acting.actor,
        on_behalf_of=acting.principal.on_behalf_of,
        accepted_at=step.now,
    )
    repository.insert_acceptance(connection, acting.tenant_id, acceptance)
    detail = {"acceptance_id": acceptance.id, "selections": dict(acceptance.selections)}
    quote, revision = finish(connection, acting, step, Status.ACCEPTED, detail=detail)
    return quote, revision, acceptance


def decline(
    connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str | None
) -> tuple[Quote, Revision]:
    """Turn the offer down."""
    return finish(
        connection, acting, begin(connection, acting, quote_id, n, Action.DECLINE), Status.DECLINED, reason=reason
    )


def withdraw(connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str) -> tuple[Quote, Revision]:
    """Take the offer back."""
    return finish(
        connection, acting, begin(connection, acting, quote_id, n, Action.WITHDRAW), Status.WITHDRAWN, reason=reason
    )


def expire_overdue(connection: Connection, clock: Clock, heads: Sequence[RevisionHead]) -> int:
    """Write down that offers have ended; what readers see does not wait for this."""
    done = 0
    for head in heads:
        system = Principal(tenant_id=head.tenant_id, actor="system", scopes=frozenset())
        acting = Acting(principal=system, clock=clock)
        quote = repository.find_quote(connection, head.tenant_id, head.quote_id, lock=True)
        fresh = repository.find_revision(connection, head.tenant_id, head.quote_id, head.n)
        now = acting.now(connection)
        if quote is None or fresh is None or fresh.head.status is not Status.ISSUED:
            continue
        if fresh.head.status_at(now) is not Status.EXPIRED:
            continue
        move(connection, acting, fresh.head, Action.EXPIRE, Status.EXPIRED, now)
        refresh_header(connection, quote, now)
        done += 1
    return done


def _new_number(connection: Connection, step: Step, timezone: str) -> str:
    year = local_today(step.now, timezone).year
    counter = repository.next_counter(connection, step.quote.tenant_id, prefix=NUMBER_PREFIX, year=year)
    return Series(prefix=NUMBER_PREFIX, year=year).number(counter)


def _with_period(
    connection: Connection,
    acting: Acting,
    step: Step,
    content: Mapping[str, Any],
    valid_through: date | None,
    timezone: str | None,
) -> tuple[dict[str, Any], str | None]:
    """Give what a period named at issue changes; without one, the approved content is issued as it is."""
    head = step.head
    if valid_through is None and timezone is None:
        if step.now >= head.expires_at:
            raise validity_over(head)
        return {}, None
    policy = current_policy(connection, acting.tenant_id)
    wanted = {
        "timezone": timezone or head.timezone,
        "valid_through": (valid_through or head.valid_through_on).isoformat(),
    }
    validity = validity_for(wanted, policy, now=step.now, at="")
    _, sealed = with_validity(content, validity)
    changes = {
        "content_sha256": sealed.sha256,
        "valid_from_on": validity.valid_from_on,
        "valid_through_on": validity.valid_through_on,
        "timezone": validity.timezone,
        "expires_at": validity.expires_at,
    }
    return changes, sealed.text


def _self_waived(step: Step) -> dict[str, Any]:
    approval = dict(step.head.approval or {})
    return {**approval, "waivers": [*approval.get("waivers", ()), ACCEPT_STALE], "self_approval": True}


def _close_others(connection: Connection, acting: Acting, step: Step) -> None:
    """End every other open revision; an accepted one is never touched."""
    for head in repository.list_heads(connection, acting.tenant_id, step.quote.id):
        if head.n == step.head.n or head.status not in (Status.ISSUED, Status.APPROVED, Status.IN_REVIEW):
            continue
        over = head.status_at(step.now) is Status.EXPIRED
        action, target = (Action.EXPIRE, Status.EXPIRED) if over else (Action.SUPERSEDE, Status.SUPERSEDED)
        move(connection, acting, head, action, target, step.now, detail={"by_revision": step.head.n})
