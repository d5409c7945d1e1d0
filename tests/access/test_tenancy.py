"""Tenants apart: row-level security as the second wall. Every route from the wrong side: tests/security."""

from collections.abc import Iterator

import pytest
from sqlalchemy import inspect, text

from app.access import audit
from app.access.principal import Principal
from app.foundation.clock import ManualClock
from app.foundation.columns import metadata
from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import load_all_tables

load_all_tables()
TENANT_TABLES = sorted(table.name for table in metadata.tables.values() if "tenant_id" in table.columns)


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Database]:
    database = Database(postgres_url)
    yield database
    database.close()


def record(database: Database, tenant: str, clock: ManualClock) -> None:
    principal = Principal(tenant_id=tenant, actor="x", scopes=frozenset())
    database.transact_now(
        lambda c: audit.record(c, principal=principal, at=clock.now(), action="test", subject="s"), tenant
    )


@pytest.mark.postgres
@pytest.mark.parametrize("table", TENANT_TABLES)
def test_every_tenant_table_is_behind_forced_row_level_security(postgres: Database, table: str) -> None:
    def look(connection):
        flags = connection.execute(
            text("SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = to_regclass(:t)"), {"t": table}
        ).one()
        policies = connection.execute(
            text(
                "SELECT count(*) FROM pg_policies WHERE tablename = :t AND qual IS NOT NULL AND with_check IS NOT NULL"
            ),
            {"t": table},
        ).scalar_one()
        return tuple(flags), policies

    flags, policies = postgres.read_now(look, SYSTEM)
    assert flags == (True, True), f"{table} needs protect_tenant_table in its migration"
    assert policies >= 2


@pytest.mark.postgres
def test_raw_sql_of_the_service_role_sees_and_touches_one_tenant(postgres: Database, clock: ManualClock) -> None:
    for tenant in ("red", "blue"):
        record(postgres, tenant, clock)

    def tenants(connection):
        return sorted(connection.execute(text("SELECT DISTINCT tenant_id FROM audit_heads")).scalars())

    assert postgres.read_now(tenants, "red") == ["red"]
    assert postgres.read_now(tenants, None) == []
    assert {"blue", "red"} <= set(postgres.read_now(tenants, SYSTEM))
    update = text("UPDATE audit_heads SET sequence = 99 WHERE tenant_id = 'blue'")
    assert postgres.transact_now(lambda c: c.execute(update).rowcount, "red") == 0
    insert = text("INSERT INTO audit_heads (tenant_id, sequence, entry_hash) VALUES ('green', 1, 'x')")
    with pytest.raises(Exception, match="row-level security"):
        postgres.transact_now(lambda c: c.execute(insert), "red")


@pytest.mark.postgres
def test_the_tenant_does_not_leak_to_the_next_user_of_a_connection(postgres: Database, clock: ManualClock) -> None:
    record(postgres, "red", clock)
    postgres.read_now(lambda c: None, "red")
    with postgres.reader_engine.connect() as connection:
        left = connection.execute(text("SELECT current_setting('app.tenant_id', true), current_user")).one()
    assert left[0] in (None, "")
    assert left[1] not in ("gpuquote_app", "gpuquote_system")


@pytest.mark.postgres
def test_the_service_roles_own_nothing_and_bypass_nothing(postgres: Database) -> None:
    query = text(
        "SELECT rolname, rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole OR rolcreatedb FROM pg_roles"
        " WHERE rolname IN ('gpuquote_app', 'gpuquote_system') ORDER BY rolname"
    )
    owned = text(
        "SELECT count(*) FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner"
        " WHERE r.rolname IN ('gpuquote_app', 'gpuquote_system')"
    )
    roles = postgres.read_now(lambda c: [tuple(row) for row in c.execute(query)], SYSTEM)
    assert roles == [("gpuquote_app", False), ("gpuquote_system", False)]
    assert postgres.read_now(lambda c: c.execute(owned).scalar_one(), SYSTEM) == 0


def test_tenant_tables_have_composite_keys(database: Database) -> None:
    with database.reader_engine.connect() as connection:
        inspector = inspect(connection)
        for table in TENANT_TABLES:
            key = inspector.get_pk_constraint(table)["constrained_columns"]
            assert key, table
            assert key[0] == "tenant_id", f"{table}: the key of a tenant's table begins with the tenant"
