"""The service over a seeded catalog on either database, with callers of several rights."""

import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy.engine import make_url

from app.access.principal import LOOPBACK_TENANT, Principal
from app.catalog import service as catalog
from app.catalog.imports.plan import NewPrice
from app.catalog.offers import PriceRow
from app.catalog.resolve import resolve_price
from app.catalog.revisions import RevisionContent, publish
from app.catalog.snapshot import Snapshot
from app.foundation.clock import ManualClock
from app.foundation.columns import metadata
from app.foundation.database import SYSTEM, Database
from app.foundation.migrations import load_all_tables, migrate
from app.foundation.settings import Settings
from tests.conftest import fresh_postgres

load_all_tables()
TENANT_TABLES = sorted(table.name for table in metadata.tables.values() if "tenant_id" in table.columns)
PUBLISHED_TABLES = sorted(t.name for t in metadata.tables.values() if "recorded_revision" in t.columns)
NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


def _seed(url: str) -> None:
    database = Database(url)
    database.transact_now(lambda connection: catalog.seed(connection, clock=ManualClock(NOON)))
    database.close()


@pytest.fixture(scope="session")
def seeded_file(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("quotes") / "seeded.db"
    shutil.copyfile(sqlite_template, path)
    _seed(f"sqlite:///{path}")
    return path


@pytest.fixture(scope="session")
def seeded_postgres() -> Iterator[str]:
    with fresh_postgres() as url:
        migrate(url)
        _seed(url)
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A seeded database without tenants' rows; the catalog is seeded once, because that takes a second."""
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("seeded_file"), tmp_path / "quotes.db")
        return f"sqlite:///{tmp_path / 'quotes.db'}"
    url: str = request.getfixturevalue("seeded_postgres")
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(f"TRUNCATE {', '.join(TENANT_TABLES)} RESTART IDENTITY CASCADE")
        for name in PUBLISHED_TABLES:
            connection.execute(f"DELETE FROM {name} WHERE recorded_revision > 1")
        connection.execute("DELETE FROM catalog_revision WHERE number > 1")
    return url


@pytest.fixture
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=database_url, log_level="CRITICAL", background_work=False, rate_limit_per_minute=100_000
    )


def job(**more: Any) -> dict[str, Any]:
    """A small training body that every engine answers fast."""
    item = {
        "job": {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11},
        "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "providers": ["aws"]},
    }
    return {"items": [item], **more}


class Shop:
    """Publishes catalog revisions that change single prices."""

    def __init__(self, client: TestClient) -> None:
        self.database: Database = client.app.state.database  # type: ignore[attr-defined]

    def snapshot(self) -> Snapshot:
        return self.database.read_now(catalog.current_snapshot, SYSTEM)

    def set_price(self, offer_id: str, factor: str, *, base: str | None = None) -> str:
        """Publish the offer's price times a factor (of another offer's, where ``base`` names one), from today on."""
        snapshot = self.snapshot()
        row, like = (
            resolve_price(snapshot, snapshot.offers[name], NOON.date()).row for name in (offer_id, base or offer_id)
        )
        assert row is not None
        assert like is not None
        return self._publish(self._again(row, amount=like.amount * Decimal(factor), valid_from=NOON.date()))

    def end(self, offer_id: str) -> str:
        """Publish that the offer is sold no more from today on."""
        rows = [row for row in self.snapshot().prices_of(offer_id) if row.covers(NOON.date())]
        return self._publish(*(self._again(row, valid_to=NOON.date()) for row in rows))

    def _again(self, row: PriceRow, **changes: Any) -> NewPrice:
        fields = {name: getattr(row, name) for name in NewPrice.__slots__ if name != "supersedes"}
        return NewPrice(**{**fields, "observed_on": NOON.date(), **changes})

    def _publish(self, *prices: NewPrice) -> str:
        content = RevisionContent(prices=prices)
        published = self.database.transact_now(
            lambda c: publish(c, content, reason="a change of prices", actor="test", now=NOON), SYSTEM
        )
        return published.id


@pytest.fixture
def shop(client: TestClient) -> Shop:
    return Shop(client)


class Desk:
    """Walks one quote through its life, failing loudly where a step is refused."""

    def __init__(self, client: TestClient) -> None:
        self.client = client

    def create(self, **more: Any) -> dict[str, Any]:
        answer = self.client.post("/v1/quotes", json=job(**more))
        assert answer.status_code == 201, answer.text
        body: dict[str, Any] = answer.json()
        return body

    def act(self, quote_id: str, n: int, action: str, expect: int = 200, **body: Any) -> dict[str, Any]:
        answer = self.client.post(f"/v1/quotes/{quote_id}/revisions/{n}/{action}", json=body)
        assert answer.status_code == expect, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def issue(self, quote_id: str, n: int = 1, **body: Any) -> dict[str, Any]:
        if self.act(quote_id, n, "submit")["status"] == "in_review":
            self.act(quote_id, n, "approve", waivers=["accept_stale"])
        return self.act(quote_id, n, "issue", **body)

    def issued(self, **more: Any) -> tuple[str, dict[str, Any]]:
        quote_id = self.create(**more)["id"]
        return quote_id, self.issue(quote_id)

    def accept(self, revision: dict[str, Any], expect: int = 200, **more: Any) -> dict[str, Any]:
        body = {"content_sha256": revision["content_sha256"], **more}
        return self.act(revision["quote_id"], revision["revision"], "accept", expect, **body)

    def show(self, quote_id: str, n: int = 1) -> dict[str, Any]:
        answer = self.client.get(f"/v1/quotes/{quote_id}/revisions/{n}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


@pytest.fixture
def desk(client: TestClient) -> Desk:
    """The loopback caller."""
    return Desk(client)


Caller = Callable[..., Desk]


@pytest.fixture
def as_person(app: FastAPI, client: TestClient) -> Caller:
    """Gives a desk at which somebody named sits, with these scopes and no right to approve their own work."""

    def sit(actor: str, *scopes: str, tenant: str = LOOPBACK_TENANT) -> Desk:
        principal = Principal(
            tenant_id=tenant, actor=actor, scopes=frozenset(scopes), is_machine=False, may_self_approve=False
        )

        class Fixed:
            async def authenticate(self, _request: object) -> Principal:
                return principal

        app.state.authenticator = Fixed()
        return Desk(client)

    return sit
