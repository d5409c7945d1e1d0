"""Tenants over HTTP: the operator's work, for keys with ``tenants:manage``."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import Connection

from app.access import audit, repository, service, tenants
from app.access.dependencies import idempotent, require_scopes
from app.access.principal import TENANT_SCOPES, Principal
from app.access.repository import Tenant
from app.access.schemas import NewTenantView, TenantChange, TenantCreate, TenantPage, TenantView
from app.foundation.database import SYSTEM
from app.foundation.idempotency import Answer, Idempotency
from app.foundation.pagination import PageRequest, page_request
from app.foundation.tenancy import working_as

router = APIRouter(prefix="/tenants", tags=["tenants"])

Operator = Annotated[Principal, Depends(require_scopes("tenants:manage"))]
Once = Annotated[Idempotency, Depends(idempotent)]
Page = Annotated[PageRequest, Depends(page_request)]


@router.post("", status_code=201, summary="Make a tenant, with its first key if asked", response_model=NewTenantView)
async def create_tenant(request: Request, principal: Operator, once: Once, body: TenantCreate) -> Response:
    state = request.app.state

    def work(connection: Connection) -> Answer:
        now = state.clock.now()
        with working_as(connection, SYSTEM, afterwards=principal.tenant_id):
            tenant = tenants.create(connection, **body.model_dump(exclude={"first_key"}), now=now)
        key = _first_key(request, connection, principal, tenant, body.first_key)
        _record(request, connection, principal, "create", tenant)
        return Answer(
            status=201,
            body=NewTenantView.of_new(tenant, key).model_dump(),
            stored_body=NewTenantView.of_new(tenant, None).model_dump(),
            headers={"Location": f"/v1/tenants/{tenant.tenant_id}", "Cache-Control": "no-store"},
        )

    response = await once.transact(work)
    state.authenticator.forget_open_mode()
    return response


def _first_key(
    request: Request, connection: Connection, principal: Principal, tenant: Tenant, name: str | None
) -> str | None:
    """A key with every right of one tenant, recorded in that tenant's own trail."""
    if name is None:
        return None
    state = request.app.state
    for_tenant = Principal(tenant_id=tenant.tenant_id, actor=f"operator:{principal.actor}"[:200], scopes=TENANT_SCOPES)
    with working_as(connection, tenant.tenant_id, afterwards=principal.tenant_id):
        _, text = service.create_key(
            connection,
            principal=for_tenant,
            name=name,
            scopes=sorted(TENANT_SCOPES),
            now=state.clock.now(),
            peppers=state.settings.pepper_list,
        )
    return text


def _record(
    request: Request, connection: Connection, principal: Principal, what: str, tenant: Tenant, **details: Any
) -> None:
    audit.record(
        connection,
        principal=principal,
        at=request.app.state.clock.now(),
        action=f"tenant.{what}",
        subject=tenant.tenant_id,
        details=details,
    )


@router.get("", summary="List tenants")
async def list_tenants(request: Request, response: Response, principal: Operator, page: Page) -> TenantPage:
    del principal
    after = str(page.position[0]) if page.position is not None else ""
    found = await request.app.state.database.read(
        lambda c: repository.page_of_tenants(c, after_id=after, limit=page.fetch_limit), tenant=SYSTEM
    )
    shown, cursor = page.close(found, lambda tenant: (tenant.tenant_id,), response)
    return TenantPage(items=[TenantView.of(tenant) for tenant in shown], next_cursor=cursor)


@router.get("/{tenant_id}", summary="Show a tenant and its limits")
async def show_tenant(request: Request, principal: Operator, tenant_id: str) -> TenantView:
    del principal
    return TenantView.of(await request.app.state.database.read(lambda c: tenants.find(c, tenant_id), tenant=SYSTEM))


@router.patch("/{tenant_id}", summary="Change a tenant's limits, or close it")
async def change_tenant(request: Request, principal: Operator, tenant_id: str, body: TenantChange) -> TenantView:
    state = request.app.state
    given = body.model_dump(exclude_unset=True)
    # Only the limit of requests may be none: the service's own.
    changes = {name: value for name, value in given.items() if value is not None or name == "requests_per_minute"}
    if "closed" in changes:
        changes["closed_at"] = state.clock.now() if changes.pop("closed") else None

    def work(connection: Connection) -> Tenant:
        with working_as(connection, SYSTEM, afterwards=principal.tenant_id):
            tenant = tenants.change(connection, tenant_id, changes)
        _record(request, connection, principal, "change", tenant, changed=sorted(changes), quotas=tenant.quotas or {})
        return tenant

    return TenantView.of(await state.database.transact(work, tenant=principal.tenant_id))
