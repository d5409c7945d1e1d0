"""Tenants apart: row-level security as the second wall, and every route called from the wrong side."""

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import inspect, text

from app.access import audit
from app.access.principal import SCOPES, Principal
from app.foundation.clock import ManualClock
from app.foundation.columns import metadata
from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import load_all_tables
from app.foundation.settings import Settings
from app.main import create_app
from tests.access.conftest import bearer, make_key

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


# Read without a credential on purpose: health for orchestrators, the API's own description.
PUBLIC = {"/healthz", "/readyz", "/version"}
# Open to every authenticated caller.
UNSCOPED = {"/v1/me"}


def routes(app: FastAPI) -> list[tuple[str, str]]:
    found = []
    for path, item in app.openapi()["paths"].items():
        found += [(method.upper(), path) for method in item if path not in PUBLIC]
    return sorted(found)


ROUTES = routes(create_app(Settings(host="127.0.0.1", log_level="ERROR")))


def call(client: TestClient, method: str, path: str, headers: dict[str, str]):
    filled = re.sub(r"\{(revision|number|n|version|catalog_revision)\}", "1", path)
    filled = re.sub(r"\{[^}]*\}", "quo_" + "0" * 32, filled)
    body = {} if method in ("POST", "PATCH", "PUT") else None
    extra = {"Idempotency-Key": '"k"', "If-Match": '"x"'}
    return client.request(method, filled, json=body, headers={**headers, **extra})


@pytest.fixture
def sqlite_guarded(sqlite_template, tmp_path, clock: ManualClock) -> Iterator[TestClient]:
    import shutil

    from pydantic import SecretStr

    shutil.copyfile(sqlite_template, tmp_path / "t.db")
    settings = Settings(
        database_url=f"sqlite:///{tmp_path / 't.db'}",
        log_level="CRITICAL",
        host="0.0.0.0",
        secret=SecretStr("a secret of the tests"),
        peppers=SecretStr("p1:0123456789abcdef0123"),
        background_work=False,
        rate_limit_per_minute=100_000,
    )
    with TestClient(create_app(settings, clock=clock), raise_server_exceptions=False) as client:
        yield client


def test_every_route_refuses_a_caller_without_a_credential(sqlite_guarded: TestClient) -> None:
    answered = {f"{method} {path}": call(sqlite_guarded, method, path, {}).status_code for method, path in ROUTES}
    assert set(answered.values()) == {401}, {k: v for k, v in answered.items() if v != 401}


def test_every_route_refuses_a_key_without_its_scope(sqlite_guarded: TestClient, clock: ManualClock) -> None:
    database = sqlite_guarded.app.state.database
    scoped = [(method, path) for method, path in ROUTES if path not in UNSCOPED]
    wrong: dict[str, int] = {}
    for scope in sorted(SCOPES):
        key = bearer(make_key(database, "acme", clock.now(), frozenset({scope})))
        for method, path in scoped:
            answer = call(sqlite_guarded, method, path, key)
            if answer.status_code == 403:
                required = answer.json()["required_scopes"]
                if scope in required and len(required) == 1:
                    wrong[f"{scope}: {method} {path}"] = 403
    assert wrong == {}
    nothing = bearer(make_key(database, "acme", clock.now(), frozenset({"webhooks:manage"})))
    refused = {
        f"{method} {path}": call(sqlite_guarded, method, path, nothing).status_code
        for method, path in scoped
        if not path.startswith("/v1/webhooks")
    }
    assert set(refused.values()) == {403}, {k: v for k, v in refused.items() if v != 403}


def test_there_are_routes_to_test() -> None:
    assert len(ROUTES) > 15
    assert all(isinstance(method, str) for method, _ in ROUTES)
