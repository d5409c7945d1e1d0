"""Tenants and keys: make, list, rotate, revoke. Every change is audited in its own transaction."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from app.access import audit, keys, quotas, repository
from app.access.keys import ApiKey, Peppers
from app.access.principal import SCOPES, TENANT_SCOPES, Principal
from app.access.repository import Tenant
from app.foundation.identifiers import new_id
from app.foundation.problems import FieldError, NotFound, Problem

USAGE_PERIOD = timedelta(days=30)
Used = dict[str, int]
# A key is written to at most once in this time, so that reading with it does not become writing.
LAST_USED_STEP = timedelta(minutes=5)


def create_key(
    connection: Connection,
    *,
    principal: Principal,
    name: str,
    scopes: Sequence[str],
    now: datetime,
    peppers: Peppers,
    expires_at: datetime | None = None,
    allowed_networks: Sequence[str] = (),
    replaces_id: str | None = None,
) -> tuple[ApiKey, str]:
    """Create a key and return it with the text the caller sends, which is told this once."""
    _check_key(principal, scopes, expires_at, now)
    if repository.find_tenant(connection, principal.tenant_id) is None:
        _check_first_key(scopes, expires_at)
        _adopt_loopback_tenant(connection, principal, now)
    prefix, secret, text = keys.new_secret()
    pepper_id, pepper = peppers[0]
    key = ApiKey(
        tenant_id=principal.tenant_id,
        id=new_id("key"),
        prefix=prefix,
        name=name,
        secret_hmac=keys.secret_hmac(secret, pepper),
        pepper_id=pepper_id,
        scopes=tuple(sorted(set(scopes))),
        allowed_networks=_networks(allowed_networks),
        created_by=principal.actor,
        created_at=now,
        expires_at=expires_at,
        revoked_at=None,
        last_used_at=None,
        replaces_id=replaces_id,
    )
    repository.insert_key(connection, key)
    details = {"name": name, "scopes": list(key.scopes), "prefix": prefix}
    audit.record(connection, principal=principal, at=now, action="key.create", subject=key.id, details=details)
    return key, text


def _check_key(principal: Principal, scopes: Sequence[str], expires_at: datetime | None, now: datetime) -> None:
    unknown = sorted(set(scopes) - SCOPES)
    if unknown or not scopes:
        message = f"unknown scopes {', '.join(unknown)}; known are {', '.join(sorted(SCOPES))}" if unknown else "empty"
        raise _field("/scopes", "scope_unknown", message)
    missing = sorted(set(scopes) - principal.scopes)
    if missing:
        raise Problem(
            "insufficient-scope",
            f"Nobody gives away a scope they do not have: {', '.join(missing)}. Leave it out, or ask who has it.",
            required_scopes=missing,
        )
    if expires_at is not None and expires_at <= now:
        raise _field("/expires_at", "in_the_past", "lies in the past; give a later time or leave it out")


def _check_first_key(scopes: Sequence[str], expires_at: datetime | None) -> None:
    """The first key ends the loopback default, and nobody gives away a scope they lack: what it lacks is lost."""
    missing = sorted(TENANT_SCOPES - set(scopes))
    if missing:
        message = "must be all those of a tenant: the first key ends the loopback default, and nobody could give later"
        raise _field("/scopes", "first_key", f"{message} what it lacks, {', '.join(missing)}; narrower keys come next")
    if expires_at is not None:
        message = "must be left out: the first key ends the loopback default, and after it nobody could make another"
        raise _field("/expires_at", "first_key", f"{message}; keys that end come next")


def _networks(networks: Sequence[str]) -> tuple[str, ...]:
    try:
        return keys.checked_networks(networks)
    except ValueError as error:
        raise _field(
            "/allowed_networks", "network_invalid", f"{error}; write 203.0.113.0/24 or 2001:db8::/32"
        ) from error


def _field(pointer: str, code: str, message: str) -> Problem:
    field = FieldError(code=code, message=message, pointer=pointer)
    return Problem("validation-failed", f"{pointer} {message}.", errors=[field], pointer=pointer)


def _adopt_loopback_tenant(connection: Connection, principal: Principal, now: datetime) -> None:
    """The loopback tenant becomes a real one when its first key is made; its quotes stay its own."""
    repository.insert_tenant(
        connection,
        Tenant(
            tenant_id=principal.tenant_id,
            name="Loopback",
            default_currency=principal.default_currency,
            requests_per_minute=None,
            created_at=now,
        ),
    )


def _own_key(connection: Connection, principal: Principal, key_id: str) -> ApiKey:
    key = repository.find_key(connection, principal.tenant_id, key_id)
    if key is None:
        raise NotFound("API key")
    return key


def find_key(connection: Connection, *, principal: Principal, key_id: str) -> ApiKey:
    return _own_key(connection, principal, key_id)


def key_holds(connection: Connection, principal: Principal, now: datetime) -> bool:
    """Whether the key a caller came with still opens anything; who came without a key is not asked for one."""
    if principal.key_id is None:
        return True
    key = repository.find_key(connection, principal.tenant_id, principal.key_id)
    return key is not None and key.is_active(now)


def list_keys(
    connection: Connection, *, principal: Principal, after: tuple[datetime, str] | None, limit: int
) -> list[ApiKey]:
    """Return the tenant's keys, newest first, revoked and expired ones included."""
    return repository.list_keys(connection, principal.tenant_id, after=after, limit=limit)


