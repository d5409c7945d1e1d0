"""Statements on jobs."""

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select, update

from app.jobs.job import OPEN, Job, Status, caller_json, caller_of
from app.jobs.tables import jobs

_COLUMNS = tuple(getattr(jobs.c, name) for name in Job.__slots__)


def insert_job(connection: Connection, job: Job) -> None:
    values = {name: getattr(job, name) for name in Job.__slots__}
    values |= {"arguments": json.dumps(dict(job.arguments)), "caller": caller_json(job.caller)}
    connection.execute(insert(jobs).values(values))


def find_job(connection: Connection, tenant_id: str, job_id: str, *, lock: bool = False) -> Job | None:
    statement = select(*_COLUMNS).where(jobs.c.tenant_id == tenant_id, jobs.c.id == job_id)
    row = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
    return None if row is None else _job(row)


def count_open(connection: Connection, tenant_id: str) -> int:
    statement = select(func.count()).where(jobs.c.tenant_id == tenant_id, jobs.c.status.in_(OPEN))
    count: int = connection.execute(statement).scalar_one()
    return count


def _is_due(now: datetime) -> Any:
    abandoned = and_(jobs.c.status == Status.RUNNING, jobs.c.lease_until <= now)
    return or_(jobs.c.status == Status.QUEUED, abandoned)


def any_due(connection: Connection, now: datetime) -> bool:
    return connection.execute(select(jobs.c.id).where(_is_due(now)).limit(1)).first() is not None


def due(connection: Connection, now: datetime, limit: int) -> list[Job]:
    """Hold the oldest jobs that wait or were abandoned, passing by those another worker holds."""
    statement = select(*_COLUMNS).where(_is_due(now)).order_by(jobs.c.created_at, jobs.c.id).limit(limit)
    return [_job(row) for row in connection.execute(statement.with_for_update(skip_locked=True))]


def change(connection: Connection, job: Job, **values: Any) -> None:
    """Write to a job whose row is held."""
    connection.execute(
        update(jobs)
        .where(jobs.c.tenant_id == job.tenant_id, jobs.c.id == job.id)
        .values({name: str(value) if isinstance(value, Status) else value for name, value in values.items()})
    )


def renew(connection: Connection, tenant_id: str, job_id: str, *, owner: str, lease_until: datetime) -> bool:
    """Keep the lease; false when the job is no longer this worker's."""
    statement = (
        update(jobs)
        .where(
            jobs.c.tenant_id == tenant_id,
            jobs.c.id == job_id,
            jobs.c.status == Status.RUNNING,
            jobs.c.lease_owner == owner,
        )
        .values(lease_until=lease_until)
    )
    return connection.execute(statement).rowcount == 1


def forget_finished(connection: Connection, before: datetime) -> int:
    return connection.execute(delete(jobs).where(jobs.c.finished_at < before)).rowcount


def _job(row: Row[Any]) -> Job:
    values = dict(row._mapping)
    problem = values["problem"]
    read = {
        "arguments": json.loads(values["arguments"]),
        "caller": caller_of(values["caller"]),
        "status": Status(values["status"]),
        "problem": None if problem is None else json.loads(problem),
    }
    return Job(**{**values, **read})
