"""``/v1/quotes/affected``: which open quotes a catalog revision would move, and by how much."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from starlette.responses import Response

from app.access.dependencies import require_scopes
from app.access.principal import COSTS, Principal
from app.foundation.answers import shows
from app.foundation.calculation import within_time
from app.foundation.pagination import PageRequest, page_body, page_request
from app.quotes import service
from app.quotes.answer_schemas import AffectedPage
from app.quotes.calling import acting_in, document, read

# Each row is a calculation: a page takes seconds, not minutes.
MOST_ROWS = 20
USUAL_ROWS = 10

router = APIRouter(prefix="/v1/quotes", tags=["quotes"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Name = Annotated[str | None, Query(max_length=80)]


async def _short_page(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS, description="Rows on a page.")] = USUAL_ROWS,
    cursor: Annotated[str | None, Query(max_length=2_000, description="next_cursor of the page before.")] = None,
) -> PageRequest:
    return await page_request(request, limit, cursor)


@router.get("/affected", summary="Which open quotes a catalog revision would move", responses=shows(AffectedPage))
async def affected(
    request: Request,
    principal: Reader,
    page: Annotated[PageRequest, Depends(_short_page)],
    catalog_revision: Annotated[Name, Query(description="Revision asked about, by id or number; the newest.")] = None,
    pinned_to: Annotated[Name, Query(description="Only revisions priced at this catalog revision.")] = None,
) -> Response:
    """Reprice every open revision at the catalog revision, keep nothing, and say what would move by how much and why.

    ``catalog_diff`` of a row shows what changed between the two catalog revisions.
    """
    acting = acting_in(request, principal)
    today = request.app.state.clock.now().date()
    before_id = None if page.position is None else str(page.position[0])
    question = await read(
        request,
        principal,
        lambda c: service.read_affected(
            c,
            principal.tenant_id,
            catalog_revision=catalog_revision,
            pinned_to=pinned_to,
            now=acting.now(c),
            today=today,
            before_id=before_id,
            limit=page.fetch_limit,
        ),
    )
    response = Response(media_type="application/json")
    shown, cursor = page.close(question.subjects, lambda subject: (subject.revision.head.id,), response)
    linked = {"Link": response.headers["Link"]} if "Link" in response.headers else {}

    def rows() -> list[dict[str, Any]]:
        costs = principal.has(COSTS)
        return [service.affected_answer(subject, question.catalog_revision, with_costs=costs) for subject in shown]

    body = page_body(await within_time(request, rows), cursor)
    return document({**body, "catalog_revision": question.catalog_revision, "as_of": today.isoformat()}, linked)
