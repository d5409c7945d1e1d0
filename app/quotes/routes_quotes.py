"""``/v1/quotes``: create, list, show, change the header, its trail."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Body, Depends, Query, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access import audit
from app.access.dependencies import check_items, idempotent, require_scopes
from app.access.principal import COSTS, Principal
from app.estimates.examples import REQUESTS
from app.foundation.answers import shows
from app.foundation.conditional import GUARDED, TAGGED, answer_not_modified, require_if_match
from app.foundation.dates import InstantText
from app.foundation.idempotency import Idempotency
from app.foundation.pagination import PageRequest, page_body, page_request
from app.foundation.prefer import Preference, preference
from app.jobs.answering import answer, answers
from app.quotes import service
from app.quotes.answer_schemas import AuditPage, QuoteAnswer, QuoteHeader, QuotePage
from app.quotes.asked import NewQuote
from app.quotes.calling import acting_in, document, read
from app.quotes.lifecycle import Status
from app.quotes.schemas import HeaderPatch, QuoteCreate
from app.quotes.views import quote_view, revision_view

router = APIRouter(prefix="/v1/quotes", tags=["quotes"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Writer = Annotated[Principal, Depends(require_scopes("quotes:write"))]
Auditor = Annotated[Principal, Depends(require_scopes("audit:read"))]
Once = Annotated[Idempotency, Depends(idempotent)]
Preferred = Annotated[Preference, Depends(preference)]
Page = Annotated[PageRequest, Depends(page_request)]
NewQuoteBody = Annotated[QuoteCreate, Body(openapi_examples=REQUESTS)]
MADE = answers(QuoteAnswer)


@router.post("", status_code=201, summary="Create a quote with its first draft", responses=MADE)
async def create_quote(
    request: Request, principal: Writer, once: Once, preferred: Preferred, body: NewQuoteBody
) -> Response:
    """Estimate the body and keep the answer as draft revision 1. A body that cannot be answered leaves no row."""
    check_items(principal, len(body.items), request)
    work = NewQuote(
        acting=acting_in(request, principal),
        today=request.app.state.clock.now().date(),
        sent=request.scope["state"]["json_body"],
        body=body,
    )
    return await answer(request, principal, once, preferred, work)


@router.get("", summary="List quotes, newest first", responses=shows(QuotePage))
async def list_quotes(
    request: Request,
    principal: Reader,
    page: Page,
    status: Annotated[Status | None, Query(description="Status of the current revision, as it is now.")] = None,
    customer: Annotated[str | None, Query(max_length=128, description="customer.external_ref")] = None,
    number: Annotated[str | None, Query(max_length=35)] = None,
    external_ref: Annotated[str | None, Query(max_length=128)] = None,
    owner: Annotated[str | None, Query(max_length=128)] = None,
    updated_since: Annotated[InstantText | None, Query(description="RFC 3339 with a zone.")] = None,
) -> Response:
    """Give headers without content; a quote past its end is listed as expired."""
    filters = service.Filters(
        status=status,
        customer=customer,
        number=number,
        external_ref=external_ref,
        owner=owner,
        updated_since=updated_since,
    )
    before_id = None if page.position is None else str(page.position[0])
    acting = acting_in(request, principal)

    def work(connection: Connection) -> tuple[list[service.Quote], datetime]:
        now = acting.now(connection)
        tenant = principal.tenant_id
        return service.list_quotes(
            connection, tenant, filters, now=now, before_id=before_id, limit=page.fetch_limit
        ), now

    found, now = await read(request, principal, work)
    response = Response(media_type="application/json")
    shown, cursor = page.close(found, lambda quote: (quote.id,), response)
    linked = {"Link": response.headers["Link"]} if "Link" in response.headers else {}
    return document(page_body([quote_view(quote, now) for quote in shown], cursor), linked)


@router.get(
    "/{quote_id}", summary="Show a quote with its current revision", responses=shows(QuoteAnswer), dependencies=TAGGED
)
async def show_quote(request: Request, principal: Reader, quote_id: str) -> Response:
    acting = acting_in(request, principal)
    shown = await read(request, principal, lambda c: service.show(c, principal.tenant_id, quote_id, now=acting.now(c)))
    etag = shown.quote.etag_at(shown.now)
    answer_not_modified(request, etag)
    view = revision_view(
        shown.revision,
        shown.quote.number,
        shown.now,
        with_costs=principal.has(COSTS),
        acceptance=shown.acceptance,
    )
    body = {**quote_view(shown.quote, shown.now), "current_revision": view}
    return document(body, {"ETag": etag, "Cache-Control": "private, no-cache", "Vary": "Authorization"})


@router.patch("/{quote_id}", summary="Change header fields", responses=shows(QuoteHeader), dependencies=GUARDED)
async def edit_quote(request: Request, principal: Writer, quote_id: str, body: HeaderPatch) -> Response:
    """Change title, external reference, owner or tags; revisions are not touched. Needs If-Match."""
    acting = acting_in(request, principal)
    given = body.model_dump(exclude_unset=True)
    if "tags" in given:
        given["tags"] = tuple(given["tags"] or ())
    if given.get("owner", "") is None:
        given["owner"] = principal.actor

    def work(connection: Connection) -> tuple[service.Quote, datetime]:
        quote = service.edit_header(
            connection, acting, quote_id, given, check=lambda etag: require_if_match(request, etag)
        )
        return quote, acting.now(connection)

    quote, now = await request.app.state.database.transact(work, tenant=principal.tenant_id)
    return document(quote_view(quote, now), {"ETag": quote.etag_at(now)})


@router.get(
    "/{quote_id}/audit", summary="Who did what to a quote, as links of the tenant's chain", responses=shows(AuditPage)
)
async def show_audit(request: Request, principal: Auditor, page: Page, quote_id: str) -> Response:
    after = 0 if page.position is None else int(page.position[0])

    def work(connection: Connection) -> list[audit.AuditEntry]:
        service.find_quote(connection, principal.tenant_id, quote_id)
        return audit.entries(
            connection, principal.tenant_id, subject=quote_id, after_sequence=after, limit=page.fetch_limit
        )

    found = await read(request, principal, work)
    response = Response(media_type="application/json")
    shown, cursor = page.close(found, lambda entry: (entry.sequence,), response)
    linked = {"Link": response.headers["Link"]} if "Link" in response.headers else {}
    rows = [{name: value for name, value in entry.as_json().items() if name != "tenant_id"} for entry in shown]
    return document(page_body(rows, cursor), linked)
