"""The pull feed over HTTP."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.access.dependencies import require_scopes
from app.access.principal import Principal
from app.events import outbox
from app.events.schemas import EventFeed, EventView
from app.events.webhook_routes import router as webhook_router
from app.foundation.pagination import PageRequest, encode_cursor, page_request

router = APIRouter(prefix="/v1")
router.include_router(webhook_router)


@router.get("/events", tags=["events"], summary="What happened, in order, to be asked for again and again")
async def feed(
    request: Request,
    principal: Annotated[Principal, Depends(require_scopes("quotes:read"))],
    page: Annotated[PageRequest, Depends(page_request)],
) -> EventFeed:
    after = int(page.position[0]) if page.position is not None else 0
    found = await request.app.state.database.read(
        lambda c: outbox.feed(c, principal.tenant_id, after_sequence=after, limit=page.limit),
        tenant=principal.tenant_id,
    )
    last = found[-1].sequence if found else after
    items = [EventView(**event.as_cloud_event(), sequence=event.sequence or 0) for event in found]
    return EventFeed(items=items, next_cursor=encode_cursor((last or 0,), page.filters_sha256, page.signing_key))
