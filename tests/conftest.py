"""Fixtures of every room: a clean database of either kind, the application over it, and a clock that stands still."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.engine import make_url

from app.foundation.clock import ManualClock
from app.foundation.database import Database
from app.foundation.migrations import migrate
from app.foundation.settings import Settings
from app.main import create_app

POSTGRES_SETTING = "GPUQUOTE_TEST_POSTGRES_URL"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty SQLite file that tests copy."""
    path = tmp_path_factory.mktemp("template") / "template.db"
    migrate(f"sqlite:///{path}")
    return path


@contextmanager
def fresh_postgres() -> Iterator[str]:
    """A new, empty database on the test server, dropped at the end."""
    given = os.environ.get(POSTGRES_SETTING)
    if not given:
        pytest.skip(f"{POSTGRES_SETTING} is not set: no PostgreSQL to test on")
    url = make_url(given)
    name = f"{url.database}_{uuid.uuid4().hex[:12]}"
    admin = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    try:
        yield url.set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A migrated PostgreSQL database of this test process."""
    with fresh_postgres() as url:
        migrate(url)
        yield url


def _empty_postgres(url: str) -> None:
    """Empty every table but the migration mark; replica mode keeps immutability triggers out of the way."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        tables = [
            row[0]
            for row in connection.execute(
                "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'"
                " AND tablename <> 'alembic_version'"
            )
        ]
        if tables:
            connection.execute("SET session_replication_role = replica")
            connection.execute(f"TRUNCATE {', '.join(tables)} RESTART IDENTITY CASCADE")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a migrated and empty database, once on SQLite and once on PostgreSQL."""
    if request.param == "sqlite":
        path = tmp_path / "test.db"
        shutil.copyfile(request.getfixturevalue("sqlite_template"), path)
        return f"sqlite:///{path}"
    url: str = request.getfixturevalue("postgres_url")
    _empty_postgres(url)
    return url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The door to the database, as services get it."""
    opened = Database(database_url)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> ManualClock:
    """Stands at noon UTC of 30 November 2026 until moved."""
    return ManualClock(datetime(2026, 11, 30, 12, 0, tzinfo=UTC))


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=database_url, log_level="ERROR", background_work=False, loopback_hosts=("127.0.0.1", "testserver")
    )


@pytest.fixture
def app(settings: Settings, clock: ManualClock) -> FastAPI:
    """The application on the loopback default: one tenant, all scopes."""
    return create_app(settings, clock=clock)


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    """An HTTP client of the started application; ``app.state.database`` is open while it lives."""
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as opened:
        yield opened
