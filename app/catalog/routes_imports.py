"""Imports and quarantine over HTTP."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from app.access.dependencies import require_scopes
from app.access.principal import Principal
from app.catalog import errors, service, trail
from app.catalog.filters import provider_filter
from app.catalog.importing import FORMATS, ImportOrder, ImportReport, ParsedImport, ProviderReport, parse_import
from app.catalog.imports.staged import FileError
from app.catalog.quality import audit
from app.catalog.reading import CatalogAsked, PageAsked, page_of
from app.catalog.repository import RevisionInfo
from app.catalog.schemas import (
    AvailabilityBody,
    DecisionBody,
    Page,
    QuarantineView,
    RevisionView,
    price_view,
    revision_view,
)
from app.catalog.snapshot import QuarantinedRow
from app.foundation.clock import Clock
from app.foundation.database import Database
from app.foundation.dates import DateText
from app.foundation.query import FormText

router = APIRouter()
Writer = Annotated[Principal, Depends(require_scopes("catalog:write"))]


@router.post("/v1/catalog/imports")
async def import_file(
    request: Request,
    principal: Writer,
    file_format: Annotated[FormText, Form(alias="format")],
    file: Annotated[UploadFile | None, File()] = None,
    provider: Annotated[FormText, Form(max_length=64)] = "",
    observed_on: Annotated[DateText | None, Form()] = None,
    source: Annotated[FormText, Form(max_length=500)] = "",
    complete: Annotated[bool, Form()] = False,
    dry_run: Annotated[bool, Form()] = True,
) -> ImportReport:
    """Import a price file, provider by provider, each in a transaction of its own; a dry run unless told otherwise.

    ``complete`` says that the file lists everything the provider sells: then vanished offers are named, and a file
    with over a fifth fewer rows than the last is refused. Nothing of an unreadable file is imported.
    """
    if file_format not in FORMATS:
        raise errors.invalid_parameter("format", f"format {file_format[:40]!r} is not one of {', '.join(FORMATS)}.")
    if file is None and file_format != "genai-prices":
        raise errors.invalid_parameter("file", "The form needs a part named file with the price file.")
    order = ImportOrder(
        file_format=file_format,
        content=await file.read() if file is not None else b"",
        filename=(file.filename or "").replace("\x00", "") if file is not None else file_format,
        provider=provider,
        observed_on=observed_on,
        source=source,
        complete=complete,
    )
    database: Database = request.app.state.database
    clock: Clock = request.app.state.clock
    current = await database.read(service.current_snapshot)
    try:
        parsed = await run_in_threadpool(parse_import, current, order, clock.now().date())
    except FileError as error:
        raise errors.unreadable_file(error) from error
    reports = [await _run(database, clock, parsed, name, principal, dry_run=dry_run) for name in parsed.providers]
    after = current if dry_run else await database.read(service.current_snapshot)
    return ImportReport(
        quality=await run_in_threadpool(audit, after),
        file_sha256=parsed.sha256,
        file_format=file_format,
        dry_run=dry_run,
        rows=sum(len(rows) for rows in parsed.rows.values()) or len(parsed.fixings),
        providers=tuple(reports),
    )


async def _run(
    database: Database, clock: Clock, parsed: ParsedImport, provider: str, principal: Principal, *, dry_run: bool
) -> ProviderReport:
    """Preview or commit one provider; a database failure of one leaves the others to go on."""
    if dry_run:
        return await database.read(lambda connection: service.preview_import(connection, parsed, provider))
    now = clock.now()

    def commit(connection: Connection) -> ProviderReport:
        before = service.current_revision(connection)
        report = service.commit_import(connection, parsed, provider, now=now, actor=principal.actor)
        after = service.current_revision(connection)
        if after.id != before.id:
            told = {"provider": provider, "format": parsed.order.file_format, **report.counts}
            trail.record_revision(
                connection, principal, before, after, action="import", subject=parsed.sha256, at=now, details=told
            )
        return report

    try:
        return await database.transact(commit, tenant=principal.tenant_id)
    except SQLAlchemyError as error:
        detail = f"{type(error).__name__}: nothing of this provider was imported, its last good prices stay"
        return ProviderReport(provider=provider, status="failed", counts={}, detail=detail)


@router.get("/v1/catalog/imports")
async def list_imports(request: Request, response: Response, page: PageAsked, principal: Writer) -> dict[str, Any]:
    """List committed imports, newest first."""
    del principal
    database: Database = request.app.state.database
    before = None if page.position is None else str(page.position[0])
    rows = await database.read(
        lambda connection: service.list_imports(connection, before=before, limit=page.fetch_limit)
    )
    shown, cursor = page.close(rows, lambda row: (str(row["id"]),), response)
    return {"items": shown, "next_cursor": cursor}


@router.get("/v1/catalog/quarantine")
async def list_quarantine(
    asked: CatalogAsked,
    page: PageAsked,
    response: Response,
    provider: Annotated[str | None, Query(max_length=256)] = None,
    status: Literal["held", "accepted", "rejected", "all"] = "held",
) -> Page[QuarantineView]:
    """List rows that a check holds back (``status`` held, accepted, rejected or all)."""
    wanted = provider_filter(asked.snapshot, provider)
    views = [
        quarantine_view(entry) for entry in asked.snapshot.quarantine if wanted is None or entry.provider == wanted
    ]
    chosen = [view for view in views if status in ("all", view.status)]
    return page_of(chosen, lambda view: view.id, lambda view: view, page, response, asked.snapshot)


def quarantine_view(entry: QuarantinedRow) -> QuarantineView:
    """Show a held row."""
    return QuarantineView(
        id=entry.id,
        provider=entry.provider,
        offer_id=entry.offer_id,
        reason=entry.reason,
        detail=entry.detail,
        price=None if entry.row is None else price_view(entry.row),
        raw=dict(entry.raw),
        recorded_revision=entry.recorded_revision,
        status="held" if entry.holds else "rejected" if entry.rejected else "accepted",
    )


@router.post("/v1/catalog/quarantine/{quarantine_id}/accept")
async def accept_row(quarantine_id: str, body: DecisionBody, request: Request, principal: Writer) -> RevisionView:
    """Believe a held price after all, with a reason that stays beside it; publishes a revision."""
    return await _decide(quarantine_id, "accepted", body, request, principal)


@router.post("/v1/catalog/quarantine/{quarantine_id}/reject")
async def reject_row(quarantine_id: str, body: DecisionBody, request: Request, principal: Writer) -> RevisionView:
    """Put a held price aside for good; publishes a revision."""
    return await _decide(quarantine_id, "rejected", body, request, principal)


async def _decide(
    quarantine_id: str, decision: str, body: DecisionBody, request: Request, principal: Principal
) -> RevisionView:
    database: Database = request.app.state.database
    now = request.app.state.clock.now()

    def decide(connection: Connection) -> RevisionInfo:
        before = service.current_revision(connection)
        after = service.decide_quarantined(
            connection, quarantine_id, decision=decision, reason=body.reason, actor=principal.actor, now=now
        )
        action = f"quarantine.{decision}"
        trail.record_revision(
            connection, principal, before, after, action=action, subject=quarantine_id, at=now, reason=body.reason
        )
        return after

    return revision_view(await database.transact(decide, tenant=principal.tenant_id))


@router.post("/v1/catalog/offers/{offer_id}/availability")
async def record_availability(
    offer_id: str, body: AvailabilityBody, request: Request, principal: Writer
) -> RevisionView:
    """Record what was seen of an offer's supply, apart from its price; publishes a revision."""
    database: Database = request.app.state.database
    now = request.app.state.clock.now()

    def seen(connection: Connection) -> RevisionInfo:
        before = service.current_revision(connection)
        after = service.record_availability(
            connection,
            offer_id,
            observed_on=body.observed_on,
            status=body.status,
            lead_time_days=body.lead_time_days,
            source=body.source,
            now=now,
            actor=principal.actor,
        )
        trail.record_revision(connection, principal, before, after, action="availability", subject=offer_id, at=now)
        return after

    return revision_view(await database.transact(seen, tenant=principal.tenant_id))
