"""``/v1/compare`` across quotes, and ``/v1/approval-policy``: thresholds as data."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import require_scopes
from app.access.principal import COSTS, Principal
from app.foundation.answers import shows
from app.foundation.calculation import within_time
from app.quotes import service
from app.quotes.answer_schemas import ComparisonAnswer, PolicyAnswer
from app.quotes.calling import acting_in, document, read
from app.quotes.costs import without_margin_rules
from app.quotes.schemas import Compare, Policy

router = APIRouter(prefix="/v1", tags=["quotes"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Admin = Annotated[Principal, Depends(require_scopes("admin"))]


@router.post("/compare", summary="Compare revisions across quotes", responses=shows(ComparisonAnswer))
async def compare(request: Request, principal: Reader, body: Compare) -> Response:
    """Set revisions side by side, in the order given; each pair of neighbours gets a drift report."""
    acting = acting_in(request, principal)

    def side(connection: Connection, wanted: Any) -> tuple[service.Revision, str | None]:
        if isinstance(wanted, str):
            return service.show_by_id(connection, principal.tenant_id, wanted)
        now = acting.now(connection)
        shown = service.show(connection, principal.tenant_id, wanted.quote_id, wanted.revision, now=now)
        return shown.signed, shown.quote.number

    found = await read(
        request, principal, lambda c: service.read_sides(c, [side(c, wanted) for wanted in body.revisions])
    )
    return document(await within_time(request, partial(service.compare_sides, found, with_costs=principal.has(COSTS))))


@router.get("/approval-policy", summary="Show the tenant's approval policy", responses=shows(PolicyAnswer))
async def show_policy(request: Request, principal: Reader) -> Response:
    policy = await read(request, principal, lambda c: service.current_policy(c, principal.tenant_id))
    return _policy_document(policy, principal)


@router.put("/approval-policy", summary="Replace the tenant's approval policy", responses=shows(PolicyAnswer))
async def replace_policy(request: Request, principal: Admin, body: Policy) -> Response:
    """Add a version; revisions judged by an earlier one keep their verdict."""
    acting = acting_in(request, principal)
    asked = body.model_dump(exclude_none=True)
    policy = await request.app.state.database.transact(
        lambda c: service.set_policy(c, acting, asked), tenant=principal.tenant_id
    )
    return _policy_document(policy, principal)


def _policy_document(policy: service.ApprovalPolicy, principal: Principal) -> Response:
    shown = policy.as_document() if principal.has(COSTS) else without_margin_rules(policy.as_document())
    return document({"version": policy.version, **shown})
