"""What routes and commands may ask of proposals. Every function takes the connection and never commits."""

from sqlalchemy import Connection

from app.access import audit
from app.events import outbox
from app.foundation.canonical import sha256_hex
from app.foundation.identifiers import new_id
from app.proposals import repository
from app.proposals.errors import no_proposal
from app.proposals.reading import read_document
from app.proposals.records import Proposal
from app.proposals.rendering import chosen_options, render
from app.proposals.schemas import ProposalCreate
from app.quotes import service as quotes
from app.quotes.service import Acting

__all__ = ["Proposal", "create_proposal", "find_content", "find_proposal"]


def create_proposal(
    connection: Connection, acting: Acting, quote_id: str, n: int, order: ProposalCreate
) -> tuple[Proposal, bytes]:
    """Make a file from a stored revision and keep it, with its event and its entry in the audit."""
    chosen = chosen_options(order)
    now = acting.now(connection)
    document = read_document(quotes.show(connection, acting.tenant_id, quote_id, n, now=now))
    rendered = render(document, order.format, chosen)
    proposal = Proposal(
        tenant_id=acting.tenant_id,
        id=new_id("pro"),
        quote_id=quote_id,
        revision_id=document.revision_id,
        n=n,
        revision_content_sha256=document.content_sha256,
        standing=str(document.standing),
        format=order.format,
        options=chosen,
        media_type=rendered.media_type,
        file_name=f"{document.number}.{rendered.extension}",
        sha256=sha256_hex(rendered.content),
        size_bytes=len(rendered.content),
        adaptations=[adaptation.as_json() for adaptation in rendered.adaptations],
        created_by=acting.actor,
        created_at=now,
    )
    repository.insert_proposal(connection, proposal, rendered.content)
    _announce(connection, acting, proposal)
    return proposal, rendered.content


def _announce(connection: Connection, acting: Acting, proposal: Proposal) -> None:
    audit.record(
        connection,
        principal=acting.principal,
        at=proposal.created_at,
        action="proposal.create",
        subject=proposal.quote_id,
        after_sha256=proposal.sha256,
        details={"proposal": proposal.id, "revision": proposal.n, "format": proposal.format},
    )
    outbox.announce(
        connection,
        tenant_id=proposal.tenant_id,
        event_type="proposal.ready",
        subject=proposal.id,
        at=proposal.created_at,
        data={
            "proposal_id": proposal.id,
            "quote_id": proposal.quote_id,
            "revision_id": proposal.revision_id,
            "revision": proposal.n,
            "format": proposal.format,
            "sha256": proposal.sha256,
            "content_sha256": proposal.revision_content_sha256,
        },
    )


def find_proposal(connection: Connection, tenant_id: str, proposal_id: str) -> Proposal:
    """Read a proposal or refuse."""
    found = repository.find_proposal(connection, tenant_id, proposal_id)
    if found is None:
        raise no_proposal()
    return found


def find_content(connection: Connection, tenant_id: str, proposal_id: str) -> tuple[Proposal, bytes]:
    """Read a proposal with its bytes or refuse."""
    content = repository.find_content(connection, tenant_id, proposal_id)
    if content is None:
        raise no_proposal()
    return find_proposal(connection, tenant_id, proposal_id), content
