"""Requests and estimates by tenant and day: counted in the process, added to the database now and then.

Counting a request with a statement would cost more than many a request. What a process has counted since it last wrote
is lost when it is killed; quotas do not rest on it (see ``quotas``).
"""

import asyncio
from collections import Counter
from contextlib import suppress

import structlog
from sqlalchemy import Connection

from app.access import repository
from app.foundation.clock import Clock
from app.foundation.database import SYSTEM, Database

log = structlog.get_logger()

FLUSH_S = 10.0
REQUESTS, ESTIMATES = "requests", "estimates"
Place = tuple[str, str, str]


class UsageMeter:
    """One per process."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._counted: Counter[Place] = Counter()
        self._task: asyncio.Task[None] | None = None

    def count(self, tenant_id: str, measure: str) -> None:
        """Note one use; costs no statement."""
        self._counted[tenant_id, measure, self._clock.now().date().isoformat()] += 1

    def start(self) -> None:
        """Write every few seconds from here on."""
        self._task = asyncio.create_task(self._run(), name="usage meter")

    async def stop(self) -> None:
        """Write what is left and end."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._flush_quietly()

    async def flush(self) -> None:
        """Add what was counted to the database."""
        if not self._counted:
            return
        counted, self._counted = self._counted, Counter()

        def work(connection: Connection) -> None:
            for (tenant_id, measure, period), number in sorted(counted.items()):
                repository.count_use(connection, tenant_id, measure, period, number=number, limit=None)

        try:
            await self._database.transact(work, tenant=SYSTEM)
        except BaseException:
            self._counted.update(counted)
            raise

    async def _flush_quietly(self) -> None:
        try:
            await self.flush()
        except Exception:
            log.exception("usage_not_written")

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(FLUSH_S)
            await self._flush_quietly()
