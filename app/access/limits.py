"""Requests a minute and tenant: counted in the process on SQLite, shared by all workers on PostgreSQL.

On PostgreSQL a worker takes requests from the shared window in small lots and spends them itself, so that most
requests cost no statement. The sum of all lots never passes the limit; a worker that stops may leave one unused.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from app.access import repository
from app.foundation.clock import Clock
from app.foundation.database import Database

WINDOW = timedelta(minutes=1)
LOTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Whether a request may pass, and what the RateLimit fields say."""

    allowed: bool
    limit: int
    remaining: int
    reset_s: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"default";q={self.limit};w={int(WINDOW.total_seconds())}',
            "RateLimit": f'"default";r={max(self.remaining, 0)};t={self.reset_s}',
        }


@dataclass(slots=True)
class _Window:
    started_at: datetime
    used: int = 0
    lot: int = 0
    fetching: asyncio.Lock = field(default_factory=asyncio.Lock)


class RateLimiter:
    """Takes requests from a tenant's window."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._windows: dict[str, _Window] = {}

    async def take(self, tenant_id: str, *, limit: int) -> Decision:
        """Count one request."""
        now = self._clock.now()
        started_at = now.replace(second=0, microsecond=0)
        window = self._windows.get(tenant_id)
        if window is None or window.started_at != started_at:
            window = self._windows[tenant_id] = _Window(started_at)
        if self._database.is_sqlite:
            allowed = window.used < limit
            window.used += int(allowed)
        else:
            allowed = await self._spend(tenant_id, window, limit)
        remaining = limit - window.used + window.lot
        reset_s = max(1, int((started_at + WINDOW - now).total_seconds()))
        return Decision(allowed=allowed, limit=limit, remaining=remaining, reset_s=reset_s)

    async def _spend(self, tenant_id: str, window: _Window, limit: int) -> bool:
        """Spend one request of the lot; who finds it empty fetches the next, and the others wait for that one."""
        if window.lot == 0:
            async with window.fetching:
                if window.lot == 0 and not await self._fetch_lot(tenant_id, window, limit):
                    return False
                window.lot -= 1
                return True
        window.lot -= 1
        return True

    async def _fetch_lot(self, tenant_id: str, window: _Window, limit: int) -> bool:
        for number in dict.fromkeys((max(1, limit // LOTS), 1)):
            used = await self._database.transact(
                lambda c, number=number: repository.take_requests(  # type: ignore[misc]
                    c, tenant_id, window.started_at, number=number, limit=limit
                ),
                tenant=tenant_id,
            )
            if used is not None:
                window.used = used
                window.lot += number
                return True
        window.used = limit
        return window.lot > 0
