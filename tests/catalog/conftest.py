"""A seeded catalog: once as a frozen snapshot for reading, and fresh on either database for writing."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.catalog import service
from app.catalog.snapshot import Snapshot
from app.foundation.clock import ManualClock
from app.foundation.database import Database

SQLITE = "sqlite:///"


@pytest.fixture(scope="session")
def seeded_template(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the shipped catalog, for tests to copy: seeding takes a second, copying does not."""
    path = tmp_path_factory.mktemp("catalog") / "seeded.db"
    shutil.copyfile(sqlite_template, path)
    database = Database(f"{SQLITE}{path}")
    database.transact_now(lambda connection: service.seed(connection, clock=_noon()))
    database.close()
    return path


def _noon() -> ManualClock:
    return ManualClock(datetime(2026, 11, 30, 12, 0, tzinfo=UTC))


@pytest.fixture(scope="session")
def shipped(seeded_template: Path) -> Iterator[Snapshot]:
    """The catalog as it ships, read once."""
    database = Database(f"{SQLITE}{seeded_template}")
    yield database.read_now(service.current_snapshot)
    database.close()


@pytest.fixture
def seeded_url(request: pytest.FixtureRequest, database_url: str, clock: ManualClock) -> str:
    """Address of a database of either kind with the shipped catalog in it."""
    if database_url.startswith(SQLITE):
        shutil.copyfile(request.getfixturevalue("seeded_template"), database_url.removeprefix(SQLITE))
        return database_url
    database = Database(database_url)
    database.transact_now(lambda connection: service.seed(connection, clock=clock))
    database.close()
    return database_url


@pytest.fixture
def seeded(seeded_url: str) -> Iterator[Database]:
    """The door to a seeded database."""
    database = Database(seeded_url)
    yield database
    database.close()


@pytest.fixture
def api(seeded_url: str, app: FastAPI) -> Iterator[TestClient]:
    """An HTTP client over a seeded catalog."""
    del seeded_url
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client
