"""``POST /v1/claims`` and ``POST /v1/comparisons``: computed and forgotten."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.access.dependencies import require_scopes
from app.access.principal import Principal
from app.catalog import service as catalog
from app.claims import service
from app.claims.comparison import compare
from app.claims.schemas import ClaimsRequest, ComparisonRequest

router = APIRouter(tags=["claims"])


@router.post(
    "/v1/claims",
    summary="Judge claimed figures",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
    response_description="A verdict, the predicted interval, evidence and a condition for every claim, in order",
)
async def judge_claims(
    request: Request,
    body: ClaimsRequest,
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Judge claims about a job on a candidate supply against a baseline. Nothing is persisted."""
    del principal
    state = request.app.state
    snapshot = await state.database.read(lambda connection: catalog.snapshot(connection, body.catalog_revision))
    today = state.clock.now().date()
    answer = await run_in_threadpool(service.judge_claims, snapshot, body, today)
    return Response(orjson.dumps(answer), media_type="application/json")


@router.post(
    "/v1/comparisons",
    summary="Compare supplies for one job",
    response_class=Response,
    responses={200: {"content": {"application/json": {}}}},
    response_description="Time, money, energy, campaign, scaling and break-even of every supply, in order",
)
async def compare_supplies(
    request: Request,
    body: ComparisonRequest,
    principal: Annotated[Principal, Depends(require_scopes("estimates:run"))],
) -> Response:
    """Run one job on every supply and set them beside each other. Nothing is persisted."""
    del principal
    state = request.app.state
    snapshot = await state.database.read(lambda connection: catalog.snapshot(connection, body.catalog_revision))
    today = state.clock.now().date()
    answer = await run_in_threadpool(compare, snapshot, body, today)
    return Response(orjson.dumps(answer), media_type="application/json")
