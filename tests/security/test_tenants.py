"""Another tenant's things do not exist: not in the answer, its headers, or the work the database does for it."""

import re
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.foundation.columns import metadata
from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import load_all_tables
from app.main import create_app
from tests.security.calls import call, comparable, every_route, mentions, names_for, statements
from tests.security.conftest import guarded_settings
from tests.security.matrix import OPERATIONS
from tests.security.world import World, send

load_all_tables()
TENANT_TABLES = sorted(table.name for table in metadata.tables.values() if "tenant_id" in table.columns)


def _absent(value: str) -> str:
    """An id of the same form that never existed."""
    return value[:-8] + ("0" * 8 if not value.endswith("0" * 8) else "1" * 8)


def test_matrix_is_complete(tmp_path) -> None:
    served = every_route(create_app(guarded_settings(f"sqlite:///{tmp_path / 'none.db'}")))
    assert served.keys() == OPERATIONS.keys(), "name the operation in tests/security/matrix.py"


# Every id in the path of an operation that is not shared is a tenant's; bodies name these two besides.
TENANT_NAMES = {"draft_id", "revision_id"} | {
    name
    for (_, path), operation in OPERATIONS.items()
    if not operation.shared
    for name in re.findall(r"\{(\w+)\}", path)
    if name != "n"
}
WITH_IDS = [key for key, operation in OPERATIONS.items() if mentions(key, operation, TENANT_NAMES)]


def test_the_world_has_something_of_every_kind(world_on_sqlite: World) -> None:
    """Else a foreign id would be compared with nothing."""
    assert world_on_sqlite.red.ids.keys() >= TENANT_NAMES, "make one in tests/security/world.py"


@pytest.mark.parametrize("key", WITH_IDS, ids=" ".join)
def test_a_foreign_id_is_as_if_it_never_was(world: World, key: tuple[str, str]) -> None:
    operation, database = OPERATIONS[key], world.app.state.database
    absent_ids = {name: _absent(value) for name, value in world.red.ids.items()}
    header = {"GET": "If-None-Match", "PATCH": "If-Match"}.get(key[0])
    conditions: list[dict[str, str]] = [{}]
    if header is not None:
        conditions += [{header: "*"}, {header: ", ".join(world.red.etags.values())}]
    world.client.get("/v1/me", headers=world.blue.admin)
    for chosen in operation.asks:
        for headers in conditions:
            answers = []
            for ids in (world.red.ids, absent_ids):
                names = names_for(ids, world.blue, chosen)
                with statements(database) as ran:
                    answer = call(world.client, key, operation, names, world.blue.admin, **headers)
                answers.append((*comparable(answer, ids), ran))
            assert answers[0] == answers[1]
            body_only = not mentions(key, operation, TENANT_NAMES - chosen.keys()) or "{" not in key[1] or chosen
            assert answers[0][0] in ((404, 412, 422) if body_only else (404,)), answers[0][1]
            assert answers[0][0] == 412 or "etag" not in dict(answers[0][2])


COLLECTIONS = [
    key for key, operation in OPERATIONS.items() if key[0] == "GET" and not mentions(key, operation, TENANT_NAMES)
]


@pytest.mark.parametrize("key", COLLECTIONS, ids=" ".join)
def test_a_list_shows_nothing_of_another_tenant(world: World, key: tuple[str, str]) -> None:
    operation = OPERATIONS[key]
    names = names_for({}, world.blue, {})
    seen = call(world.client, key, operation, names, world.blue.admin).text
    assert [value for value in world.red.every_id() if value in seen] == []
    assert "of red" not in seen


def test_the_lists_do_show_what_is_ones_own(world: World) -> None:
    for path, name in {
        "/v1/quotes": "quote_id",
        "/v1/api-keys": "key_id",
        "/v1/webhooks": "webhook_id",
        "/v1/price-books": "book_id",
        "/v1/events": "quote_id",
        "/v1/audit": "quote_id",
    }.items():
        assert world.red.ids[name] in world.client.get(path, headers=world.red.admin).text, path


