"""Runs jobs: once per process, any number of processes. Replaceable: it knows jobs only through their service."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DBAPIError

from app.foundation.calculation import abandon, begin, timed_out
from app.foundation.clock import Clock
from app.foundation.database import SYSTEM, Database
from app.foundation.identifiers import new_id
from app.foundation.problem_handlers import validation_problem
from app.foundation.problems import Problem
from app.foundation.telemetry import trace_id_var
from app.jobs import repository, service
from app.jobs.job import Job, Kinds, Work

log = structlog.get_logger()

POLL_S = 0.5
RENEW_S = 5.0
TIDY_EVERY = timedelta(hours=1)
# The engine holds the interpreter while it computes: more at once would only be slower together.
AT_ONCE = 2


class JobWorker:
    """Claims due jobs, calculates them in threads, and stores each result together with the end of its job."""

    def __init__(self, database: Database, clock: Clock, *, kinds: Kinds, budget_s: float) -> None:
        self.owner = new_id("wrk")
        self._database = database
        self._clock = clock
        self._kinds = kinds
        self._budget_s = budget_s
        self._running: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._tidied_at = datetime.min.replace(tzinfo=UTC)
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._loop = asyncio.create_task(self._work(), name="job worker")

    async def stop(self) -> None:
        """Let go of everything; what was running is taken over when its lease ends."""
        tasks = [*self._running, *([self._loop] if self._loop else [])]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def wake(self) -> None:
        """Look for work now rather than at the next poll."""
        self._woken.set()

    def adopt(self, job: Job, work: Work, calculation: "asyncio.Task[Any]") -> None:
        """Go on with a job whose calculation has begun in a request."""
        self._follow(self._attend(job, work, calculation))

    async def run_due(self) -> int:
        """Take what is due and has room, and return how many that were; they run on."""
        room = AT_ONCE - len(self._running)
        if room <= 0 or not await self._database.read(self._any_due, tenant=SYSTEM):
            return 0
        claimed = await self._database.transact(
            lambda c: service.claim(c, owner=self.owner, limit=room, clock=self._clock), tenant=SYSTEM
        )
        for job in claimed:
            self._follow(self._run(job))
        return len(claimed)

    async def settle(self) -> None:
        """Wait for the jobs that run now."""
        while self._running:
            await asyncio.wait(self._running)

    def _any_due(self, connection: Any) -> bool:
        return repository.any_due(connection, self._clock.database_now(connection))

    def _follow(self, running: Any) -> None:
        task = asyncio.ensure_future(running)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: self.wake())

    async def _run(self, job: Job) -> None:
        trace_id_var.set(job.trace_id)
        try:
            work = self._kinds[job.kind](job.caller, self._clock, job.arguments)
            calculate = await self._database.read(work.look_up, tenant=job.tenant_id)
        except Exception as error:
            await self._end_with(job, error)
            return
        await self._attend(job, work, begin(calculate))

    async def _attend(self, job: Job, work: Work, calculation: "asyncio.Task[Any]") -> None:
        """Keep the lease while the calculation runs, then store its result with the end of the job."""
        try:
            result = await self._result(job, calculation)
            await self._database.transact(
                lambda c: service.finish(c, job, work, result, owner=self.owner, clock=self._clock),
                tenant=job.tenant_id,
            )
        except service.LostLeaseError:
            log.info("job_let_go", job_id=job.id)
        except Exception as error:
            await self._end_with(job, error)
        finally:
            abandon(calculation)

    async def _result(self, job: Job, calculation: "asyncio.Task[Any]") -> Any:
        give_up_at = time.monotonic() + self._budget_s
        while not calculation.done():
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise timed_out(self._budget_s, "Ask for fewer items or a narrower supply.")
            await asyncio.wait({calculation}, timeout=min(RENEW_S, left))
            if not calculation.done() and not await self._renew(job):
                raise service.LostLeaseError(job.id)
        return calculation.result()

    async def _renew(self, job: Job) -> bool:
        return await self._database.transact(
            lambda c: service.renew(c, job, owner=self.owner, clock=self._clock), tenant=job.tenant_id
        )

    async def _end_with(self, job: Job, error: Exception) -> None:
        """Fail the job, unless the fault is the database's and may be gone when the lease ends."""
        problem = _as_problem(error)
        if problem is None:
            log.warning("job_postponed", job_id=job.id, reason=type(error).__name__)
            return
        try:
            await self._database.transact(
                lambda c: service.fail(c, job, problem, owner=self.owner, clock=self._clock), tenant=job.tenant_id
            )
        except service.LostLeaseError:
            log.info("job_let_go", job_id=job.id)
        except (DBAPIError, Problem) as fault:
            log.warning("job_postponed", job_id=job.id, reason=type(fault).__name__)

    async def _tidy(self) -> None:
        now = self._clock.now()
        if now - self._tidied_at >= TIDY_EVERY:
            self._tidied_at = now
            await self._database.transact(lambda c: service.forget_old(c, clock=self._clock), tenant=SYSTEM)

    async def _work(self) -> None:
        while True:
            self._woken.clear()
            try:
                await self._tidy()
                taken = await self.run_due()
            except Exception:
                log.exception("job_worker_failed")
                taken = 0
            if not taken:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), POLL_S)


def _as_problem(error: Exception) -> Problem | None:
    """Turn what went wrong into the refusal the client reads; None where trying again later is better."""
    if isinstance(error, Problem):
        return None if error.slug == "overloaded" else error
    if isinstance(error, RequestValidationError):
        return validation_problem(error)
    if isinstance(error, DBAPIError):
        return None
    log.error("job_failed", exc_info=error)
    return Problem("internal", "The job failed on our side and nothing was stored. Report the trace id.")
