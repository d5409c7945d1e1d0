"""The shipped catalog as one frozen snapshot, seeded once for the room's tests."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.catalog import service as catalog
from app.catalog.snapshot import Snapshot
from app.estimates import service
from app.estimates.schemas import EstimateRequest
from app.foundation.clock import ManualClock
from app.foundation.database import Database
from app.foundation.settings import Settings
from app.main import create_app

TODAY = date(2026, 11, 30)


@pytest.fixture(scope="session")
def seeded_database(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("estimates") / "catalog.db"
    shutil.copyfile(sqlite_template, path)
    database = Database(f"sqlite:///{path}")
    database.transact_now(lambda connection: catalog.seed_when_empty(connection))
    yield database
    database.close()


@pytest.fixture(scope="session")
def snapshot(seeded_database: Database) -> Snapshot:
    return seeded_database.read_now(catalog.current_snapshot)


@pytest.fixture(scope="session")
def seeded_client(seeded_database: Database) -> Iterator[TestClient]:
    """An HTTP client over the seeded catalog; estimates write nothing, so one serves all tests."""
    clock = ManualClock(datetime(2026, 11, 30, 12, 0, tzinfo=UTC))
    settings = Settings(
        database_url=str(seeded_database.url), log_level="CRITICAL", loopback_hosts=("127.0.0.1", "testserver")
    )
    app = create_app(settings, clock=clock)
    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as opened:
        yield opened


Answer = Callable[..., service.Estimate]


@pytest.fixture(scope="session")
def answer(snapshot: Snapshot) -> Answer:
    """Estimates a body given as plain JSON values."""

    def run(body: dict[str, Any], today: date = TODAY) -> service.Estimate:
        return service.estimate(snapshot, EstimateRequest.model_validate(body), today)

    return run


def training(tokens: float = 1.1e11, **job: Any) -> dict[str, Any]:
    """The smallest training body, on a 10B model."""
    return {"kind": "training", "model": {"parameters": 1e10}, "tokens": tokens, **job}


def inference(**job: Any) -> dict[str, Any]:
    """A small inference body."""
    traffic = {"concurrency": 64, "input_tokens": {"mean": 1000}, "output_tokens": {"mean": 500}}
    return {"kind": "inference", "model": {"ref": "llama3-70b"}, "traffic": traffic, **job}


def body(job: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """A request of one item; ``supply``, ``constraints``, ``objective`` go to the item, the rest to the request."""
    item = {name: parts.pop(name) for name in ("supply", "constraints", "objective") if name in parts}
    return {"items": [{"job": job, **item}], **parts}