@pytest.mark.parametrize("path", ["/v1/quotes", "/v1/audit", "/v1/events", "/v1/api-keys"])
def test_a_cursor_of_another_tenant_shows_nothing_of_it(world: World, path: str) -> None:
    cursor = world.client.get(f"{path}?limit=1", headers=world.red.admin).json()["next_cursor"]
    answer = world.client.get(f"{path}?limit=1&cursor={cursor}", headers=world.blue.admin)
    assert answer.status_code == 200
    assert [value for value in world.red.every_id() if value in answer.text] == []


def test_a_key_of_an_idempotent_request_is_its_tenants_own(world: World) -> None:
    body = {"name": "idempotent", "scopes": ["quotes:read"]}
    made = [
        world.client.post("/v1/api-keys", json=body, headers={**who, "Idempotency-Key": '"the same"'})
        for who in (world.red.admin, world.blue.admin)
    ]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].json()["id"] != made[1].json()["id"]
    assert "idempotent-replayed" not in made[1].headers


def test_a_token_of_a_link_is_no_key(world: World) -> None:
    """The holder of a link has a tenant too: it sees no list of it."""
    who = {"Authorization": f"Bearer {world.red.ids['share_token']}"}
    for key in COLLECTIONS:
        if OPERATIONS[key].public:
            continue
        answer = call(world.client, key, OPERATIONS[key], names_for({}, world.red, {}), who)
        assert answer.status_code == 404, key
    other = f"/v1/quotes/{world.red.ids['draft_id']}/revisions/1"
    assert send(world.client, "GET", other, who).status_code == 404


# Tables in which no tenant of this world has a row, and why.
EMPTY: dict[str, str] = {}


@pytest.fixture
def postgres(world_on_postgres: World) -> Database:
    database: Database = world_on_postgres.app.state.database
    return database


@pytest.mark.postgres
@pytest.mark.parametrize("table", TENANT_TABLES)
def test_raw_sql_of_the_service_role_stays_in_its_tenant(postgres: Database, table: str) -> None:
    of_red = text(f"SELECT * FROM {table} WHERE tenant_id = 'red' LIMIT 1")
    row = postgres.read_now(lambda c: c.execute(of_red).mappings().first(), SYSTEM)
    if table in EMPTY:
        pytest.skip(EMPTY[table])
    assert row is not None, f"the world needs a row in {table}, or a reason in EMPTY"
    assert postgres.read_now(lambda c: c.execute(of_red).all(), "blue") == []
    assert postgres.read_now(lambda c: c.execute(text(f"SELECT * FROM {table}")).all(), None) == []
    everything = text(f"SELECT count(*) FROM {table} WHERE tenant_id <> 'blue'")
    assert postgres.read_now(lambda c: c.execute(everything).scalar_one(), "blue") == 0
    # a revision is born a draft, so a trigger would speak before the tenant's wall does
    born = {**row, "status": "draft"} if table == "quote_revisions" else dict(row)
    columns = ", ".join(f'"{name}"' for name in row)
    places = ", ".join(f":{name}" for name in row)
    writes: list[tuple[str, dict[str, Any]]] = [
        (f"INSERT INTO {table} ({columns}) VALUES ({places})", born),
        (f"UPDATE {table} SET tenant_id = 'red'", {}),
        (f"UPDATE {table} SET tenant_id = 'blue' WHERE tenant_id = 'red'", {}),
        (f"DELETE FROM {table} WHERE tenant_id = 'red'", {}),
    ]
    for statement, values in writes:
        assert _changed(postgres, statement, values) in ("refused", 0), statement
    assert postgres.read_now(lambda c: c.execute(of_red).mappings().first(), SYSTEM) == row


def _changed(postgres: Database, statement: str, values: dict[str, Any]) -> Any:
    """Rows that a statement of blue changed, or that it was refused for the right reason."""
    try:
        return postgres.transact_now(lambda c: c.execute(text(statement), values).rowcount, "blue")
    except DBAPIError as error:
        if not any(
            word in str(error) for word in ("row-level security", "permission denied", "append-only", "immutable")
        ):
            raise
        return "refused"
