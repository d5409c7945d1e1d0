"""Statements on the foundation's tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, delete, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.foundation.tables import idempotency_keys as keys


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """A stored Idempotency-Key: in progress under a lease, or done with its answer."""

    fingerprint_sha256: str
    state: str
    created_at: datetime
    expires_at: datetime
    lease_until: datetime | None
    lease_owner: str | None
    status: int | None
    headers: Mapping[str, str] | None
    body: bytes | None


def find_key(connection: Connection, tenant_id: str, key_sha256: str) -> KeyRecord | None:
    row = connection.execute(
        select(
            keys.c.fingerprint_sha256,
            keys.c.state,
            keys.c.created_at,
            keys.c.expires_at,
            keys.c.lease_until,
            keys.c.lease_owner,
            keys.c.status,
            keys.c.headers,
            keys.c.body,
        ).where(keys.c.tenant_id == tenant_id, keys.c.key_sha256 == key_sha256)
    ).one_or_none()
    return None if row is None else KeyRecord(**row._mapping)


def claim_key(
    connection: Connection,
    tenant_id: str,
    key_sha256: str,
    *,
    fingerprint_sha256: str,
    now: datetime,
    expires_at: datetime,
    lease_until: datetime | None,
    lease_owner: str | None,
) -> bool:
    """Insert the key as in progress; false when it exists. Waits for a concurrent insert of the same key to end."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(keys).values(
        tenant_id=tenant_id,
        key_sha256=key_sha256,
        fingerprint_sha256=fingerprint_sha256,
        state="in_progress",
        created_at=now,
        expires_at=expires_at,
        lease_until=lease_until,
        lease_owner=lease_owner,
    )
    # The row count of an INSERT is not told by every driver; a returned row is.
    claimed = connection.execute(statement.on_conflict_do_nothing().returning(keys.c.key_sha256))
    return claimed.first() is not None


def take_over_key(
    connection: Connection, tenant_id: str, key_sha256: str, *, now: datetime, lease_until: datetime, lease_owner: str
) -> bool:
    """Take an abandoned key whose lease has run out."""
    statement = (
        update(keys)
        .where(
            keys.c.tenant_id == tenant_id,
            keys.c.key_sha256 == key_sha256,
            keys.c.state == "in_progress",
            keys.c.lease_until <= now,
        )
        .values(lease_until=lease_until, lease_owner=lease_owner)
    )
    return connection.execute(statement).rowcount == 1


def renew_lease(
    connection: Connection, tenant_id: str, key_sha256: str, *, lease_until: datetime, lease_owner: str
) -> None:
    """Keep a key for its owner; does nothing where somebody else took it over."""
    connection.execute(
        update(keys)
        .where(
            keys.c.tenant_id == tenant_id,
            keys.c.key_sha256 == key_sha256,
            keys.c.state == "in_progress",
            keys.c.lease_owner == lease_owner,
        )
        .values(lease_until=lease_until)
    )


def complete_key(
    connection: Connection,
    tenant_id: str,
    key_sha256: str,
    *,
    lease_owner: str | None,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
) -> bool:
    """Store the answer; false when somebody else took the key over meanwhile."""
    statement = (
        update(keys)
        .where(
            keys.c.tenant_id == tenant_id,
            keys.c.key_sha256 == key_sha256,
            keys.c.state == "in_progress",
            keys.c.lease_owner.is_not_distinct_from(lease_owner),
        )
        .values(state="done", status=status, headers=dict(headers), body=body, lease_until=None, lease_owner=None)
    )
    return connection.execute(statement).rowcount == 1


def release_key(connection: Connection, tenant_id: str, key_sha256: str, *, lease_owner: str | None) -> None:
    """Forget a key whose request was refused before it had an effect worth remembering."""
    connection.execute(
        delete(keys).where(
            keys.c.tenant_id == tenant_id,
            keys.c.key_sha256 == key_sha256,
            keys.c.state == "in_progress",
            keys.c.lease_owner.is_not_distinct_from(lease_owner),
        )
    )


def forget_expired_keys(connection: Connection, now: datetime, tenant_id: str | None = None) -> int:
    """Delete the keys past their time to live, of one tenant or (as the system) of all."""
    statement = delete(keys).where(keys.c.expires_at <= now)
    if tenant_id is not None:
        statement = statement.where(keys.c.tenant_id == tenant_id)
    return connection.execute(statement).rowcount
