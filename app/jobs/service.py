"""What routes, the worker and other rooms may ask about jobs. Every function takes the connection, none commits."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from app.access import audit
from app.access import service as access
from app.access.principal import Principal
from app.events import outbox
from app.foundation.clock import Clock
from app.foundation.problems import FieldError, NotFound, Problem
from app.foundation.telemetry import current_trace_id
from app.jobs import repository
from app.jobs.job import OPEN, Job, Kinds, Status, Work

__all__ = ["Job", "Kinds", "Status", "Work", "cancel", "claim", "fail", "find", "finish", "problem_of", "submit"]

# A worker that says nothing for so long has stopped: another one takes its job.
LEASE = timedelta(seconds=15)
MOST_ATTEMPTS = 3
MOST_OPEN_JOBS = 100
KEPT = timedelta(days=30)


class LostLeaseError(Exception):
    """The job is no longer this worker's: cancelled, or taken over because the worker was silent too long."""


def submit(
    connection: Connection, principal: Principal, work: Work, *, job_id: str, clock: Clock, owner: str | None = None
) -> Job:
    """Accept work: queued for any worker, or as running where ``owner`` has begun to calculate already."""
    now = clock.database_now(connection)
    if repository.count_open(connection, principal.tenant_id) >= MOST_OPEN_JOBS:
        raise _too_many()
    job = Job(
        tenant_id=principal.tenant_id,
        id=job_id,
        kind=work.kind,
        arguments=work.arguments(),
        caller=principal,
        trace_id=current_trace_id(),
        status=Status.QUEUED if owner is None else Status.RUNNING,
        attempts=0 if owner is None else 1,
        lease_owner=owner,
        lease_until=None if owner is None else now + LEASE,
        result_url=None,
        problem=None,
        created_at=now,
        started_at=None if owner is None else now,
        finished_at=None,
    )
    repository.insert_job(connection, job)
    return job


def find(connection: Connection, tenant_id: str, job_id: str) -> Job:
    """Return a job of the tenant."""
    job = repository.find_job(connection, tenant_id, job_id)
    if job is None:
        raise NotFound("job")
    return job


def cancel(connection: Connection, principal: Principal, job_id: str, *, clock: Clock) -> Job:
    """End a job before it has an effect; doing it twice is no error, and what is finished stays."""
    job = repository.find_job(connection, principal.tenant_id, job_id, lock=True)
    if job is None:
        raise NotFound("job")
    if job.status is Status.CANCELLED:
        return job
    if job.status not in OPEN:
        raise Problem(
            "invalid-transition",
            f"The job is {job.status}, so there is nothing left to cancel. Its result stands.",
            current_status=job.status,
            allowed_actions=[],
        )
    now = clock.database_now(connection)
    audit.record(connection, principal=principal, at=now, action="job.cancel", subject=job.id)
    return _end(connection, job, now, status=Status.CANCELLED)


def claim(connection: Connection, *, owner: str, limit: int, clock: Clock) -> list[Job]:
    """Take jobs that wait or whose worker fell silent; run as the system, by any number of workers at once."""
    now = clock.database_now(connection)
    claimed = []
    for job in repository.due(connection, now, limit):
        if job.attempts >= MOST_ATTEMPTS:
            _end(connection, job, now, status=Status.FAILED, problem=_given_up())
            continue
        values: dict[str, Any] = {"status": Status.RUNNING, "attempts": job.attempts + 1, "lease_owner": owner}
        values |= {"lease_until": now + LEASE, "started_at": job.started_at or now}
        repository.change(connection, job, **values)
        claimed.append(replace(job, **values))
    return claimed


def renew(connection: Connection, job: Job, *, owner: str, clock: Clock) -> bool:
    """Say that the worker is alive; false when the job was cancelled or taken over."""
    until = clock.database_now(connection) + LEASE
    return repository.renew(connection, job.tenant_id, job.id, owner=owner, lease_until=until)


def finish(connection: Connection, job: Job, work: Work, result: Any, *, owner: str, clock: Clock) -> Job:
    """Store the result and end the job, both or neither: the effect happens once, whoever calculated it.

    Raises
    ------
    Problem
        ``unauthenticated`` where the caller's key was revoked or has expired since: nothing is stored then.
    """
    held = _held(connection, job, owner)
    now = clock.database_now(connection)
    if not access.key_holds(connection, held.caller, now):
        raise _key_ended()
    answer = work.store(connection, result)
    return _end(connection, held, now, status=Status.DONE, result_url=answer.headers["Location"])


def fail(connection: Connection, job: Job, problem: Problem, *, owner: str, clock: Clock) -> Job:
    """End a job with the refusal that a request answered at once would have got."""
    held = _held(connection, job, owner)
    return _end(connection, held, clock.database_now(connection), status=Status.FAILED, problem=problem)


def problem_of(document: Mapping[str, Any]) -> Problem:
    """Read the refusal a failed job was ended with."""
    errors = [FieldError(**row) for row in document["errors"]]
    known = {name: document[name] for name in ("slug", "detail", "status")}
    return Problem(**known, errors=errors, **document["extensions"])


def forget_old(connection: Connection, *, clock: Clock) -> int:
    """Delete what ended long ago; run as the system."""
    return repository.forget_finished(connection, clock.database_now(connection) - KEPT)


def _key_ended() -> Problem:
    return Problem(
        "unauthenticated",
        "The API key that asked for this job was revoked or expired before the job ended, so nothing was stored. Ask "
        "again with a key that is valid.",
    )


def _held(connection: Connection, job: Job, owner: str) -> Job:
    held = repository.find_job(connection, job.tenant_id, job.id, lock=True)
    if held is None or held.status is not Status.RUNNING or held.lease_owner != owner:
        raise LostLeaseError(job.id)
    return held


def _end(
    connection: Connection,
    job: Job,
    now: datetime,
    *,
    status: Status,
    result_url: str | None = None,
    problem: Problem | None = None,
) -> Job:
    document = None if problem is None else _document(problem)
    values: dict[str, Any] = {"status": status, "finished_at": now, "result_url": result_url}
    values |= {"lease_owner": None, "lease_until": None}
    text = None if document is None else json.dumps(document, default=str)
    repository.change(connection, job, **values, problem=text)
    outbox.announce(
        connection,
        tenant_id=job.tenant_id,
        event_type="job.completed",
        subject=job.id,
        at=now,
        data={"job_id": job.id, "kind": job.kind, "status": str(status), "result_url": result_url},
    )
    return replace(job, **values, problem=document)


def _document(problem: Problem) -> dict[str, Any]:
    return {
        "slug": problem.slug,
        "detail": problem.detail,
        "status": problem.status,
        "errors": [error.as_json() for error in problem.errors],
        "extensions": problem.extensions,
    }


def _too_many() -> Problem:
    problem = Problem(
        "quota-exceeded",
        f"{MOST_OPEN_JOBS} jobs of this tenant are waiting or running already. Wait for some to end, then try again.",
        headers={"Retry-After": "5"},
    )
    problem.extensions["violated-policies"] = ["open-jobs"]
    return problem


def _given_up() -> Problem:
    return Problem(
        "internal",
        f"The calculation stopped its process {MOST_ATTEMPTS} times and was given up; nothing was stored. "
        "Ask for less at a time, or report the trace id.",
    )
