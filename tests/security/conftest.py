"""One service, two tenants, both with something of every kind: what the matrices call from the wrong side."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.foundation.clock import ManualClock
from app.foundation.migrations import migrate
from app.foundation.settings import Settings
from app.main import create_app
from tests.conftest import fresh_postgres
from tests.quotes.conftest import NOON, _seed, seeded_file
from tests.security.world import World, build_world

__all__ = ["seeded_file"]


def guarded_settings(url: str, **changes: object) -> Settings:
    """Settings of a service that others can reach."""
    values: dict[str, object] = {
        "database_url": url,
        "log_level": "CRITICAL",
        "host": "0.0.0.0",
        "secret": SecretStr("a secret of the tests"),
        "peppers": SecretStr("p1:0123456789abcdef0123"),
        "background_work": False,
        "rate_limit_per_minute": 1_000_000,
    }
    return Settings(**{**values, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def world_on_sqlite(seeded_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    path = tmp_path_factory.mktemp("security") / "world.db"
    shutil.copyfile(seeded_file, path)
    yield from _served(f"sqlite:///{path}")


@pytest.fixture(scope="session")
def world_on_postgres() -> Iterator[World]:
    with fresh_postgres() as url:
        migrate(url)
        _seed(url)
        yield from _served(url)


def _served(url: str) -> Iterator[World]:
    application = create_app(guarded_settings(url), clock=ManualClock(NOON))
    with TestClient(application, raise_server_exceptions=False) as client:
        yield build_world(client)


@pytest.fixture(scope="session", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def world(request: pytest.FixtureRequest) -> World:
    """The world on either database; built once, so tests leave what others need."""
    found: World = request.getfixturevalue(f"world_on_{request.param}")
    return found
