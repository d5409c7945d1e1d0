"""Refusals of the room. Each says what is wrong, why, and what to do next."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from app.foundation.problems import FieldError, NotFound, Problem
from app.quotes.lifecycle import TERMINAL, Action, Status, allowed_actions
from app.quotes.records import Quote, RevisionHead
from app.quotes.validity import utc_text


def quote_path(quote_id: str) -> str:
    """Path of a quote."""
    return f"/v1/quotes/{quote_id}"


def revision_path(quote_id: str, n: int) -> str:
    """Path of a revision."""
    return f"/v1/quotes/{quote_id}/revisions/{n}"


def no_quote() -> NotFound:
    return NotFound("quote")


def no_revision() -> NotFound:
    return NotFound("revision")


def invalid_transition(action: Action, head: RevisionHead, status: Status) -> Problem:
    allowed = [str(name) for name in allowed_actions(status)]
    hint = f"Possible now: {', '.join(allowed)}." if allowed else "This state is final; draft a new revision instead."
    return Problem(
        "invalid-transition",
        f"Revision {head.n} is {status}, so it cannot be the object of {action}. {hint}",
        current_status=status,
        allowed_actions=allowed,
    )


def not_on_offer(head: RevisionHead, status: Status) -> Problem:
    return Problem(
        "invalid-transition",
        f"Revision {head.n} is {status}; only an issued revision is shared. "
        + ("Draft a new revision and issue that." if status in TERMINAL else "Issue it first."),
        current_status=status,
        allowed_actions=[str(name) for name in allowed_actions(status)],
    )


def revision_immutable(head: RevisionHead, status: Status) -> Problem:
    return Problem(
        "revision-immutable",
        f"Revision {head.n} is {status}; only drafts are edited. Draft a new revision from it.",
        create_revision=f"{quote_path(head.quote_id)}/revisions",
        current_status=status,
    )


def draft_exists(quote_id: str, n: int) -> Problem:
    return Problem(
        "draft-exists",
        f"The quote has a draft already, revision {n}, and has room for one. Edit, submit or cancel it first.",
        draft=revision_path(quote_id, n),
    )


def refuse_second_draft(quote_id: str, heads: Sequence[RevisionHead]) -> None:
    """A quote has room for one draft."""
    draft = next((head for head in heads if head.status is Status.DRAFT), None)
    if draft is not None:
        raise draft_exists(quote_id, draft.n)


def quote_expired(head: RevisionHead) -> Problem:
    return Problem(
        "quote-expired",
        f"Valid through {head.valid_through_on} ({head.timezone}). Ask for a new revision at today's prices.",
        expires_at=utc_text(head.expires_at),
        requote=f"{quote_path(head.quote_id)}/reprice",
    )


def superseded(head: RevisionHead, current_n: int) -> Problem:
    return Problem(
        "superseded",
        f"Revision {head.n} was replaced by revision {current_n}. Read and accept that one.",
        current_revision=current_n,
        current=revision_path(head.quote_id, current_n),
    )


def content_mismatch(head: RevisionHead, given: str) -> Problem:
    return Problem(
        "content-mismatch",
        f"You named content {given[:12]}..., but revision {head.n} is {head.content_sha256[:12]}.... "
        "Read it again before you accept.",
        expected_sha256=head.content_sha256,
    )


def content_changed_since_submit(head: RevisionHead) -> Problem:
    return Problem(
        "content-mismatch",
        "The content is not what was submitted for review. Reject it, and have it submitted again.",
        expected_sha256=head.submitted_sha256,
    )


def self_approval(head: RevisionHead) -> Problem:
    return Problem(
        "self-approval",
        f"You wrote or edited revision {head.n}. Another person with the scope quotes:approve has to decide.",
        authors=list(head.authors),
    )


def stale_price(head: RevisionHead, lines: Sequence[Mapping[str, Any]]) -> Problem:
    return Problem(
        "stale-price",
        f"{len(lines)} line(s) rest on prices older than allowed or of an unknown day. Reprice, or have the revision "
        'approved with the waiver "accept_stale".',
        stale_lines=list(lines),
        reprice=f"{quote_path(head.quote_id)}/reprice",
    )


def incomplete_pricing(head: RevisionHead, unpriced: Sequence[Mapping[str, Any]]) -> Problem:
    """Refuse a revision with parts that have no price, or for which several prices tie and nothing selects one."""
    if unpriced and all(line["outcome"] == "ambiguous" for line in unpriced):
        return Problem(
            "ambiguous-price",
            f"For {len(unpriced)} part(s) of revision {head.n} several prices tie, with different amounts. None is "
            "picked by chance: pin an offer (supply.offers), or have the price corrected, then reprice.",
            candidates=list(unpriced),
        )
    return Problem(
        "incomplete-pricing",
        f"Revision {head.n} has {len(unpriced)} part(s) without a price, and a missing price is not zero. "
        "Choose other options or another supply, then submit again.",
        unpriced_lines=list(unpriced),
    )


def tax_undetermined(head: RevisionHead, jurisdiction: str | None) -> Problem:
    place = f"no dated rule for {jurisdiction} is in the catalog" if jurisdiction else "terms.tax_region is not set"
    return Problem(
        "tax-undetermined",
        f"The approval policy lets no offer out without its tax, and the tax of revision {head.n} is not determined: "
        f"{place}. Draft a revision with a tax_region that GET /v1/catalog/facts/taxes lists.",
        jurisdiction=jurisdiction,
    )


def validity_over(head: RevisionHead) -> Problem:
    return Problem(
        "quote-expired",
        f"Revision {head.n} would be valid through {head.valid_through_on} ({head.timezone}), which is over. "
        "Name a later valid_through when you issue.",
        expires_at=utc_text(head.expires_at),
        requote=f"{quote_path(head.quote_id)}/reprice",
    )


def external_ref_conflict(external_ref: str, quote_id: str) -> Problem:
    return Problem(
        "external-ref-conflict",
        f"The external reference {external_ref!r} belongs to another quote. Use that quote, or another reference.",
        existing=quote_path(quote_id),
    )


def edited_meanwhile(etag: str, changed: Sequence[str], at: datetime) -> Problem:
    places = ", ".join(changed[:5]) or "nothing that is shown"
    return Problem(
        "precondition-failed",
        f"Somebody saved the draft at {utc_text(at)} ({places}). Read it again, apply your change to that, and retry.",
        current_etag=etag,
        changed_fields=list(changed),
        headers={"ETag": etag},
    )


def header_changed(quote: Quote) -> Problem:
    return Problem(
        "precondition-failed",
        "The quote changed while your request was running. Read it again and retry.",
        current_etag=quote.etag,
        changed_fields=[],
        headers={"ETag": quote.etag},
    )


def bad_field(pointer: str, code: str, message: str) -> Problem:
    return Problem("validation-failed", message, errors=[FieldError(pointer=pointer, code=code, message=message)])


def changed_meanwhile(head: RevisionHead) -> Problem:
    return Problem("conflict", f"Revision {head.n} changed while your request was running. Read it again and retry.")
