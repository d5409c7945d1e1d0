"""Keys, the caller's own data, and the audit trail over HTTP."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Connection

from app.access import audit, audit_heads, audit_repository, quotas, service
from app.access.dependencies import CurrentPrincipal, idempotent, require_scopes
from app.access.keys import ApiKey
from app.access.metering import ESTIMATES, REQUESTS
from app.access.principal import Principal
from app.access.schemas import (
    AuditEntryView,
    AuditPage,
    AuditVerdict,
    KeyCreate,
    KeyPage,
    KeyRotate,
    KeyView,
    Me,
    NewKeyView,
    QuotaView,
    SignedHeadPage,
    SignedHeadView,
    Usage,
    UsageDay,
)
from app.access.tenant_routes import router as tenant_router
from app.foundation.idempotency import Answer, Idempotency
from app.foundation.pagination import PageRequest, page_request

router = APIRouter(prefix="/v1")
router.include_router(tenant_router)

Admin = Annotated[Principal, Depends(require_scopes("admin"))]
Auditor = Annotated[Principal, Depends(require_scopes("audit:read"))]
Once = Annotated[Idempotency, Depends(idempotent)]
Page = Annotated[PageRequest, Depends(page_request)]


@router.get("/me", tags=["access"], summary="Who the service thinks you are")
async def me(principal: CurrentPrincipal) -> Me:
    return Me(
        tenant_id=principal.tenant_id,
        actor=principal.actor,
        key_id=principal.key_id,
        scopes=sorted(principal.scopes),
        default_currency=principal.default_currency,
    )


@router.get("/usage", tags=["access"], summary="What the tenant did in the last 30 days")
async def usage(request: Request, principal: Admin) -> Usage:
    state = request.app.state
    now = state.clock.now()
    await state.authenticator.meter.flush()

    def look_up(connection: Connection) -> Usage:
        tenant = principal.tenant_id
        days, used = service.usage_by_day(connection, tenant, now)
        limits = {name: quotas.limit_of(connection, tenant, name) for name in quotas.QUOTAS}
        return Usage(
            period_days=service.USAGE_PERIOD.days,
            actions=service.usage(connection, tenant, now),
            requests_per_minute=principal.requests_per_minute or state.settings.rate_limit_per_minute,
            days=[_usage_day(day, counted) for day, counted in days.items()],
            quotas=[
                QuotaView(name=name, limit=limit, used=None if name == "items_per_request" else used.get(name, 0))
                for name, limit in limits.items()
                if limit is not None
            ],
        )

    found: Usage = await state.database.read(look_up, tenant=principal.tenant_id)
    return found


def _usage_day(day: str, counted: Mapping[str, int]) -> UsageDay:
    return UsageDay(
        day=day,
        requests=counted.get(REQUESTS, 0),
        estimates=counted.get(ESTIMATES, 0),
        quotes=counted.get("quotes_per_day", 0),
    )


@router.post("/api-keys", status_code=201, tags=["access"], summary="Make an API key", response_model=NewKeyView)
async def create_key(request: Request, principal: Admin, once: Once, body: KeyCreate) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        key, text = service.create_key(
            connection,
            principal=principal,
            name=body.name,
            scopes=body.scopes,
            now=state.clock.now(),
            peppers=state.settings.pepper_list,
            expires_at=body.expires_at,
            allowed_networks=body.allowed_networks,
        )
        return _created(key, text)

    response = await once.transact(work)
    state.authenticator.forget_open_mode()
    return response


def _created(key: ApiKey, text: str) -> Answer:
    return Answer(
        status=201,
        body=NewKeyView.of_new(key, text).model_dump(),
        stored_body=NewKeyView.of_new(key, None).model_dump(),
        headers={"Location": f"/v1/api-keys/{key.id}", "Cache-Control": "no-store"},
    )


@router.get("/api-keys", tags=["access"], summary="List API keys, newest first")
async def list_keys(request: Request, response: Response, principal: Admin, page: Page) -> KeyPage:
    after = None
    if page.position is not None:
        after = (datetime.fromisoformat(str(page.position[0])), str(page.position[1]))
    found = await request.app.state.database.read(
        lambda c: service.list_keys(c, principal=principal, after=after, limit=page.fetch_limit),
        tenant=principal.tenant_id,
    )
    shown, cursor = page.close(found, lambda key: (key.created_at.isoformat(), key.id), response)
    return KeyPage(items=[KeyView.of(key) for key in shown], next_cursor=cursor)


@router.get("/api-keys/{key_id}", tags=["access"], summary="Show an API key without its secret")
async def show_key(request: Request, principal: Admin, key_id: str) -> KeyView:
    key = await request.app.state.database.read(
        lambda c: service.find_key(c, principal=principal, key_id=key_id), tenant=principal.tenant_id
    )
    return KeyView.of(key)


@router.delete("/api-keys/{key_id}", status_code=204, tags=["access"], summary="Revoke an API key at once")
async def revoke_key(request: Request, principal: Admin, key_id: str) -> Response:
    state = request.app.state
    await state.database.transact(
        lambda c: service.revoke_key(c, principal=principal, key_id=key_id, now=state.clock.now()),
        tenant=principal.tenant_id,
    )
    return Response(status_code=204)


@router.post(
    "/api-keys/{key_id}/rotate",
    status_code=201,
    tags=["access"],
    summary="Replace an API key; the old one works until its grace period ends",
    response_model=NewKeyView,
)
async def rotate_key(request: Request, principal: Admin, once: Once, key_id: str, body: KeyRotate) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        key, text = service.rotate_key(
            connection,
            principal=principal,
            key_id=key_id,
            grace=timedelta(seconds=body.grace_seconds),
            now=state.clock.now(),
            peppers=state.settings.pepper_list,
        )
        return _created(key, text)

    return await once.transact(work)


@router.get("/audit", tags=["audit"], summary="The tenant's whole audit trail")
async def audit_trail(request: Request, response: Response, principal: Auditor, page: Page) -> AuditPage:
    after = int(page.position[0]) if page.position is not None else 0
    found = await request.app.state.database.read(
        lambda c: audit.entries(c, principal.tenant_id, after_sequence=after, limit=page.fetch_limit),
        tenant=principal.tenant_id,
    )
    shown, cursor = page.close(found, lambda entry: (entry.sequence,), response)
    return AuditPage(items=[AuditEntryView.of(entry) for entry in shown], next_cursor=cursor)


@router.get("/audit/verify", tags=["audit"], summary="Walk the tenant's audit chain")
async def verify_audit(request: Request, principal: Auditor) -> AuditVerdict:
    state = request.app.state
    verdict = await state.database.read(lambda c: audit.verify(c, principal.tenant_id), tenant=principal.tenant_id)
    return AuditVerdict(
        match=verdict.match,
        entries=verdict.entries,
        head_hash=verdict.head_hash,
        broken_at=verdict.broken_at,
        reason=verdict.reason,
    )


@router.get("/audit/head", tags=["audit"], summary="The head of the audit chain, signed now")
async def audit_head(request: Request, principal: Auditor) -> SignedHeadView:
    """Keep it with the public key: exported entries that do not lead to it were written anew."""
    state = request.app.state
    head = await state.database.read(
        lambda c: audit_heads.sign(
            c, principal.tenant_id, now=state.clock.now(), signing_key=state.settings.signing_key
        ),
        tenant=principal.tenant_id,
    )
    return SignedHeadView(**audit_heads.as_json(head))


@router.get("/audit/heads", tags=["audit"], summary="The heads that were signed day by day, newest first")
async def daily_heads(request: Request, response: Response, principal: Auditor, page: Page) -> SignedHeadPage:
    before = str(page.position[0]) if page.position is not None else None
    found = await request.app.state.database.read(
        lambda c: audit_repository.signed_heads(c, principal.tenant_id, before_day=before, limit=page.fetch_limit),
        tenant=principal.tenant_id,
    )
    shown, cursor = page.close(found, lambda head: (head.day,), response)
    return SignedHeadPage(items=[SignedHeadView(**audit_heads.as_json(head)) for head in shown], next_cursor=cursor)
