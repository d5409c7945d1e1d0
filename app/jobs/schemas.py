"""The answer about a job."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.foundation.clock import rfc3339
from app.foundation.problems import problem_body
from app.jobs.job import Job
from app.jobs.service import problem_of


class JobLinks(BaseModel):
    """Where the job is read."""

    self: str


class JobView(BaseModel):
    """A request that is answered later."""

    id: str
    kind: str = Field(description="What is done: quote.create or quote.draft_revision.")
    status: Literal["queued", "running", "done", "failed", "cancelled"]
    attempts: int = Field(description="How often a worker began; more than one when a worker stopped half-way.")
    result_url: str | None = Field(description="Where the result is read, once the job is done.")
    problem: dict[str, Any] | None = Field(
        description="The problem (RFC 9457) that a request answered at once would have got, when the job failed.",
    )
    created_by: str
    created_at: str
    started_at: str | None
    finished_at: str | None
    links: JobLinks

    @classmethod
    def of(cls, job: Job, *, language: str, problems_url: str) -> "JobView":
        """Show a job; the problem's title in the reader's language."""
        problem = None
        if job.problem is not None:
            problem = problem_body(
                problem_of(job.problem),
                language=language,
                instance=job.path,
                trace_id=job.trace_id,
                problems_url=problems_url,
            )
        return cls(
            id=job.id,
            kind=job.kind,
            status=job.status.value,
            attempts=job.attempts,
            result_url=job.result_url,
            problem=problem,
            created_by=job.caller.actor,
            created_at=rfc3339(job.created_at),
            started_at=None if job.started_at is None else rfc3339(job.started_at),
            finished_at=None if job.finished_at is None else rfc3339(job.finished_at),
            links=JobLinks(self=job.path),
        )
