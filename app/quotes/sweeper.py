"""Writes down that offers have ended, so that their events go out. What readers see does not wait for it."""

import asyncio
from contextlib import suppress
from datetime import datetime

import structlog
from sqlalchemy import Connection

from app.foundation.clock import Clock
from app.foundation.database import SYSTEM, Database
from app.quotes import repository
from app.quotes.issuing import expire_overdue

log = structlog.get_logger()

PAUSE_S = 30.0
BATCH = 100


class Sweeper:
    """One per process; several do no harm, because every expiry is a guarded update."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="quote sweeper")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def sweep(self) -> int:
        """Expire what is overdue; tells how many."""
        if not await self._database.read(self._overdue, tenant=SYSTEM):
            return 0
        return await self._database.transact(
            lambda c: expire_overdue(c, self._clock, repository.overdue_heads(c, self._now(c), limit=BATCH)),
            tenant=SYSTEM,
        )

    def _overdue(self, connection: Connection) -> bool:
        return bool(repository.overdue_heads(connection, self._now(connection), limit=1))

    def _now(self, connection: Connection) -> datetime:
        return self._clock.database_now(connection)

    async def _run(self) -> None:
        while True:
            try:
                done = await self.sweep()
            except Exception:
                log.exception("quote_sweeper_failed")
                done = 0
            if done < BATCH:
                await asyncio.sleep(PAUSE_S)
