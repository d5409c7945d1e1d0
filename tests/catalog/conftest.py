"""A seeded catalog: once as a frozen snapshot for reading, and fresh on either database for writing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.catalog import service
from app.catalog.snapshot import Snapshot
from app.foundation.clock import ManualClock
from app.foundation.database import Database
from app.foundation.migrations import migrate


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    """The catalog as it ships, read once."""
    url = f"sqlite:///{Path(tmp_path_factory.mktemp('catalog')) / 'catalog.db'}"
    migrate(url)
    database = Database(url)
    database.transact_now(service.seed_when_empty)
    yield database.read_now(service.current_snapshot)
    database.close()


@pytest.fixture
def seeded(database: Database, clock: ManualClock) -> Database:
    """A database of either kind with the shipped catalog in it."""
    database.transact_now(lambda connection: service.seed(connection, clock=clock))
    return database
