"""What the room's routes share: who may call, how a slow calculation is answered once, how a revision is answered."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Path, Request
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from app.access.principal import COSTS, Principal
from app.foundation.idempotency import RENEW_EVERY_S, Answer, Idempotency
from app.foundation.problems import Problem
from app.quotes.acting import Acting
from app.quotes.errors import revision_path
from app.quotes.records import Acceptance, Quote, Revision
from app.quotes.views import cache_headers, revision_view

# A calculation that ends within this time shares one transaction with its key; a longer one reserves the key first.
SHORT_CALCULATION_S = 0.5

# As many revisions as an integer column counts.
RevisionNumber = Annotated[int, Path(ge=1, le=2**31 - 1)]

T = TypeVar("T")
Store = Callable[[Connection, T], Answer]


def acting_in(request: Request, principal: Principal) -> Acting:
    """Who acts in this request."""
    return Acting(principal=principal, clock=request.app.state.clock)


async def read(request: Request, principal: Principal, work: Callable[[Connection], T]) -> T:
    """Read as the caller's tenant."""
    found: T = await request.app.state.database.read(work, tenant=principal.tenant_id)
    return found


async def calculate_then_store(once: Idempotency, calculate: Callable[[], T], store: Store[T]) -> Response:
    """Calculate outside any transaction, then store and answer in one.

    A refusal of the calculation is an answer like any other: it is kept for retries and leaves no row of ours.
    """
    task: asyncio.Task[T] = asyncio.ensure_future(run_in_threadpool(calculate))
    done, _ = await asyncio.wait({task}, timeout=SHORT_CALCULATION_S)
    try:
        if not done:
            await once.reserve()
        while not done:
            done, _ = await asyncio.wait({task}, timeout=RENEW_EVERY_S)
            if not done:
                await once.renew()
    except BaseException:
        task.add_done_callback(lambda finished: finished.cancelled() or finished.exception())
        raise
    try:
        result = await task
    except Problem as problem:
        return await once.transact(_refusing(problem))
    except BaseException:
        await once.release()
        raise
    return await once.transact(lambda connection: store(connection, result))


def _refusing(problem: Problem) -> Callable[[Connection], Answer]:
    def work(_connection: Connection) -> Answer:
        raise problem

    return work


def revision_answer(
    quote: Quote,
    revision: Revision,
    acting: Acting,
    connection: Connection,
    *,
    status: int = 200,
    acceptance: Acceptance | None = None,
) -> Answer:
    """Answer with a revision as it is after the step."""
    now = acting.now(connection)
    body = revision_view(revision, quote.number, now, with_costs=acting.principal.has(COSTS), acceptance=acceptance)
    headers: Mapping[str, str] = {"ETag": cache_headers(revision.head, now)["ETag"], "Cache-Control": "no-store"}
    if status == 201:
        headers = {**headers, "Location": revision_path(quote.id, revision.head.n)}
    return Answer(status=status, body=body, headers=headers)


def document(body: Any, headers: Mapping[str, str] | None = None) -> Response:
    """Answer a read."""
    return Response(orjson.dumps(body), media_type="application/json", headers=dict(headers or {}))
