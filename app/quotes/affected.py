"""What a catalog revision would move: open quotes priced at another one, repriced there without keeping anything.

The figures are those ``reprice`` would give at that revision today, engine included, so the two never disagree; the
work is bounded by the page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from app.catalog import service as catalog
from app.foundation.problems import Problem
from app.quotes import repository
from app.quotes.comparing import drift_view
from app.quotes.composing import compose
from app.quotes.content import open_content
from app.quotes.costs import without_causes
from app.quotes.errors import no_revision
from app.quotes.lifecycle import Status
from app.quotes.preparing import Plan, plan_revision
from app.quotes.records import Revision
from app.quotes.separating import between_draft
from app.quotes.validity import stored_validity

# What can still become a contract, or be one offer away from it.
OPEN = (Status.DRAFT, Status.IN_REVIEW, Status.APPROVED, Status.ISSUED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An open revision and its calculation at the asked catalog revision."""

    revision: Revision
    number: str | None
    status: Status
    plan: Plan | Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which catalog revision is asked about, and the open revisions of one page."""

    catalog_revision: str
    subjects: Sequence[Subject]


def read_affected(
    connection: Connection,
    tenant_id: str,
    *,
    catalog_revision: str | None,
    pinned_to: str | None,
    now: datetime,
    today: date,
    before_id: str | None,
    limit: int,
) -> Question:
    """Read open revisions priced at another catalog revision, newest first, and what is needed to reprice them.

    ``catalog_revision`` None = the newest; ``pinned_to`` narrows to revisions priced at that one.
    """
    target = catalog.snapshot(connection, catalog_revision).revision_id
    pinned = None if pinned_to is None else catalog.snapshot(connection, pinned_to).revision_id
    heads = repository.open_heads_not_at(
        connection, tenant_id, target, statuses=OPEN, now=now, pinned_to=pinned, before_id=before_id, limit=limit
    )
    subjects = []
    for head in heads:
        revision = repository.find_revision_by_id(connection, tenant_id, head.id)
        quote = repository.find_quote(connection, tenant_id, head.quote_id)
        if revision is None or quote is None:
            raise no_revision()
        plan = _plan(connection, revision, target, today)
        subjects.append(Subject(revision=revision, number=quote.number, status=head.status_at(now), plan=plan))
    return Question(catalog_revision=target, subjects=subjects)


def _plan(connection: Connection, revision: Revision, target: str, today: date) -> Plan | Problem:
    try:
        plan = plan_revision(connection, revision, {}, pricing="reprice", today=today, catalog_revision=target)
    except Problem as problem:
        return problem
    assert plan is not None
    return plan


def answer(subject: Subject, target: str, *, with_costs: bool) -> dict[str, Any]:
    """Reprice one revision and say by how much its total would move and why; slow, touches no database."""
    head = subject.revision.head
    row: dict[str, Any] = {
        "quote_id": head.quote_id,
        "number": subject.number,
        "revision": head.n,
        "revision_id": head.id,
        "status": subject.status,
        "catalog_revision": head.catalog_revision,
        "catalog_diff": f"/v1/catalog/revisions/{head.catalog_revision}/diff/{target}",
    }
    if isinstance(subject.plan, Problem):
        return {**row, "moved": None, "drift": _refused(subject.plan), "supply": []}
    try:
        prepared = subject.plan.run()
    except Problem as problem:
        return {**row, "moved": None, "drift": _refused(problem), "supply": []}
    before = open_content(subject.revision.content_text)
    composed = compose(
        prepared.spec,
        prepared.calculation,
        validity=stored_validity(before),
        tenant_id=head.tenant_id,
        selections=prepared.selections,
    )
    between = between_draft(subject.revision, prepared, subject.plan.calculator)
    drift = drift_view(before, composed.content, between)
    moved = drift["before"] != drift["after"] if drift["available"] else None
    return {
        **row,
        "moved": moved,
        "drift": drift if with_costs else without_causes(drift),
        "supply": list(prepared.supply),
    }


def _refused(problem: Problem) -> dict[str, Any]:
    return {"available": False, "reason": problem.detail, "slug": problem.kind.slug}
