"""Webhooks over HTTP."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Connection

from app.access.dependencies import idempotent, require_scopes
from app.access.principal import Principal
from app.events import signing, webhook_repository, webhooks
from app.events.schemas import (
    DeliveryPage,
    DeliveryView,
    NewWebhookView,
    SecretRotate,
    WebhookChange,
    WebhookCreate,
    WebhookPage,
    WebhookView,
)
from app.events.webhook import Webhook
from app.foundation.conditional import GUARDED, require_if_match
from app.foundation.idempotency import Answer, Idempotency
from app.foundation.pagination import PageRequest, page_request

router = APIRouter(prefix="/webhooks", tags=["webhooks"])

Manager = Annotated[Principal, Depends(require_scopes("webhooks:manage"))]
Once = Annotated[Idempotency, Depends(idempotent)]
Page = Annotated[PageRequest, Depends(page_request)]


def _etag(webhook: Webhook) -> str:
    return f'"v{webhook.version}"'


def _seal(request: Request) -> signing.Seal:
    return signing.Seal(request.app.state.settings.signing_key)


def _told_once(webhook: Webhook, secret: str, status: int) -> Answer:
    return Answer(
        status=status,
        body=NewWebhookView.of_new(webhook, secret).model_dump(),
        stored_body=NewWebhookView.of_new(webhook, None).model_dump(),
        headers={"Location": f"/v1/webhooks/{webhook.id}", "ETag": _etag(webhook), "Cache-Control": "no-store"},
    )


@router.post("", status_code=201, summary="Make a webhook", response_model=NewWebhookView)
async def create_webhook(request: Request, principal: Manager, once: Once, body: WebhookCreate) -> Response:
    state = request.app.state
    webhooks.check_event_types(body.event_types)
    await state.event_worker.egress.check(body.url)

    def work(connection: Connection) -> Answer:
        webhook, secret = webhooks.create(
            connection,
            principal=principal,
            url=body.url,
            event_types=body.event_types,
            description=body.description,
            now=state.clock.now(),
            seal=_seal(request),
        )
        return _told_once(webhook, secret, 201)

    return await once.transact(work)


@router.get("", summary="List webhooks")
async def list_webhooks(request: Request, response: Response, principal: Manager, page: Page) -> WebhookPage:
    after = str(page.position[0]) if page.position is not None else ""
    found = await request.app.state.database.read(
        lambda c: webhook_repository.list_webhooks(c, principal.tenant_id, after_id=after, limit=page.fetch_limit),
        tenant=principal.tenant_id,
    )
    shown, cursor = page.close(found, lambda webhook: (webhook.id,), response)
    return WebhookPage(items=[WebhookView.of(webhook) for webhook in shown], next_cursor=cursor)


async def _read(request: Request, principal: Principal, webhook_id: str) -> Webhook:
    found: Webhook = await request.app.state.database.read(
        lambda c: webhooks.find(c, principal.tenant_id, webhook_id), tenant=principal.tenant_id
    )
    return found


@router.get("/{webhook_id}", summary="Show a webhook")
async def show_webhook(request: Request, response: Response, principal: Manager, webhook_id: str) -> WebhookView:
    webhook = await _read(request, principal, webhook_id)
    response.headers["ETag"] = _etag(webhook)
    return WebhookView.of(webhook)


@router.patch("/{webhook_id}", summary="Change, disable or enable a webhook", dependencies=GUARDED)
async def change_webhook(
    request: Request, response: Response, principal: Manager, webhook_id: str, body: WebhookChange
) -> WebhookView:
    state = request.app.state
    seen = await _read(request, principal, webhook_id)
    require_if_match(request, _etag(seen))
    values: dict[str, Any] = body.model_dump(exclude_none=True)
    if body.event_types is not None:
        webhooks.check_event_types(body.event_types)
    if body.url is not None:
        await state.event_worker.egress.check(body.url)
    if body.status is not None:
        values["disabled_reason"] = None if body.status == "enabled" else f"disabled by {principal.actor}"[:200]
    changed: Webhook = await state.database.transact(
        lambda c: webhooks.change(
            c, principal=principal, webhook=seen, action="change", now=state.clock.now(), **values
        ),
        tenant=principal.tenant_id,
    )
    response.headers["ETag"] = _etag(changed)
    return WebhookView.of(changed)


@router.delete("/{webhook_id}", status_code=204, summary="Delete a webhook and what waits for it")
async def delete_webhook(request: Request, principal: Manager, webhook_id: str) -> Response:
    state = request.app.state
    await state.database.transact(
        lambda c: webhooks.delete(c, principal=principal, webhook_id=webhook_id, now=state.clock.now()),
        tenant=principal.tenant_id,
    )
    return Response(status_code=204)


@router.post(
    "/{webhook_id}/rotate-secret", summary="Make a new secret; both sign until then", response_model=NewWebhookView
)
async def rotate_secret(
    request: Request, principal: Manager, once: Once, webhook_id: str, body: SecretRotate
) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        webhook, secret = webhooks.rotate_secret(
            connection,
            principal=principal,
            webhook_id=webhook_id,
            grace=timedelta(seconds=body.grace_seconds),
            now=state.clock.now(),
            seal=_seal(request),
        )
        return _told_once(webhook, secret, 200)

    return await once.transact(work)


@router.post("/{webhook_id}/test", status_code=202, summary="Send a test event", response_model=DeliveryView)
async def test_webhook(request: Request, principal: Manager, once: Once, webhook_id: str) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        queued = webhooks.send_test(connection, principal=principal, webhook_id=webhook_id, now=state.clock.now())
        return Answer(status=202, body=DeliveryView.of(queued, with_excerpt=False).model_dump())

    return await once.transact(work)


@router.get("/{webhook_id}/deliveries", summary="What was sent, newest first")
async def list_deliveries(
    request: Request, response: Response, principal: Manager, page: Page, webhook_id: str
) -> DeliveryPage:
    before = str(page.position[0]) if page.position is not None else None
    await _read(request, principal, webhook_id)
    found = await request.app.state.database.read(
        lambda c: webhook_repository.list_deliveries(
            c, principal.tenant_id, webhook_id, before_id=before, limit=page.fetch_limit
        ),
        tenant=principal.tenant_id,
    )
    shown, cursor = page.close(found, lambda delivery: (delivery.id,), response)
    with_excerpt = principal.has("admin")
    items = [DeliveryView.of(delivery, with_excerpt=with_excerpt) for delivery in shown]
    return DeliveryPage(items=items, next_cursor=cursor)


@router.post(
    "/{webhook_id}/deliveries/{delivery_id}/redeliver",
    status_code=202,
    summary="Send the event of a delivery again",
    response_model=DeliveryView,
)
async def redeliver(request: Request, principal: Manager, once: Once, webhook_id: str, delivery_id: str) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        queued = webhooks.redeliver(
            connection,
            principal=principal,
            webhook_id=webhook_id,
            delivery_id=delivery_id,
            now=state.clock.now(),
        )
        return Answer(status=202, body=DeliveryView.of(queued, with_excerpt=False).model_dump())

    return await once.transact(work)