def revoke_key(connection: Connection, *, principal: Principal, key_id: str, now: datetime) -> ApiKey:
    """End a key at once; doing it twice is no error."""
    key = _own_key(connection, principal, key_id)
    if key.revoked_at is not None:
        return key
    repository.update_key(connection, principal.tenant_id, key_id, revoked_at=now)
    audit.record(connection, principal=principal, at=now, action="key.revoke", subject=key_id)
    return replace(key, revoked_at=now)


def rotate_key(
    connection: Connection, *, principal: Principal, key_id: str, grace: timedelta, now: datetime, peppers: Peppers
) -> tuple[ApiKey, str]:
    """Make a successor with the same rights; the old key works until the grace period ends."""
    old = _own_key(connection, principal, key_id)
    if not old.is_active(now):
        raise Problem("conflict", "The key was revoked or has expired. Create a new one instead.")
    ends_at = min(now + grace, old.expires_at) if old.expires_at is not None else now + grace
    repository.update_key(connection, principal.tenant_id, key_id, expires_at=ends_at)
    return create_key(
        connection,
        principal=principal,
        name=old.name,
        scopes=old.scopes,
        now=now,
        peppers=peppers,
        expires_at=old.expires_at,
        allowed_networks=old.allowed_networks,
        replaces_id=old.id,
    )


def authenticate_key(
    connection: Connection, text: str, *, now: datetime, address: str | None, peppers: Peppers
) -> tuple[ApiKey, Tenant] | None:
    """Return the key and its tenant, or nothing, whatever the reason; run as the system."""
    parts = keys.split_key(text)
    if parts is None:
        return None
    prefix, secret = parts
    key = repository.find_key_by_prefix(connection, prefix)
    if not keys.matches(key, secret, peppers) or key is None:
        return None
    tenant = repository.find_tenant(connection, key.tenant_id)
    if tenant is None or tenant.closed_at is not None or not key.is_active(now) or not key.admits(address):
        return None
    return key, tenant


def needs_touch(key: ApiKey, now: datetime, peppers: Peppers) -> bool:
    """Tell whether the key's last use is out of date, or its hash stands under a pepper that is being retired."""
    stale = key.last_used_at is None or now - key.last_used_at >= LAST_USED_STEP
    return stale or key.pepper_id != peppers[0][0]


def touch_key(connection: Connection, key: ApiKey, text: str, *, now: datetime, peppers: Peppers) -> None:
    """Note the use of a key, and hash it again under the newest pepper: rotation locks nobody out."""
    parts = keys.split_key(text)
    if parts is None:
        return
    pepper_id, pepper = peppers[0]
    hashed = keys.secret_hmac(parts[1], pepper)
    repository.update_key(connection, key.tenant_id, key.id, last_used_at=now, pepper_id=pepper_id, secret_hmac=hashed)


def find_tenant(connection: Connection, tenant_id: str) -> Tenant | None:
    return repository.find_tenant(connection, tenant_id)


def keys_exist(connection: Connection, now: datetime) -> bool:
    return repository.count_active_keys(connection, now) > 0


def usage(connection: Connection, tenant_id: str, now: datetime) -> dict[str, int]:
    """Count what the tenant did in the last 30 days, from its audit trail."""
    return repository.count_actions(connection, tenant_id, now - USAGE_PERIOD)


def usage_by_day(connection: Connection, tenant_id: str, now: datetime) -> tuple[dict[str, dict[str, int]], Used]:
    """Return requests, estimates and quotes of each day of the last 30, and what was used of each quota."""
    days: dict[str, dict[str, int]] = {}
    used = {}
    since = (now - USAGE_PERIOD).date().isoformat()
    for measure, period, number in repository.uses(connection, tenant_id, since):
        if period == quotas.TOTAL:
            used[measure] = number
        else:
            days.setdefault(period, {})[measure] = number
    today = days.get(now.date().isoformat(), {})
    used["quotes_per_day"] = today.get("quotes_per_day", 0)
    return days, used
