"""What every catalog read shares: the revision and day asked for, the entity tag, and pages over a snapshot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, TypeVar

from fastapi import Depends, Query, Request, Response

from app.access.dependencies import require_scopes
from app.catalog import service
from app.catalog.days import check_day
from app.catalog.schemas import Page
from app.catalog.snapshot import Snapshot
from app.foundation.conditional import answer_not_modified, reads_if_none_match, strong_etag
from app.foundation.database import Database
from app.foundation.dates import DateText
from app.foundation.pagination import PageRequest, page_request

T = TypeVar("T")
View = TypeVar("View")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The snapshot and day of one request."""

    snapshot: Snapshot
    as_of: date
    today: date


async def asked(
    request: Request,
    response: Response,
    principal: Annotated[object, Depends(require_scopes("catalog:read"))],
    _: Annotated[None, Depends(reads_if_none_match)],
    catalog_revision: Annotated[
        str | None, Query(max_length=64, description="What the catalog believed: a revision id or number.")
    ] = None,
    as_of: Annotated[
        DateText | None, Query(description="The day whose price is asked for (YYYY-MM-DD); today if left out.")
    ] = None,
) -> Asked:
    """Find the snapshot asked for, and answer 304 when the client holds the same page."""
    del principal
    today = request.app.state.clock.now().date()
    day = today if as_of is None else check_day(as_of, today, parameter="as_of")
    database: Database = request.app.state.database
    snapshot = await database.read(lambda connection: service.snapshot(connection, catalog_revision))
    etag = strong_etag(
        f"{snapshot.content_sha256}|{day}|{request.url.path}|{sorted(request.query_params.multi_items())}"
    )
    answer_not_modified(request, etag)
    response.headers["ETag"] = etag
    return Asked(snapshot=snapshot, as_of=day, today=today)


CatalogAsked = Annotated[Asked, Depends(asked)]
PageAsked = Annotated[PageRequest, Depends(page_request)]


def page_of(
    items: Sequence[T],
    key: Callable[[T], str],
    show: Callable[[T], View],
    page: PageRequest,
    response: Response,
    snapshot: Snapshot,
) -> Page[View]:
    """Cut one page out of items, in the order of their keys."""
    ordered = sorted(items, key=key)
    if page.position is not None:
        last = str(page.position[0])
        ordered = [item for item in ordered if key(item) > last]
    shown, cursor = page.close(ordered[: page.fetch_limit], lambda item: (key(item),), response)
    return Page(
        items=[show(item) for item in shown],
        next_cursor=cursor,
        catalog_revision=snapshot.revision_id,
        catalog_revision_number=snapshot.number,
    )
