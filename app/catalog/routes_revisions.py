"""Published revisions, and what changed between two of them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Connection

from app.access.dependencies import require_scopes
from app.catalog import errors, service
from app.catalog.changes import RevisionDiff, diff_snapshots
from app.catalog.reading import PageAsked
from app.catalog.repository import RevisionInfo
from app.catalog.schemas import Page, RevisionView, revision_view
from app.foundation.conditional import TAGGED, answer_not_modified, strong_etag
from app.foundation.database import Database

router = APIRouter()
Reader = Annotated[object, Depends(require_scopes("catalog:read"))]


@router.get("/v1/catalog/revisions", dependencies=TAGGED)
async def list_revisions(
    request: Request, response: Response, page: PageAsked, principal: Reader
) -> Page[RevisionView]:
    """List published revisions, newest first; each is immutable and has a content hash chained to the one before."""
    del principal
    database: Database = request.app.state.database
    before = None if page.position is None else int(page.position[0])

    def read(connection):  # type: ignore[no-untyped-def]
        head = service.current_revision(connection)
        return head, service.list_revisions(connection, before=before, limit=page.fetch_limit)

    head, found = await database.read(read)
    etag = strong_etag(f"{head.content_sha256}|{page.path}|{page.filters}|{page.position}|{page.limit}")
    answer_not_modified(request, etag)
    response.headers["ETag"] = etag
    shown, cursor = page.close(found, lambda info: (info.number,), response)
    return Page(
        items=[revision_view(info) for info in shown],
        next_cursor=cursor,
        catalog_revision=head.id,
        catalog_revision_number=head.number,
    )


@router.get("/v1/catalog/revisions/{revision}")
async def get_revision(revision: str, request: Request, principal: Reader) -> RevisionView:
    """Show one revision by id or number."""
    del principal
    database: Database = request.app.state.database
    found = await database.read(lambda connection: _named(connection, revision))
    return revision_view(found)


@router.get("/v1/catalog/revisions/{older}/diff/{newer}")
async def diff_revisions(older: str, newer: str, request: Request, principal: Reader) -> RevisionDiff:
    """Show what the newer revision believes that the older did not, prices first."""
    del principal
    database: Database = request.app.state.database
    before = await database.read(lambda connection: service.snapshot(connection, _named(connection, older).id))
    after = await database.read(lambda connection: service.snapshot(connection, _named(connection, newer).id))
    return diff_snapshots(before, after)


def _named(connection: Connection, revision: str) -> RevisionInfo:
    """Find the revision an address names."""
    found = service.find_revision(connection, revision)
    if found is None:
        raise errors.no_revision()
    return found
