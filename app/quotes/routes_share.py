"""Share links: one issued revision, opened without an account until the offer ends or the link is withdrawn."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access import share
from app.access.dependencies import idempotent, require_scopes
from app.access.principal import Principal
from app.foundation.answers import shows
from app.foundation.clock import rfc3339
from app.foundation.idempotency import Answer, Idempotency
from app.quotes import service
from app.quotes.answer_schemas import ShareLinkAnswer
from app.quotes.calling import RevisionNumber, acting_in
from app.quotes.errors import not_on_offer, revision_path
from app.quotes.lifecycle import Status
from app.quotes.schemas import ShareLinkCreate

router = APIRouter(prefix="/v1", tags=["share links"], default_response_class=Response)
Seller = Annotated[Principal, Depends(require_scopes("quotes:issue"))]
Once = Annotated[Idempotency, Depends(idempotent)]


@router.post(
    "/quotes/{quote_id}/revisions/{n}/share-links",
    status_code=201,
    summary="Share an offer",
    responses=shows(ShareLinkAnswer, 201),
)
async def create_link(
    request: Request,
    principal: Seller,
    once: Once,
    quote_id: str,
    n: RevisionNumber,
    body: ShareLinkCreate | None = None,
) -> Response:
    """Make a link that reads, and accepts where that is allowed, this revision only. The token is told once."""
    acting = acting_in(request, principal)
    may_accept = body.may_accept if body else True
    signing_key = request.app.state.settings.signing_key

    def work(connection: Connection) -> Answer:
        now = acting.now(connection)
        head = service.show(connection, principal.tenant_id, quote_id, n, now=now).revision.head
        if head.status_at(now) is not Status.ISSUED:
            raise not_on_offer(head, head.status_at(now))
        link, token = share.create_link(
            connection,
            principal=principal,
            quote_id=quote_id,
            revision=n,
            may_accept=may_accept,
            expires_at=head.expires_at,
            now=now,
            signing_key=signing_key,
        )
        kept = {
            "id": link.id,
            "opens": revision_path(quote_id, n),
            "may_accept": may_accept,
            "expires_at": rfc3339(link.expires_at),
        }
        headers = {"Location": f"/v1/share-links/{link.id}", "Cache-Control": "no-store"}
        return Answer(status=201, body={**kept, "token": token}, stored_body={**kept, "token": None}, headers=headers)

    return await once.transact(work)


@router.delete("/share-links/{link_id}", status_code=204, summary="Withdraw a share link")
async def revoke_link(request: Request, principal: Seller, link_id: str) -> Response:
    acting = acting_in(request, principal)
    await request.app.state.database.transact(
        lambda c: share.revoke_link(c, principal=principal, link_id=link_id, now=acting.now(c)),
        tenant=principal.tenant_id,
    )
    return Response(status_code=204)
