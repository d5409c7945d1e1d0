"""``/v1/quotes/{id}/revisions``: list, show, draft, edit, verify, explain, compare."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import check_items, idempotent, require_scopes
from app.access.principal import COSTS, Principal
from app.foundation.answers import shows
from app.foundation.calculation import within_time
from app.foundation.conditional import GUARDED, TAGGED, answer_not_modified, require_if_match
from app.foundation.idempotency import Answer, Idempotency
from app.foundation.pagination import page_body
from app.foundation.prefer import Preference, preference
from app.jobs.answering import answer, answers
from app.quotes import service
from app.quotes.answer_schemas import (
    ComparisonAnswer,
    DraftedRevision,
    ExplanationAnswer,
    RevisionAnswer,
    RevisionPage,
    VerdictAnswer,
)
from app.quotes.asked import NewRevision
from app.quotes.calling import RevisionNumber, acting_in, document, read, revision_answer
from app.quotes.errors import revision_immutable
from app.quotes.lifecycle import Status
from app.quotes.schemas import Reprice, RevisionCreate, Verify
from app.quotes.views import cache_headers, head_view, revision_view

router = APIRouter(prefix="/v1/quotes/{quote_id}", tags=["revisions"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Writer = Annotated[Principal, Depends(require_scopes("quotes:write"))]
Once = Annotated[Idempotency, Depends(idempotent)]
Preferred = Annotated[Preference, Depends(preference)]
DRAFTED = answers(DraftedRevision)
PATCH_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/merge-patch+json": {"schema": {"type": "object"}}},
    }
}


@router.get("/revisions", summary="List the revisions of a quote, oldest first", responses=shows(RevisionPage))
async def list_revisions(request: Request, principal: Reader, quote_id: str) -> Response:
    acting = acting_in(request, principal)

    def work(connection: Connection) -> list[dict[str, Any]]:
        quote, heads = service.list_revisions(connection, principal.tenant_id, quote_id)
        now = acting.now(connection)
        return [head_view(head, quote.number, now, with_costs=principal.has(COSTS)) for head in heads]

    return document(page_body(await read(request, principal, work), None))


@router.get("/revisions/{n}", summary="Show a revision in full", responses=shows(RevisionAnswer), dependencies=TAGGED)
async def show_revision(request: Request, principal: Reader, quote_id: str, n: RevisionNumber) -> Response:
    """Give the content as it is stored; from issued on the same bytes for ever."""
    acting = acting_in(request, principal)
    shown = await read(
        request, principal, lambda c: service.show(c, principal.tenant_id, quote_id, n, now=acting.now(c))
    )
    headers = {**cache_headers(shown.revision.head, shown.now), "Vary": "Authorization"}
    answer_not_modified(request, headers["ETag"], headers=headers)
    view = revision_view(
        shown.revision,
        shown.quote.number,
        shown.now,
        with_costs=principal.has(COSTS),
        acceptance=shown.acceptance,
    )
    return document(view, headers)


@router.post("/revisions", status_code=201, summary="Draft a new revision", responses=DRAFTED)
async def create_revision(
    request: Request, principal: Writer, once: Once, preferred: Preferred, quote_id: str, body: RevisionCreate
) -> Response:
    """Draft from an earlier revision at its prices (hold) or today's (reprice), with changes where there are any."""
    return await answer(request, principal, once, preferred, _new_revision(request, principal, quote_id, body))


@router.post("/reprice", status_code=201, summary="Draft a new revision at today's prices", responses=DRAFTED)
async def reprice(
    request: Request,
    principal: Writer,
    once: Once,
    preferred: Preferred,
    quote_id: str,
    body: Reprice | None = None,
) -> Response:
    """Draft at today's prices on the supply selected before; the answer says why the total moved.

    ``supply`` says item by item whether it was kept, what is cheaper now, and what to do where it is gone.
    """
    work = _new_revision(request, principal, quote_id, body or Reprice())
    return await answer(request, principal, once, preferred, work)


def _new_revision(
    request: Request, principal: Principal, quote_id: str, asked: RevisionCreate | Reprice
) -> NewRevision:
    _check_items(request, principal, asked.changes)
    return NewRevision(
        acting=acting_in(request, principal),
        today=request.app.state.clock.now().date(),
        quote_id=quote_id,
        source=asked.from_,
        pricing=asked.pricing if isinstance(asked, RevisionCreate) else "reprice",
        changes=asked.changes,
    )


