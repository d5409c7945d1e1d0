"""Every migration goes up, down and up again with rows in place, and the tables in code are the tables in SQL."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, Connection, Engine, Integer, MetaData, Numeric, Table, func, inspect, select, text
from sqlalchemy.types import Date, DateTime, LargeBinary

from app.foundation.columns import metadata
from app.foundation.engines import create_migrator
from app.foundation.engines import database_url as parse_url
from app.foundation.migrations import alembic_config, load_all_tables, migrate
from tests.conftest import fresh_postgres

SCRIPTS = ScriptDirectory.from_config(alembic_config())
REVISIONS = [script.revision for script in reversed(list(SCRIPTS.walk_revisions()))]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    with fresh_postgres() as url:
        yield url


@pytest.fixture
def engine(empty_url: str) -> Iterator[Engine]:
    opened = create_migrator(parse_url(empty_url))
    yield opened
    opened.dispose()


def test_there_is_one_line_of_migrations() -> None:
    assert len(SCRIPTS.get_heads()) == 1, "two migrations name the same down_revision: chain one after the other"


def test_the_code_and_the_database_agree(empty_url: str, engine: Engine) -> None:
    migrate(empty_url)
    load_all_tables()
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def _value(column: Any, number: int) -> Any:
    if isinstance(column.type, LargeBinary):
        return b"{}"
    if isinstance(column.type, DateTime):
        return datetime(2026, 1, 1, tzinfo=UTC)
    if isinstance(column.type, Date):
        return date(2026, 1, 1)
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, Integer):
        return number
    if isinstance(column.type, Numeric):
        return Decimal(number)
    # Triggers see to it that a thing with states begins in the first one.
    return "draft" if column.name == "status" else f"{number}"


def _fill(connection: Connection, table: Table) -> None:
    """Put a row into a table without regard to its meaning: checks and references stand aside meanwhile."""
    row = {column.name: _value(column, 1) for column in table.columns}
    connection.execute(table.insert().values(row))


def _triggers(connection: Connection) -> set[str]:
    if connection.dialect.name == "postgresql":
        query = "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal"
    else:
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    return {row[0] for row in connection.execute(text(query))}


def _shape(engine: Engine) -> dict[str, Any]:
    with engine.connect() as connection:
        inspector = inspect(connection)
        tables = sorted(inspector.get_table_names())
        return {
            "columns": {t: sorted(c["name"] for c in inspector.get_columns(t)) for t in tables},
            "checks": {t: sorted(str(c["name"]) for c in inspector.get_check_constraints(t)) for t in tables},
            "indexes": {t: sorted(str(i["name"]) for i in inspector.get_indexes(t)) for t in tables},
            "triggers": _triggers(connection),
        }


def test_every_migration_goes_up_down_and_up(empty_url: str, engine: Engine) -> None:
    for revision in REVISIONS:
        migrate(empty_url, revision)
        before = _shape(engine)
        migrate(empty_url, "-1")
        migrate(empty_url, revision)
        assert _shape(engine) == before
    migrate(empty_url, "base")
    assert set(_shape(engine)["columns"]) <= {"alembic_version"}


def test_rows_survive_every_later_migration(empty_url: str, engine: Engine) -> None:
    """A batch rebuild with foreign keys on deletes children without a word; this sees it."""
    rows: dict[str, int] = {}
    for revision in REVISIONS:
        migrate(empty_url, revision)
        with engine.connect() as connection:
            for table, number in rows.items():
                found = connection.execute(text(f'SELECT count(*) FROM "{table}"')).scalar_one()
                assert found == number, f"{revision} changed the rows of {table}"
        rows = _add_rows(engine, rows)
    assert rows


def _add_rows(engine: Engine, known: dict[str, int]) -> dict[str, int]:
    """Put one row into every table that has none yet."""
    reflected = MetaData()
    rows = dict(known)
    with engine.begin() as connection:
        reflected.reflect(connection)
        if connection.dialect.name == "sqlite":
            connection.execute(text("PRAGMA ignore_check_constraints = ON"))
        else:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
        for table in reflected.sorted_tables:
            if table.name == "alembic_version" or table.name in rows:
                continue
            if connection.dialect.name == "postgresql" and inspect(connection).get_check_constraints(table.name):
                continue
            _fill(connection, table)
            # A migration that takes over what is there has put rows of its own.
            rows[table.name] = connection.execute(select(func.count()).select_from(table)).scalar_one()
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection:
            connection.execute(text("PRAGMA ignore_check_constraints = OFF"))
    return rows


def test_two_starting_replicas_do_not_both_migrate(empty_url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(migrate, [empty_url] * 2))
    engine = create_migrator(parse_url(empty_url))
    with engine.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM alembic_version")).scalar_one() == 1
    engine.dispose()
