"""Routes of the room: make a file from a revision, show it, download it."""

import base64
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import idempotent, require_scopes
from app.access.principal import Principal
from app.foundation.clock import rfc3339
from app.foundation.conditional import TAGGED, answer_not_modified
from app.foundation.idempotency import Answer, Idempotency
from app.foundation.problems import Problem
from app.proposals import service
from app.proposals.routes_tmf import router as tmf
from app.proposals.schemas import ProposalCreate, ProposalView
from app.quotes.calling import RevisionNumber, acting_in, document, read
from app.quotes.service import revision_path

router = APIRouter()
proposals = APIRouter(prefix="/v1", tags=["proposals"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Once = Annotated[Idempotency, Depends(idempotent)]
CONTENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The file; its media type is the proposal's media_type.",
        "content": {
            media_type: {"schema": {"type": kind, "description": text}}
            for media_type, kind, text in (
                (
                    "application/json",
                    "object",
                    "The document of docs/schemas/proposal.json, or the fields of an OCI cart.",
                ),
                ("application/xml", "string", "UBL 2.1, or cXML 1.2."),
                ("text/csv", "string", "FOCUS, in UTF-8."),
                ("text/html", "string", "OCI: a form that hands the cart to the buyer's system, in UTF-8."),
                ("application/x-www-form-urlencoded", "string", "OCI: the fields of the cart."),
            )
        },
    }
}


@proposals.post(
    "/quotes/{quote_id}/revisions/{n}/proposals",
    status_code=201,
    summary="Make a file from a revision in another system's format",
    responses={201: {"model": ProposalView}},
)
async def create_proposal(
    request: Request, principal: Reader, once: Once, quote_id: str, n: RevisionNumber, body: ProposalCreate
) -> Response:
    """Write the stored revision as UBL, FOCUS CSV, JSON, cXML or OCI; the same revision gives the same bytes."""
    if principal.share is not None:
        raise Problem(
            "insufficient-scope",
            "A share link reads and accepts one revision; it keeps no files. Ask the sender for the export.",
            required_scopes=["quotes:read"],
        )
    acting = acting_in(request, principal)

    def work(connection: Connection) -> Answer:
        proposal, _ = service.create_proposal(connection, acting, quote_id, n, body)
        headers = {"Location": _path(proposal), "ETag": _etag(proposal), "Cache-Control": "no-store"}
        return Answer(status=201, body=view(proposal), headers=headers)

    return await once.transact(work)


@proposals.get(
    "/proposals/{proposal_id}",
    summary="Show a proposal",
    responses={200: {"model": ProposalView}},
    dependencies=TAGGED,
)
async def show_proposal(request: Request, principal: Reader, proposal_id: str) -> Response:
    """Say which file it is, of which revision, and what was changed to fit its format."""
    proposal = await read(request, principal, lambda c: service.find_proposal(c, principal.tenant_id, proposal_id))
    answer_not_modified(request, _etag(proposal))
    return document(view(proposal), {"ETag": _etag(proposal), "Cache-Control": "private, max-age=31536000, immutable"})


@proposals.get(
    "/proposals/{proposal_id}/content", summary="Download a proposal's file", responses=CONTENT, dependencies=TAGGED
)
async def download_proposal(request: Request, principal: Reader, proposal_id: str) -> Response:
    """Give the bytes as they were made, with their digest (RFC 9530, and RFC 3230 for older clients)."""
    proposal, content = await read(
        request, principal, lambda c: service.find_content(c, principal.tenant_id, proposal_id)
    )
    digest = base64.b64encode(bytes.fromhex(proposal.sha256)).decode()
    headers = {
        "ETag": _etag(proposal),
        "Content-Disposition": f'attachment; filename="{proposal.file_name}"',
        "Content-Digest": f"sha-256=:{digest}:",
        "Digest": f"sha-256={digest}",
        "Cache-Control": "private, max-age=31536000, immutable",
        "Vary": "Authorization",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "sandbox allow-forms",
    }
    answer_not_modified(request, headers["ETag"], headers={"Cache-Control": headers["Cache-Control"]})
    return Response(content, media_type=proposal.media_type, headers=headers)


def view(proposal: service.Proposal) -> dict[str, Any]:
    """Give a proposal as it is shown."""
    return {
        "id": proposal.id,
        "quote_id": proposal.quote_id,
        "revision_id": proposal.revision_id,
        "revision": proposal.n,
        "format": proposal.format,
        "options": dict(proposal.options),
        "status": "ready",
        "standing": proposal.standing,
        "revision_content_sha256": proposal.revision_content_sha256,
        "media_type": proposal.media_type,
        "file_name": proposal.file_name,
        "size_bytes": proposal.size_bytes,
        "sha256": proposal.sha256,
        "adaptations": [dict(row) for row in proposal.adaptations],
        "created_by": proposal.created_by,
        "created_at": rfc3339(proposal.created_at),
        "links": {
            "self": _path(proposal),
            "content": f"{_path(proposal)}/content",
            "revision": revision_path(proposal.quote_id, proposal.n),
        },
    }


def _path(proposal: service.Proposal) -> str:
    return f"/v1/proposals/{proposal.id}"


def _etag(proposal: service.Proposal) -> str:
    return f'"{proposal.sha256}"'


for part in (proposals, tmf):
    router.include_router(part)
