"""What a tenant may have: quotes a day, quotes in all, webhooks, items in a request. Limits are data, by tenant.

Every use of a counted thing adds to its row in the transaction that makes the thing, and is refused where the limit is
reached: the row's lock makes that right however many workers and hosts there are, and a rollback takes the use back.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from sqlalchemy import Connection

from app.access import repository
from app.foundation.problems import Problem

TOTAL = "total"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """One limit: what it is of, over what time, and how many when nobody said otherwise."""

    name: str
    default: int
    what: str
    is_daily: bool = False


QUOTAS: Mapping[str, Quota] = {
    quota.name: quota
    for quota in (
        Quota(name="quotes_per_day", default=50_000, what="new quotes a day", is_daily=True),
        Quota(name="stored_quotes", default=1_000_000, what="quotes in all"),
        Quota(name="webhooks", default=50, what="webhooks"),
        Quota(name="items_per_request", default=20, what="items in a request"),
    )
}
MOST = 2**31 - 1


def limit_of(connection: Connection, tenant_id: str, name: str) -> int | None:
    """Return the tenant's limit; None for the loopback default, which is one person on one machine."""
    tenant = repository.find_tenant(connection, tenant_id)
    return None if tenant is None else limit_in(tenant.quotas, name)


def limit_in(quotas: Mapping[str, int] | None, name: str) -> int:
    """Return the limit that a tenant's own data or the service's default gives."""
    return (quotas or {}).get(name, QUOTAS[name].default)


def take_quote(connection: Connection, tenant_id: str, now: datetime) -> None:
    """Count a new quote, or refuse it because the day's or all of the tenant's are used up."""
    tenant = repository.find_tenant(connection, tenant_id)
    for name in ("stored_quotes", "quotes_per_day"):
        limit = None if tenant is None else limit_in(tenant.quotas, name)
        _take(connection, tenant_id, QUOTAS[name], limit, now)


def _take(connection: Connection, tenant_id: str, quota: Quota, limit: int | None, now: datetime) -> None:
    period = now.date().isoformat() if quota.is_daily else TOTAL
    if repository.count_use(connection, tenant_id, quota.name, period, limit=limit) is None:
        raise exceeded(quota.name, limit or 0, now)


def check_room(connection: Connection, tenant_id: str, name: str, there_are: int, now: datetime) -> None:
    """Refuse one more of a thing that its own room counts. Call ``hold`` before counting."""
    limit = limit_of(connection, tenant_id, name)
    if limit is not None and there_are >= limit:
        raise exceeded(name, limit, now)


def hold(connection: Connection, tenant_id: str, name: str) -> None:
    """Let no other transaction count the same thing of the tenant until this one has ended."""
    repository.count_use(connection, tenant_id, name, TOTAL, number=0, limit=None)


def exceeded(name: str, limit: int, now: datetime) -> Problem:
    """Say which quota is used up, and when there is more where time helps."""
    quota = QUOTAS[name]
    policy, left = f'"{name}";q={limit}', f'"{name}";r=0'
    headers, next_step = {}, "Ask the operator of the service for more."
    if quota.is_daily:
        seconds = _until_midnight_s(now)
        policy, left = f"{policy};w={int(DAY.total_seconds())}", f"{left};t={seconds}"
        headers = {"Retry-After": str(seconds)}
        next_step = f"Try again after midnight UTC, in {seconds} seconds, or ask the operator of the service for more."
    problem = Problem(
        "quota-exceeded",
        f"This tenant may have {limit} {quota.what}, and this would be one too many. {next_step}",
        headers={"RateLimit-Policy": policy, "RateLimit": left, **headers},
        limit=limit,
    )
    problem.extensions["violated-policies"] = [name]
    return problem


def _until_midnight_s(now: datetime) -> int:
    midnight = datetime.combine(now.astimezone(UTC).date() + DAY, time(), tzinfo=UTC)
    return max(1, int((midnight - now).total_seconds()))
