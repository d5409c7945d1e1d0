"""Whose rows a transaction may touch. On PostgreSQL row-level security holds it to that, as a second wall.

The first wall is the repository layer, whose functions take the tenant as a required argument. For the second, every
transaction drops to a role that owns nothing: ``gpuquote_app`` sees the rows of ``app.tenant_id`` only, and none when
that is not set; ``gpuquote_system`` (migrations' data, sweepers, the event publisher) sees all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, text

APP_ROLE = "gpuquote_app"
SYSTEM_ROLE = "gpuquote_system"


class System:
    """The tenant of work that belongs to no tenant and may see all of them. Never reachable from a request body."""

    def __repr__(self) -> str:
        return "SYSTEM"


SYSTEM: Final = System()
# None: only tables without tenants (the catalog); on PostgreSQL tenant tables then look empty.
Tenant = str | System | None

_ENTER = text("SELECT set_config('role', :role, true), set_config('app.tenant_id', :tenant, true)")


def enter_tenant(connection: Connection, tenant: Tenant) -> None:
    """Bind the transaction to the tenant; ends by itself with the transaction, so pooled connections are safe."""
    if connection.dialect.name != "postgresql":
        return
    role = SYSTEM_ROLE if isinstance(tenant, System) else APP_ROLE
    connection.execute(_ENTER, {"role": role, "tenant": tenant if isinstance(tenant, str) else ""})


@contextmanager
def working_as(connection: Connection, tenant: Tenant, *, afterwards: Tenant) -> Iterator[None]:
    """Do a part of a transaction for another tenant; for the operator's work on tenants, and nothing else.

    When the block fails its savepoint is rolled back, and the role with it.
    """
    enter_tenant(connection, tenant)
    yield
    enter_tenant(connection, afterwards)
