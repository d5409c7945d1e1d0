"""Submit, approve, reject, cancel: the way of a draft to the point where it may be issued."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from app.pricing.money import CONTEXT, ONE
from app.quotes import repository
from app.quotes.acting import Acting
from app.quotes.content import is_intact, open_content
from app.quotes.errors import content_changed_since_submit, incomplete_pricing, refuse_second_draft, self_approval
from app.quotes.lifecycle import Action, Status
from app.quotes.moving import Step, begin, finish
from app.quotes.options import money, oldest_price_days, stale_lines
from app.quotes.policies import current_policy
from app.quotes.policy import PolicyFacts, review_reasons
from app.quotes.records import Quote, Revision, RevisionHead
from app.quotes.validity import local_today, utc_text

ACCEPT_STALE = "accept_stale"


def submit(
    connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str | None = None
) -> tuple[Quote, Revision]:
    """Ask for approval: inside the policy it is given at once, else the revision waits for a person."""
    step = begin(connection, acting, quote_id, n, Action.SUBMIT)
    content = open_content(step.revision.content_text)
    if not step.head.complete:
        raise incomplete_pricing(step.head, content["completeness"]["unpriced_lines"])
    policy = current_policy(connection, acting.tenant_id)
    reasons = review_reasons(policy, policy_facts(step.head, content, step.now))
    target = Status.IN_REVIEW if reasons else Status.APPROVED
    review = {
        "policy_version": policy.version,
        "needed": bool(reasons),
        "reasons": [entry.as_document() for entry in reasons],
        "submitted_by": acting.actor,
        "submitted_at": utc_text(step.now),
    }
    changes: dict[str, Any] = {"submitted_sha256": step.head.content_sha256, "review": review}
    if not reasons:
        changes["approval"] = _approval("policy", step.now, by_policy=True)
    return finish(
        connection, acting, step, target, changes=changes, reason=reason, detail={"review": _without_figures(review)}
    )


def _without_figures(review: Mapping[str, Any]) -> dict[str, Any]:
    """What the audit trail keeps of a verdict: the figures tell the margin, and stand on the revision."""
    return {**review, "reasons": [reason["code"] for reason in review["reasons"]]}


def approve(
    connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str | None, waivers: Sequence[str]
) -> tuple[Quote, Revision]:
    """Let a reviewed revision pass; never one's own, never content that changed since it was submitted."""
    step = begin(connection, acting, quote_id, n, Action.APPROVE)
    own = acting.actor in step.head.authors
    if own and not acting.principal.may_self_approve:
        raise self_approval(step.head)
    if step.head.submitted_sha256 != step.head.content_sha256 or not is_intact(
        step.revision.content_text, step.head.content_sha256
    ):
        raise content_changed_since_submit(step.head)
    approval = _approval(acting.actor, step.now, reason=reason, waivers=waivers, own=own)
    return finish(
        connection, acting, step, Status.APPROVED,
        changes={"approval": approval}, reason=reason, detail={"approval": approval},
    )  # fmt: skip


def reject(connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str) -> tuple[Quote, Revision]:
    """Send a reviewed revision back to its author, with the reason."""
    step = begin(connection, acting, quote_id, n, Action.REJECT)
    heads = repository.list_heads(connection, acting.tenant_id, quote_id)
    refuse_second_draft(quote_id, heads)
    entry = {"edit": step.head.edit, "by": acting.actor, "changed": [], "rejected": reason}
    changes = {"submitted_sha256": None, "review": None, "edits": [*step.head.edits, entry]}
    quote, revision = finish(connection, acting, step, Status.DRAFT, changes=changes, reason=reason)
    return quote, revision


def cancel(
    connection: Connection, acting: Acting, quote_id: str, n: int, *, reason: str | None
) -> tuple[Quote, Revision]:
    """Give up a revision that was not issued."""
    step = begin(connection, acting, quote_id, n, Action.CANCEL)
    return finish(connection, acting, step, Status.CANCELLED, reason=reason)


def policy_facts(head: RevisionHead, content: Mapping[str, Any], now: datetime) -> PolicyFacts:
    """Collect what the approval policy looks at."""
    terms = content["spec"].get("terms") or {}
    today = local_today(now, head.timezone)
    markup = Decimal(terms.get("markup", "0"))
    net = money(content["totals"]["net"])
    return PolicyFacts(
        discount=Decimal(terms.get("discount", "0")),
        # margin = 1 - cost / price, and price = cost x (1 + markup)
        margin=CONTEXT.divide(markup, ONE + markup),
        total=net.amount,
        currency=net.currency,
        stale_lines=len(stale_lines(content["items"], today)),
        oldest_price_days=oldest_price_days(content["items"], today),
        held_prices=head.pricing == "hold",
    )


def _approval(
    by: str,
    at: datetime,
    *,
    by_policy: bool = False,
    reason: str | None = None,
    waivers: Sequence[str] = (),
    own: bool = False,
) -> dict[str, Any]:
    return {
        "by": by,
        "at": utc_text(at),
        "by_policy": by_policy,
        "reason": reason,
        "waivers": list(waivers),
        "self_approval": own,
    }


def waived(step: Step, waiver: str) -> bool:
    """Say whether the approval lets the step pass in spite of something."""
    return waiver in (step.head.approval or {}).get("waivers", ())
