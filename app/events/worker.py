"""The background work of a process: number committed events, send what is due."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import structlog

from app.access import audit_heads
from app.events import outbox, repository, signing, webhook_repository, webhooks
from app.events.egress import Egress
from app.foundation.clock import Clock
from app.foundation.database import SYSTEM, Database
from app.foundation.repository import forget_expired_keys

log = structlog.get_logger()

POLL_S = 0.5
TIDY_EVERY = timedelta(hours=1)
SEND_LIMIT = 20


class EventWorker:
    """Publishes and delivers, once per process; several processes share the work without doing it twice."""

    def __init__(self, database: Database, clock: Clock, *, signing_key: bytes, egress: Egress) -> None:
        self._database = database
        self._clock = clock
        self._seal = signing.Seal(signing_key)
        self._signing_key = signing_key
        self.egress = egress
        self._tidied_at = datetime.min.replace(tzinfo=UTC)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="event worker")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self.egress.close()

    async def publish(self) -> int:
        """Number what was committed and queue its deliveries."""
        waiting = await self._database.read(lambda c: bool(repository.unpublished(c, 1)), tenant=SYSTEM)
        if not waiting:
            return 0
        now = self._clock.now()
        return await self._database.transact(lambda c: outbox.publish_pending(c, now=now), tenant=SYSTEM)

    async def deliver(self) -> int:
        """Send what is due and note the outcomes."""
        now = self._clock.now()
        if not await self._database.read(lambda c: webhook_repository.any_due(c, now), tenant=SYSTEM):
            return 0
        messages = await self._database.transact(
            lambda c: webhooks.claim_messages(c, now=now, limit=SEND_LIMIT, seal=self._seal), tenant=SYSTEM
        )
        await asyncio.gather(*(self._send(message) for message in messages))
        return len(messages)

    async def _send(self, message: webhooks.Message) -> None:
        at = self._clock.now()
        headers = signing.signed_headers(message.delivery.event_id, at, message.body, message.secrets)
        outcome = await self.egress.post(message.url, message.body, headers)
        now = self._clock.now()
        await self._database.transact(
            lambda c: webhooks.settle(c, message, outcome, now=now), tenant=message.delivery.tenant_id
        )

    async def tidy(self) -> None:
        """Once an hour: forget answers kept for retries past their time, sign the heads of chains that lack today's."""
        now = self._clock.now()
        if now - self._tidied_at < TIDY_EVERY:
            return
        self._tidied_at = now
        await self._database.transact(lambda c: forget_expired_keys(c, now), tenant=SYSTEM)
        await self._database.transact(
            lambda c: audit_heads.sign_day(c, now=now, signing_key=self._signing_key), tenant=SYSTEM
        )

    async def _run(self) -> None:
        while True:
            try:
                await self.tidy()
                worked = await self.publish() + await self.deliver()
            except Exception:
                log.exception("event_worker_failed")
                worked = 0
            if not worked:
                await asyncio.sleep(POLL_S)
