"""Who acts, when, and in which request: what every change of the room needs to know, and how it is made known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.access.principal import Principal
from app.foundation.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """The caller of one request."""

    principal: Principal
    clock: Clock
    trace_id: str | None = None

    @property
    def tenant_id(self) -> str:
        """Tenant of the caller."""
        return self.principal.tenant_id

    @property
    def actor(self) -> str:
        """Name under which the caller is recorded."""
        return self.principal.actor

    def now(self, connection: Connection) -> datetime:
        """Time of the database, the one clock that all hosts share."""
        return self.clock.database_now(connection)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One thing that happened to a revision: becomes one audit row and, where outsiders care, one event."""

    action: str
    quote_id: str
    revision_id: str
    n: int
    status: str
    at: datetime
    before_sha256: str | None
    after_sha256: str
    event: str | None = None
    reason: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
