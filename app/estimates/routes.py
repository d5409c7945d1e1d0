"""``POST /v1/estimates``: computed and forgotten."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Body, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import check_items, require_scopes
from app.access.metering import ESTIMATES
from app.access.principal import COSTS, Principal
from app.catalog import service as catalog
from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.estimates import service, studies
from app.estimates.answer_schemas import EstimateAnswer, SensitivityAnswer
from app.estimates.examples import REQUESTS
from app.estimates.schemas import EstimateRequest, SensitivityRequest
from app.foundation.answers import shows
from app.foundation.calculation import within_time

router = APIRouter(tags=["estimates"])


@router.post(
    "/v1/estimates",
    summary="Estimate training and inference jobs",
    response_class=Response,
    responses=shows(EstimateAnswer),
    response_description="Ranked options of every item, with totals of the recommended ones",
)
async def create_estimate(
    request: Request,
    body: Annotated[EstimateRequest, Body(openapi_examples=REQUESTS)],
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Compute options for every item, ranked over the catalog. Nothing is persisted."""
    check_items(principal, len(body.items), request)
    asked = service.with_tenant_defaults(body, principal.default_currency)
    snapshot, book = await _look_up(request, asked, principal.tenant_id)
    today = request.app.state.clock.now().date()
    estimate = await within_time(request, studies.estimate_with_advice, snapshot, asked, today, book)
    return _answer(request, estimate.as_json(), principal)


@router.post(
    "/v1/estimates/sensitivity",
    summary="What moves the total of the recommended options",
    response_class=Response,
    responses=shows(SensitivityAnswer),
    response_description="Inputs by the share of the total they move, percentiles, chance of deadline and budget",
)
async def create_sensitivity(
    request: Request,
    body: Annotated[SensitivityRequest, Body(openapi_examples=REQUESTS)],
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Vary every uncertain input of the recommended options, one at a time and all at once. Nothing is persisted."""
    check_items(principal, len(body.items), request)
    asked = service.with_tenant_defaults(body, principal.default_currency)
    snapshot, book = await _look_up(request, asked, principal.tenant_id)
    today = request.app.state.clock.now().date()
    answer = await within_time(request, studies.study, snapshot, asked, today, body.samples, book)
    return _answer(request, answer, principal)


def _answer(request: Request, answer: dict[str, Any], principal: Principal) -> Response:
    request.app.state.authenticator.meter.count(principal.tenant_id, ESTIMATES)
    shown = answer if principal.has(COSTS) else service.without_costs(answer)
    return Response(orjson.dumps(shown), media_type="application/json")


async def _look_up(request: Request, asked: EstimateRequest, tenant: str) -> tuple[Snapshot, PriceBook | None]:
    """The catalog revision and the tenant's price book that a request names, in one read."""

    def read(connection: Connection) -> tuple[Snapshot, PriceBook | None]:
        book = service.price_book_of(connection, tenant, asked)
        return catalog.snapshot(connection, asked.catalog_revision, pointer="/catalog_revision"), book

    found: tuple[Snapshot, PriceBook | None] = await request.app.state.database.read(read, tenant=tenant)
    return found
