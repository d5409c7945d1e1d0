"""Statements on tenants, keys, share links and shared counters."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, Row, and_, delete, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from app.access.keys import ApiKey
from app.access.tables import api_keys, audit_entries, request_windows, share_links, tenants, usage_counters


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A customer of the service: the owner of quotes, keys and webhooks."""

    tenant_id: str
    name: str
    default_currency: str
    requests_per_minute: int | None
    created_at: datetime
    closed_at: datetime | None = None
    quotas: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLink:
    """A link that opens one revision until it expires or is revoked."""

    tenant_id: str
    id: str
    quote_id: str
    revision: int
    may_accept: bool
    created_by: str
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


def insert_tenant(connection: Connection, tenant: Tenant) -> None:
    connection.execute(insert(tenants).values(**asdict(tenant)))


def find_tenant(connection: Connection, tenant_id: str) -> Tenant | None:
    row = connection.execute(select(tenants).where(tenants.c.tenant_id == tenant_id)).one_or_none()
    return None if row is None else Tenant(**row._mapping)


def update_tenant(connection: Connection, tenant_id: str, **values: object) -> None:
    connection.execute(update(tenants).where(tenants.c.tenant_id == tenant_id).values(**values))


def page_of_tenants(connection: Connection, *, after_id: str, limit: int) -> list[Tenant]:
    statement = select(tenants).where(tenants.c.tenant_id > after_id).order_by(tenants.c.tenant_id).limit(limit)
    return [Tenant(**row._mapping) for row in connection.execute(statement)]


def all_tenants(connection: Connection) -> list[Tenant]:
    return [Tenant(**row._mapping) for row in connection.execute(select(tenants).order_by(tenants.c.tenant_id))]


def _key(row: Row[tuple[object, ...]]) -> ApiKey:
    values = dict(row._mapping)
    return ApiKey(
        **{**values, "scopes": tuple(values["scopes"]), "allowed_networks": tuple(values["allowed_networks"])}
    )


def insert_key(connection: Connection, key: ApiKey) -> None:
    values = asdict(key)
    values["scopes"], values["allowed_networks"] = list(key.scopes), list(key.allowed_networks)
    connection.execute(insert(api_keys).values(**values))


def find_key_by_prefix(connection: Connection, prefix: str) -> ApiKey | None:
    row = connection.execute(select(api_keys).where(api_keys.c.prefix == prefix)).one_or_none()
    return None if row is None else _key(row)


def find_key(connection: Connection, tenant_id: str, key_id: str) -> ApiKey | None:
    row = connection.execute(
        select(api_keys).where(api_keys.c.tenant_id == tenant_id, api_keys.c.id == key_id)
    ).one_or_none()
    return None if row is None else _key(row)


def list_keys(
    connection: Connection, tenant_id: str, *, after: tuple[datetime, str] | None, limit: int
) -> list[ApiKey]:
    statement = select(api_keys).where(api_keys.c.tenant_id == tenant_id)
    if after is not None:
        at, key_id = after
        statement = statement.where(
            or_(api_keys.c.created_at < at, and_(api_keys.c.created_at == at, api_keys.c.id < key_id))
        )
    statement = statement.order_by(api_keys.c.created_at.desc(), api_keys.c.id.desc()).limit(limit)
    return [_key(row) for row in connection.execute(statement)]


def count_active_keys(connection: Connection, now: datetime) -> int:
    statement = (
        select(func.count())
        .select_from(api_keys)
        .where(api_keys.c.revoked_at.is_(None), or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now))
    )
    return connection.execute(statement).scalar_one()


def update_key(connection: Connection, tenant_id: str, key_id: str, **values: object) -> None:
    connection.execute(
        update(api_keys).where(api_keys.c.tenant_id == tenant_id, api_keys.c.id == key_id).values(**values)
    )


def insert_share_link(connection: Connection, link: ShareLink) -> None:
    connection.execute(insert(share_links).values(**{**asdict(link), "may_accept": int(link.may_accept)}))


def find_share_link(connection: Connection, tenant_id: str, link_id: str) -> ShareLink | None:
    row = connection.execute(
        select(share_links).where(share_links.c.tenant_id == tenant_id, share_links.c.id == link_id)
    ).one_or_none()
    return None if row is None else ShareLink(**{**row._mapping, "may_accept": bool(row.may_accept)})


def revoke_share_link(connection: Connection, tenant_id: str, link_id: str, now: datetime) -> None:
    connection.execute(
        update(share_links)
        .where(share_links.c.tenant_id == tenant_id, share_links.c.id == link_id, share_links.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )


def take_requests(
    connection: Connection, tenant_id: str, window_started_at: datetime, *, number: int, limit: int
) -> int | None:
    """Add to the window's count unless that passes the limit; the new count, or None when refused."""
    if number > limit:
        return None
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(request_windows).values(
        tenant_id=tenant_id, window_started_at=window_started_at, used=number
    )
    statement = statement.on_conflict_do_update(
        index_elements=["tenant_id", "window_started_at"],
        set_={"used": request_windows.c.used + number},
        where=request_windows.c.used + number <= limit,
    )
    row = connection.execute(statement.returning(request_windows.c.used)).one_or_none()
    return None if row is None else row.used


def count_use(
    connection: Connection, tenant_id: str, measure: str, period: str, *, number: int = 1, limit: int | None
) -> int | None:
    """Add to a counter unless that passes the limit; the new count, or None when refused. Holds the row."""
    if limit is not None and number > limit:
        return None
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    statement = dialect.insert(usage_counters).values(tenant_id=tenant_id, measure=measure, period=period, used=number)
    statement = statement.on_conflict_do_update(
        index_elements=["tenant_id", "measure", "period"],
        set_={"used": usage_counters.c.used + number},
        where=None if limit is None else usage_counters.c.used + number <= limit,
    )
    row = connection.execute(statement.returning(usage_counters.c.used)).one_or_none()
    return None if row is None else row.used


def uses(connection: Connection, tenant_id: str, since: str) -> list[tuple[str, str, int]]:
    """Measure, period and count of every day since one (``YYYY-MM-DD``), and of all time."""
    rows = connection.execute(
        select(usage_counters.c.measure, usage_counters.c.period, usage_counters.c.used)
        .where(usage_counters.c.tenant_id == tenant_id, usage_counters.c.period >= since)
        .order_by(usage_counters.c.period, usage_counters.c.measure)
    )
    return [(row.measure, row.period, row.used) for row in rows]


def forget_windows(connection: Connection, tenant_id: str, before: datetime) -> None:
    connection.execute(
        delete(request_windows).where(
            request_windows.c.tenant_id == tenant_id, request_windows.c.window_started_at < before
        )
    )


def count_actions(connection: Connection, tenant_id: str, since: datetime) -> dict[str, int]:
    """Count the tenant's audited actions since a moment."""
    rows = connection.execute(
        select(audit_entries.c.action, func.count().label("number"))
        .where(audit_entries.c.tenant_id == tenant_id, audit_entries.c.at >= since)
        .group_by(audit_entries.c.action)
    )
    return dict(sorted((row.action, row.number) for row in rows))
