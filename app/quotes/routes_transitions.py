"""``/v1/quotes/{id}/revisions/{n}/{action}``: the steps of a revision through its states."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import idempotent, require_any
from app.access.principal import Principal
from app.foundation.answers import shows
from app.foundation.idempotency import Answer, Idempotency
from app.quotes import lifecycle, service
from app.quotes.acting import Acting
from app.quotes.answer_schemas import RevisionAnswer
from app.quotes.calling import RevisionNumber, acting_in, revision_answer
from app.quotes.schemas import Accept, Approve, Issue, MustHaveReason, WithReason

router = APIRouter(prefix="/v1/quotes/{quote_id}/revisions/{n}", tags=["lifecycle"], default_response_class=Response)
Author = Annotated[Principal, Depends(require_any(lifecycle.WRITE))]
Approver = Annotated[Principal, Depends(require_any(lifecycle.APPROVE))]
Seller = Annotated[Principal, Depends(require_any(lifecycle.ISSUE))]
Buyer = Annotated[Principal, Depends(require_any(lifecycle.ACCEPT))]
BuyerOrSeller = Annotated[Principal, Depends(require_any(lifecycle.ACCEPT, lifecycle.ISSUE))]
AuthorOrApprover = Annotated[Principal, Depends(require_any(lifecycle.WRITE, lifecycle.APPROVE))]
Once = Annotated[Idempotency, Depends(idempotent)]
MOVED = shows(RevisionAnswer)

Moved = tuple[service.Quote, service.Revision]


async def _step(
    request: Request, principal: Principal, once: Idempotency, move: Callable[[Connection, Acting], Moved]
) -> Response:
    acting = acting_in(request, principal)

    def work(connection: Connection) -> Answer:
        quote, revision = move(connection, acting)
        return revision_answer(quote, revision, acting, connection)

    return await once.transact(work)


@router.post("/submit", summary="Submit a draft for approval", responses=MOVED)
async def submit(
    request: Request, principal: Author, once: Once, quote_id: str, n: RevisionNumber, body: WithReason | None = None
) -> Response:
    """Approve by policy where the draft is inside all thresholds, else wait for a person."""
    reason = body.reason if body else None
    return await _step(
        request, principal, once, lambda c, acting: service.submit(c, acting, quote_id, n, reason=reason)
    )


@router.post("/approve", summary="Approve a submitted revision", responses=MOVED)
async def approve(
    request: Request, principal: Approver, once: Once, quote_id: str, n: RevisionNumber, body: Approve | None = None
) -> Response:
    """Approve what somebody else wrote. ``accept_stale`` lets old prices be issued."""
    asked = body or Approve()
    return await _step(
        request,
        principal,
        once,
        lambda c, acting: service.approve(c, acting, quote_id, n, reason=asked.reason, waivers=asked.waivers),
    )


@router.post("/reject", summary="Send a submitted revision back to its author", responses=MOVED)
async def reject(
    request: Request, principal: Approver, once: Once, quote_id: str, n: RevisionNumber, body: MustHaveReason
) -> Response:
    return await _step(
        request, principal, once, lambda c, acting: service.reject(c, acting, quote_id, n, reason=body.reason)
    )


@router.post("/issue", summary="Issue an approved revision to the customer", responses=MOVED)
async def issue(
    request: Request, principal: Seller, once: Once, quote_id: str, n: RevisionNumber, body: Issue | None = None
) -> Response:
    """Give the number, fix the content for ever, and end the offer before it, in one transaction."""
    asked = body or Issue()
    return await _step(
        request,
        principal,
        once,
        lambda c, acting: service.issue(
            c,
            acting,
            quote_id,
            n,
            valid_through=asked.valid_through,
            timezone=asked.timezone,
            reason=asked.reason,
        ),
    )


@router.post("/accept", summary="Accept an issued revision", responses=MOVED)
async def accept(
    request: Request, principal: BuyerOrSeller, once: Once, quote_id: str, n: RevisionNumber, body: Accept
) -> Response:
    """Accept content by its hash, before it ends on the database's clock."""
    acting = acting_in(request, principal)
    terms = service.AcceptanceTerms(
        content_sha256=body.content_sha256,
        selections=body.selections,
        signatory=None if body.signatory is None else body.signatory.model_dump(),
        evidence=None if body.evidence is None else body.evidence.model_dump(),
    )

    def work(connection: Connection) -> Answer:
        quote, revision, acceptance = service.accept(connection, acting, quote_id, n, terms)
        return revision_answer(quote, revision, acting, connection, acceptance=acceptance)

    return await once.transact(work)


@router.post("/decline", summary="Decline an issued revision", responses=MOVED)
async def decline(
    request: Request, principal: Buyer, once: Once, quote_id: str, n: RevisionNumber, body: WithReason | None = None
) -> Response:
    reason = body.reason if body else None
    return await _step(
        request, principal, once, lambda c, acting: service.decline(c, acting, quote_id, n, reason=reason)
    )


@router.post("/withdraw", summary="Take an issued revision back", responses=MOVED)
async def withdraw(
    request: Request, principal: Seller, once: Once, quote_id: str, n: RevisionNumber, body: MustHaveReason
) -> Response:
    return await _step(
        request, principal, once, lambda c, acting: service.withdraw(c, acting, quote_id, n, reason=body.reason)
    )


@router.post("/cancel", summary="Give up a revision that was not issued", responses=MOVED)
async def cancel(
    request: Request,
    principal: AuthorOrApprover,
    once: Once,
    quote_id: str,
    n: RevisionNumber,
    body: WithReason | None = None,
) -> Response:
    reason = body.reason if body else None
    return await _step(
        request, principal, once, lambda c, acting: service.cancel(c, acting, quote_id, n, reason=reason)
    )
