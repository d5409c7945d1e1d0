"""Tenants: make, list, change, close. The operator's work; its trail is in the operator's own audit chain.

Run as the system, or by :func:`app.foundation.tenancy.working_as` inside the operator's transaction.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.access import repository
from app.access.quotas import MOST, QUOTAS
from app.access.repository import Tenant
from app.foundation.problems import FieldError, NotFound, Problem
from app.pricing.currency import EXPONENTS

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{1,62}")


def create(
    connection: Connection,
    *,
    tenant_id: str,
    name: str,
    default_currency: str,
    now: datetime,
    requests_per_minute: int | None = None,
    quotas: Mapping[str, int] | None = None,
) -> Tenant:
    """Make a tenant; it has no key yet."""
    if not _ID.fullmatch(tenant_id):
        raise _field("/tenant_id", "tenant_id", "is 2 to 63 small letters, digits, - and _, not beginning with - or _")
    _check(default_currency, quotas)
    if repository.find_tenant(connection, tenant_id) is not None:
        raise Problem("conflict", f"There is a tenant {tenant_id} already. Choose another id.")
    tenant = Tenant(
        tenant_id=tenant_id,
        name=name,
        default_currency=default_currency,
        requests_per_minute=requests_per_minute,
        created_at=now,
        quotas=dict(quotas) if quotas else None,
    )
    repository.insert_tenant(connection, tenant)
    return tenant


def find(connection: Connection, tenant_id: str) -> Tenant:
    """Return a tenant or say that there is none."""
    tenant = repository.find_tenant(connection, tenant_id)
    if tenant is None:
        raise NotFound("tenant")
    return tenant


def change(connection: Connection, tenant_id: str, changes: Mapping[str, Any]) -> Tenant:
    """Change what is given; quotas by name, null gives the service's own back."""
    before = find(connection, tenant_id)
    values = dict(changes)
    if "quotas" in values:
        merged = {**(before.quotas or {}), **values["quotas"]}
        values["quotas"] = {name: limit for name, limit in merged.items() if limit is not None} or None
    _check(values.get("default_currency", before.default_currency), values.get("quotas"))
    if values:
        repository.update_tenant(connection, tenant_id, **values)
    return replace(before, **values)


def _check(currency: str, quotas: Mapping[str, int] | None) -> None:
    if currency not in EXPONENTS:
        message = f"{currency!r} is no ISO 4217 code; write one such as EUR"
        raise _field("/default_currency", "currency_unknown", message)
    for name, limit in (quotas or {}).items():
        if name not in QUOTAS:
            raise _field(f"/quotas/{name}", "quota_unknown", f"is not a quota; there are {', '.join(QUOTAS)}")
        if not 0 <= limit <= MOST:
            raise _field(f"/quotas/{name}", "out_of_range", f"is 0 to {MOST}")


def _field(pointer: str, code: str, message: str) -> Problem:
    field = FieldError(code=code, message=message, pointer=pointer)
    return Problem("validation-failed", f"{pointer} {message}.", errors=[field], pointer=pointer)
