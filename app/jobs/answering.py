"""How a route answers a slow request: at once where it ends in time, as a job where its client prefers that."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from fastapi import Request
from pydantic import BaseModel
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.principal import Principal
from app.foundation.answers import Responses, shows
from app.foundation.calculation import abandon, begin, timed_out
from app.foundation.idempotency import RENEW_EVERY_S, Answer, Idempotency
from app.foundation.identifiers import new_id
from app.foundation.prefer import Preference
from app.foundation.problems import Problem, preferred_language
from app.jobs import service
from app.jobs.job import Job, Work
from app.jobs.schemas import JobView

# A calculation that ends within this time shares one transaction with its key; a longer one reserves the key first.
SHORT_CALCULATION_S = 0.5
OPEN_HEADERS = {"Retry-After": "1"}
HINT = "Send the request again with Prefer: respond-async, and follow the job it names."


def answers(model: type[BaseModel]) -> Responses:
    """Say in the API document what a route answers that answers through :func:`answer`."""
    accepted = {"model": JobView, "description": "Accepted as a job (Prefer: respond-async)"}
    return {**shows(model, 201), 202: accepted}


async def answer(
    request: Request, principal: Principal, once: Idempotency, preference: Preference, work: Work
) -> Response:
    """Look up, calculate outside any transaction, then store and answer in one.

    A refusal of the calculation is an answer like any other: it is kept for retries and leaves no row of ours. With
    ``Prefer: respond-async`` the answer is 202 with a job, at once or after ``wait`` seconds without a result.
    """
    state = request.app.state
    calculate = await state.database.read(work.look_up, tenant=principal.tenant_id)
    budget_s: float = state.settings.calculation_budget_s
    patience_s = budget_s
    if preference.respond_async:
        patience_s = min(preference.wait_s or 0, budget_s)
        if patience_s == 0:
            return await _queue(request, principal, once, work)
    calculation = begin(calculate)
    try:
        if not await _ends_within(calculation, min(SHORT_CALCULATION_S, patience_s)):
            await once.reserve()
            await _wait_under_lease(once, calculation, patience_s - SHORT_CALCULATION_S)
        if calculation.done():
            return await _store(once, work, calculation)
        if preference.respond_async:
            return await _hand_over(request, principal, once, work, calculation, waited_s=int(patience_s))
        await once.release()
        raise timed_out(budget_s, HINT)
    except BaseException:
        abandon(calculation)
        raise


async def _ends_within(calculation: "asyncio.Task[Any]", seconds: float) -> bool:
    done, _ = await asyncio.wait({calculation}, timeout=max(seconds, 0))
    return bool(done)


async def _wait_under_lease(once: Idempotency, calculation: "asyncio.Task[Any]", seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if await _ends_within(calculation, min(RENEW_EVERY_S, left)):
            return
        await once.renew()


async def _store(once: Idempotency, work: Work, calculation: "asyncio.Task[Any]") -> Response:
    try:
        result = calculation.result()
    except Problem as problem:
        return await once.transact(_refusing(problem))
    except BaseException:
        await once.release()
        raise
    return await once.transact(lambda connection: work.store(connection, result))


async def _queue(request: Request, principal: Principal, once: Idempotency, work: Work) -> Response:
    state, job_id = request.app.state, new_id("job")

    def submit(connection: Connection) -> Answer:
        job = service.submit(connection, principal, work, job_id=job_id, clock=state.clock)
        return _accepted(request, job, "respond-async")

    response = await once.transact(submit)
    state.job_worker.wake()
    return response


async def _hand_over(
    request: Request,
    principal: Principal,
    once: Idempotency,
    work: Work,
    calculation: "asyncio.Task[Any]",
    *,
    waited_s: int,
) -> Response:
    """Make a job of what is being calculated, and let the worker of this process attend to it."""
    state, job_id = request.app.state, new_id("job")

    def submit(connection: Connection) -> Answer:
        job = service.submit(
            connection, principal, work, job_id=job_id, clock=state.clock, owner=state.job_worker.owner
        )
        return _accepted(request, job, f"respond-async, wait={waited_s}")

    response = await once.transact(submit)
    job = await state.database.read(lambda c: service.find(c, principal.tenant_id, job_id), tenant=principal.tenant_id)
    state.job_worker.adopt(job, work, calculation)
    return response


def _accepted(request: Request, job: Job, applied: str) -> Answer:
    language = preferred_language(request.headers.get("accept-language"))
    view = JobView.of(job, language=language, problems_url=request.app.state.settings.problems_url)
    headers = {**OPEN_HEADERS, "Location": job.path, "Preference-Applied": applied, "Cache-Control": "no-store"}
    return Answer(status=202, body=view.model_dump(), headers=headers)


def _refusing(problem: Problem) -> Callable[[Connection], Answer]:
    def work(_connection: Connection) -> Answer:
        raise problem

    return work
