"""The audit trail: append-only, one hash chain a tenant, written in the transaction of the change it records."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.access import audit_repository as repository
from app.access.audit_entry import GENESIS_HASH, AuditEntry
from app.access.principal import Principal
from app.foundation.telemetry import current_trace_id

__all__ = ["AuditEntry", "AuditVerification", "entries", "record", "verify"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditVerification:
    """Outcome of walking a chain. ``broken_at`` is the first sequence that does not fit, and why."""

    match: bool
    entries: int
    head_hash: str
    broken_at: int | None = None
    reason: str | None = None


def record(
    connection: Connection,
    *,
    principal: Principal,
    at: datetime,
    action: str,
    subject: str,
    before_sha256: str | None = None,
    after_sha256: str | None = None,
    reason: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Append an entry. ``details`` must be JSON-able and hold no secret; the entry cannot be changed afterwards."""
    sequence, previous_hash = repository.lock_head(connection, principal.tenant_id)
    unsealed = AuditEntry(
        tenant_id=principal.tenant_id,
        sequence=sequence + 1,
        at=at,
        actor=principal.actor,
        on_behalf_of=principal.on_behalf_of,
        key_id=principal.key_id,
        trace_id=current_trace_id(),
        action=action,
        subject=subject,
        before_sha256=before_sha256,
        after_sha256=after_sha256,
        reason=reason,
        details=details or {},
        previous_hash=previous_hash,
        entry_hash=GENESIS_HASH,
    )
    entry = replace(unsealed, entry_hash=unsealed.expected_hash())
    repository.append(connection, entry)
    return entry


def entries(
    connection: Connection, tenant_id: str, *, subject: str | None = None, after_sequence: int = 0, limit: int = 200
) -> list[AuditEntry]:
    """Return the tenant's entries in order, of one subject or of all."""
    return repository.entries(connection, tenant_id, subject=subject, after_sequence=after_sequence, limit=limit)


def verify(connection: Connection, tenant_id: str) -> AuditVerification:
    """Walk the whole chain: every hash, every link, no gap, and the head that is kept apart."""
    head_sequence, head_hash = repository.head(connection, tenant_id)
    previous, sequence = GENESIS_HASH, 0

    def broken(at: int, reason: str) -> AuditVerification:
        return AuditVerification(match=False, entries=sequence, head_hash=head_hash, broken_at=at, reason=reason)

    for entry in repository.walk(connection, tenant_id):
        if entry.sequence != sequence + 1:
            return broken(sequence + 1, "the entry is missing")
        if entry.previous_hash != previous:
            return broken(entry.sequence, "the entry does not follow the one before it")
        if entry.entry_hash != entry.expected_hash():
            return broken(entry.sequence, "the entry was changed after it was written")
        previous, sequence = entry.entry_hash, entry.sequence
    if (sequence, previous) != (head_sequence, head_hash):
        return broken(sequence + 1, "the chain ends before its head")
    return AuditVerification(match=True, entries=sequence, head_hash=head_hash)
