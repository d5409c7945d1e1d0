"""A job as it is kept and shown, and what a room gives to have work run as one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from sqlalchemy import Connection

from app.access.principal import Principal
from app.foundation.clock import Clock
from app.foundation.idempotency import Answer


class Status(StrEnum):
    """Where a job stands."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


OPEN = (Status.QUEUED, Status.RUNNING)


class Work(Protocol):
    """A request in three parts: what it reads, what it calculates outside any transaction, what it stores."""

    @property
    def kind(self) -> str:
        """Name under which the work can be made again."""
        ...

    def arguments(self) -> Mapping[str, Any]:
        """JSON-able: all that is needed, beside the caller, to make the work again."""
        ...

    def look_up(self, connection: Connection) -> Callable[[], Any]:
        """Read everything the calculation needs, and return it; raises a ``Problem`` where it cannot be done."""
        ...

    def store(self, connection: Connection, result: Any) -> Answer:
        """Keep the result; the answer's Location is where it can be read."""
        ...


# Makes work again from its caller and arguments; by the kind of the work.
Kinds = Mapping[str, Callable[[Principal, Clock, Mapping[str, Any]], Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request that was accepted. It runs with the rights its caller had then."""

    tenant_id: str
    id: str
    kind: str
    arguments: Mapping[str, Any]
    caller: Principal
    trace_id: str | None
    status: Status
    attempts: int
    lease_owner: str | None
    lease_until: datetime | None
    result_url: str | None
    problem: Mapping[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    @property
    def path(self) -> str:
        """Where the job is read."""
        return f"/v1/jobs/{self.id}"


def caller_json(principal: Principal) -> dict[str, Any]:
    """Write down who asked."""
    kept = ("tenant_id", "actor", "key_id", "on_behalf_of", "is_machine", "may_self_approve", "default_currency")
    return {**{name: getattr(principal, name) for name in kept}, "scopes": sorted(principal.scopes)}


def caller_of(document: Mapping[str, Any]) -> Principal:
    """Read who asked."""
    return Principal(**{**document, "scopes": frozenset(document["scopes"])})