@router.patch(
    "/revisions/{n}",
    summary="Change a draft (RFC 7396 merge patch)",
    responses=shows(RevisionAnswer),
    dependencies=GUARDED,
    openapi_extra=PATCH_BODY,
)
async def edit_revision(request: Request, principal: Writer, quote_id: str, n: RevisionNumber) -> Response:
    """Change the spec of a draft and calculate it again at its own pricing day. Needs If-Match."""
    patch = request.scope.get("state", {}).get("json_body")
    if not isinstance(patch, dict):
        raise RequestValidationError(
            [{"type": "dict_type", "loc": ("body",), "msg": "a merge patch is a JSON object", "input": None}]
        )
    _check_items(request, principal, patch)
    acting = acting_in(request, principal)
    today = request.app.state.clock.now().date()

    def look_up(connection: Connection) -> tuple[int, service.Plan]:
        shown = service.show(connection, principal.tenant_id, quote_id, n, now=acting.now(connection))
        head = shown.revision.head
        if head.status is not Status.DRAFT:
            raise revision_immutable(head, head.status_at(shown.now))
        require_if_match(request, head.etag, changed_fields=head.changed_since(_edit_of(request)))
        return head.edit, service.plan_edit(connection, shown.revision, patch, today=today)

    edit, plan = await read(request, principal, look_up)
    prepared = await within_time(request, plan.run)

    def store(connection: Connection) -> Answer:
        quote, revision = service.edit_draft(connection, acting, quote_id, n, edit=edit, prepared=prepared)
        made = revision_answer(quote, revision, acting, connection)
        return replace(made, body={**made.body, "supply": list(prepared.supply)})

    edited = await request.app.state.database.transact(store, tenant=principal.tenant_id)
    return document(edited.body, edited.headers)


def _check_items(request: Request, principal: Principal, changes: Mapping[str, Any] | None) -> None:
    """A merge patch replaces a list as a whole, so its items are the revision's."""
    items = (changes or {}).get("items")
    if isinstance(items, list):
        check_items(principal, len(items), request)


def _edit_of(request: Request) -> int:
    """Edition the caller read, from the tag it sent; 0 where the tag is not one of ours."""
    _, _, edit = request.headers.get("if-match", "").strip().strip('"').rpartition(".")
    return int(edit) if edit.isdigit() and len(edit) < 10 else 0


@router.post("/revisions/{n}/verify", summary="Recompute a revision from its pins", responses=shows(VerdictAnswer))
async def verify(
    request: Request, principal: Reader, quote_id: str, n: RevisionNumber, body: Verify | None = None
) -> Response:
    """Replay money and hash from the stored engine outputs, and the engine where the pinned one is running."""
    acting = acting_in(request, principal)

    def work(connection: Connection) -> tuple[service.Revision, service.Calculator]:
        shown = service.show(connection, principal.tenant_id, quote_id, n, now=acting.now(connection))
        return shown.revision, service.pinned_calculator(connection, shown.revision)

    revision, calculator = await read(request, principal, work)
    required = body is not None and body.engine == "required"
    verdict = await within_time(request, partial(service.verify, revision, calculator, engine_required=required))
    return document(verdict.as_json())


@router.get("/revisions/{n}/explain", summary="Why a revision costs what it costs", responses=shows(ExplanationAnswer))
async def explain(request: Request, principal: Reader, quote_id: str, n: RevisionNumber) -> Response:
    """Waterfall, assumptions, evidence and sensitivity of the selected options, from what is stored."""
    acting = acting_in(request, principal)

    def work(connection: Connection) -> tuple[service.Revision, service.Calculator]:
        shown = service.show(connection, principal.tenant_id, quote_id, n, now=acting.now(connection))
        return shown.signed, service.pinned_calculator(connection, shown.revision)

    revision, calculator = await read(request, principal, work)
    found = await within_time(request, partial(service.explain, revision, calculator, with_costs=principal.has(COSTS)))
    return document(found)


@router.get("/compare", summary="Compare two revisions of a quote", responses=shows(ComparisonAnswer))
async def compare(
    request: Request,
    principal: Reader,
    quote_id: str,
    from_: Annotated[int, Query(alias="from", ge=1, le=2**31 - 1)],
    to: Annotated[int, Query(ge=1, le=2**31 - 1)],
) -> Response:
    """Set two revisions side by side and split the change of the total into its causes."""
    acting = acting_in(request, principal)

    def work(connection: Connection) -> service.Sides:
        now = acting.now(connection)
        shown = [service.show(connection, principal.tenant_id, quote_id, n, now=now) for n in (from_, to)]
        return service.read_sides(connection, [(side.signed, side.quote.number) for side in shown])

    found = await read(request, principal, work)
    return document(await within_time(request, partial(service.compare_sides, found, with_costs=principal.has(COSTS))))
