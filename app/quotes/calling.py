"""What the room's routes share: who acts, how they read, how a revision is answered."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Path, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.principal import COSTS, Principal
from app.foundation.idempotency import Answer
from app.quotes.acting import Acting
from app.quotes.errors import revision_path
from app.quotes.records import Acceptance, Quote, Revision
from app.quotes.views import cache_headers, revision_view

# As many revisions as an integer column counts.
RevisionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]

T = TypeVar("T")


def acting_in(request: Request, principal: Principal) -> Acting:
    """Who acts in this request."""
    return Acting(principal=principal, clock=request.app.state.clock)


async def read(request: Request, principal: Principal, work: Callable[[Connection], T]) -> T:
    """Read as the caller's tenant."""
    found: T = await request.app.state.database.read(work, tenant=principal.tenant_id)
    return found


def revision_answer(
    quote: Quote,
    revision: Revision,
    acting: Acting,
    connection: Connection,
    *,
    status: int = 200,
    acceptance: Acceptance | None = None,
) -> Answer:
    """Answer with a revision as it is after the step."""
    now = acting.now(connection)
    body = revision_view(revision, quote.number, now, with_costs=acting.principal.has(COSTS), acceptance=acceptance)
    headers: Mapping[str, str] = {"ETag": cache_headers(revision.head, now)["ETag"], "Cache-Control": "no-store"}
    if status == 201:
        headers = {**headers, "Location": revision_path(quote.id, revision.head.n)}
    return Answer(status=status, body=body, headers=headers)


def document(body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Answer a read."""
    return Response(orjson.dumps(body), media_type="application/json", headers=dict(headers or {}))
