"""``POST /v1/claims`` and ``POST /v1/comparisons``: computed and forgotten."""

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Depends, Request
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import require_scopes
from app.access.metering import ESTIMATES
from app.access.principal import COSTS, Principal
from app.catalog import service as catalog
from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.claims import service
from app.claims.answer_schemas import ClaimsAnswer, ComparisonsAnswer
from app.claims.comparison import compare
from app.claims.schemas import ClaimsRequest, ComparisonRequest
from app.estimates import service as estimates
from app.estimates.schemas import EstimateRequest, Terms
from app.foundation.answers import shows
from app.foundation.calculation import within_time

router = APIRouter(tags=["claims"])


@router.post(
    "/v1/claims",
    summary="Judge claimed figures",
    response_class=Response,
    responses=shows(ClaimsAnswer),
    response_description="A verdict, the predicted interval, evidence and a condition for every claim, in order",
)
async def judge_claims(
    request: Request,
    body: ClaimsRequest,
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Judge claims about a job on a candidate supply against a baseline. Nothing is persisted."""
    terms, snapshot, book = await _look_up(request, body, principal)
    asked, today = body.model_copy(update={"terms": terms}), request.app.state.clock.now().date()
    answer = await within_time(request, service.judge_claims, snapshot, asked, today, book)
    return _answer(request, answer, terms, principal)


@router.post(
    "/v1/comparisons",
    summary="Compare supplies for one job",
    response_class=Response,
    responses=shows(ComparisonsAnswer),
    response_description="Time, money, energy, campaign, scaling and break-even of every supply, in order",
)
async def compare_supplies(
    request: Request,
    body: ComparisonRequest,
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Run one job on every supply and set them beside each other. Nothing is persisted."""
    terms, snapshot, book = await _look_up(request, body, principal)
    asked, today = body.model_copy(update={"terms": terms}), request.app.state.clock.now().date()
    answer = await within_time(request, compare, snapshot, asked, today, book)
    return _answer(request, answer, terms, principal)


def _answer(request: Request, answer: dict[str, Any], terms: Terms, principal: Principal) -> Response:
    request.app.state.authenticator.meter.count(principal.tenant_id, ESTIMATES)
    shown = answer
    if not principal.has(COSTS):
        shown = estimates.without_costs(answer)
        shown = estimates.without_list_prices(shown) if terms.markup else shown
    return Response(orjson.dumps(shown), media_type="application/json")


async def _look_up(
    request: Request, body: ClaimsRequest | ComparisonRequest, principal: Principal
) -> tuple[Terms, Snapshot, PriceBook | None]:
    """The terms with the tenant's currency, the catalog revision, and the tenant's price book that the terms name."""
    plain = EstimateRequest.model_construct(items=[], terms=body.terms)
    terms = estimates.with_tenant_defaults(plain, principal.default_currency).terms

    def read(connection: Connection) -> tuple[Snapshot, PriceBook | None]:
        book = estimates.price_book_of(connection, principal.tenant_id, plain)
        return catalog.snapshot(connection, body.catalog_revision, pointer="/catalog_revision"), book

    found: tuple[Snapshot, PriceBook | None] = await request.app.state.database.read(read, tenant=principal.tenant_id)
    return terms, *found
