"""What a tenant may have: limits are data, refused with 429 and RateLimit fields, right across processes."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from fastapi.testclient import TestClient

from app.access import quotas, service, tenants
from app.access.principal import SCOPES
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM, Database
from app.foundation.problems import Problem
from tests.access.conftest import PEPPERS, bearer, make_key
from tests.quotes.conftest import job, seeded_postgres

__all__ = ["seeded_postgres"]
ROOT = Path(__file__).resolve().parents[2]
HOOK = {"url": "https://93.184.216.34/x"}


def limit(database: Database, tenant: str, **limits: int | None) -> None:
    database.transact_now(lambda c: tenants.change(c, tenant, {"quotas": limits}), SYSTEM)


def take(database: Database, now: datetime, tenant: str = "acme") -> None:
    database.transact_now(lambda c: quotas.take_quote(c, tenant, now), tenant)


def test_quotes_of_a_day_are_limited_until_midnight(guarded: TestClient, clock: ManualClock) -> None:
    database: Database = guarded.app.state.database
    make_key(database, "acme", clock.now())
    limit(database, "acme", quotes_per_day=2)
    for _ in range(2):
        take(database, clock.now())
    with pytest.raises(Problem) as refused:
        take(database, clock.now())
    problem = refused.value
    assert (problem.slug, problem.status, problem.extensions["violated-policies"]) == (
        "quota-exceeded",
        429,
        ["quotes_per_day"],
    )
    assert problem.headers["RateLimit-Policy"] == '"quotes_per_day";q=2;w=86400'
    assert problem.headers["RateLimit"] == '"quotes_per_day";r=0;t=43200'
    assert problem.headers["Retry-After"] == "43200"
    clock.advance(timedelta(hours=12))
    take(database, clock.now())


def test_a_refused_quote_counts_for_nothing(guarded: TestClient, clock: ManualClock) -> None:
    """The total is counted before the day, and the day refuses: both stand as before."""
    database: Database = guarded.app.state.database
    make_key(database, "acme", clock.now())
    limit(database, "acme", quotes_per_day=1)
    take(database, clock.now())
    for _ in range(3):
        with pytest.raises(Problem):
            take(database, clock.now())
    days, used = database.read_now(lambda c: service.usage_by_day(c, "acme", clock.now()), "acme")
    assert used["stored_quotes"] == 1
    assert days == {"2026-11-30": {"quotes_per_day": 1}}


def test_stored_quotes_are_limited_whatever_the_day(guarded: TestClient, clock: ManualClock) -> None:
    database: Database = guarded.app.state.database
    make_key(database, "acme", clock.now())
    limit(database, "acme", stored_quotes=1)
    take(database, clock.now())
    clock.advance(timedelta(days=3))
    with pytest.raises(Problem) as refused:
        take(database, clock.now())
    assert refused.value.extensions["violated-policies"] == ["stored_quotes"]
    assert "Retry-After" not in refused.value.headers
    limit(database, "acme", stored_quotes=None)
    take(database, clock.now())


def test_a_limit_of_zero_refuses_the_first(guarded: TestClient, clock: ManualClock) -> None:
    database: Database = guarded.app.state.database
    make_key(database, "acme", clock.now())
    limit(database, "acme", quotes_per_day=0)
    with pytest.raises(Problem, match="quota-exceeded"):
        take(database, clock.now())


def test_webhooks_are_limited_and_a_deleted_one_makes_room(guarded: TestClient, clock: ManualClock) -> None:
    who = bearer(make_key(guarded.app.state.database, "acme", clock.now()))
    limit(guarded.app.state.database, "acme", webhooks=1)

    def make() -> httpx.Response:
        return guarded.post("/v1/webhooks", json=HOOK, headers={**who, "Idempotency-Key": str(uuid4())})

    first, second = make(), make()
    assert (first.status_code, second.status_code, second.json()["slug"]) == (201, 429, "quota-exceeded")
    assert second.headers["ratelimit"] == '"webhooks";r=0'
    assert guarded.delete(f"/v1/webhooks/{first.json()['id']}", headers=who).status_code == 204
    assert make().status_code == 201


@pytest.mark.parametrize("path", ["/v1/estimates", "/v1/estimates/sensitivity", "/v1/quotes"])
def test_items_of_a_request_are_limited(guarded: TestClient, clock: ManualClock, path: str) -> None:
    who = bearer(make_key(guarded.app.state.database, "acme", clock.now()))
    limit(guarded.app.state.database, "acme", items_per_request=1)
    body = {"items": [{**job()["items"][0], "id": name} for name in ("a", "b")]}
    refused = guarded.post(path, json=body, headers={**who, "Idempotency-Key": str(uuid4())})
    assert (refused.status_code, refused.json()["violated-policies"]) == (429, ["items_per_request"])
    assert refused.json()["limit"] == 1


def test_usage_shows_days_and_limits(guarded: TestClient, clock: ManualClock) -> None:
    database: Database = guarded.app.state.database
    who = bearer(make_key(database, "acme", clock.now()))
    take(database, clock.now())
    guarded.get("/v1/me", headers=who)
    shown = guarded.get("/v1/usage", headers=who).json()
    assert shown["days"] == [{"day": "2026-11-30", "requests": 2, "estimates": 0, "quotes": 1}]
    by_name = {row["name"]: row for row in shown["quotas"]}
    assert by_name["stored_quotes"] == {"name": "stored_quotes", "limit": 1_000_000, "used": 1}
    assert by_name.keys() == quotas.QUOTAS.keys()
    clock.advance(timedelta(days=1))
    later = guarded.get("/v1/usage", headers=who).json()
    assert [day["requests"] for day in later["days"]] == [2, 1]
    other = bearer(make_key(database, "other", clock.now()))
    assert guarded.get("/v1/usage", headers=other).json()["days"] == [
        {"day": "2026-12-01", "requests": 1, "estimates": 0, "quotes": 0}
    ]


def test_the_loopback_default_is_counted_and_not_limited(client: TestClient, clock: ManualClock) -> None:
    take(client.app.state.database, clock.now(), "ten_loopback")
    shown = client.get("/v1/usage").json()
    assert shown["quotas"] == []
    assert shown["days"][0]["quotes"] == 1


@contextmanager
def serving(url: str, tmp_path: Path, number: int) -> Iterator[str]:
    """A process of its own that serves on loopback; keys are asked for because there are some."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "GPUQUOTE_DATABASE_URL": url,
        "GPUQUOTE_PORT": str(port),
        "GPUQUOTE_WORKERS": "1",
        "GPUQUOTE_LOG_LEVEL": "ERROR",
        "GPUQUOTE_PEPPERS": PEPPERS,
        "GPUQUOTE_BACKGROUND_WORK": "false",
    }
    with (tmp_path / f"{number}.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "app"], cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline:
                try:
                    if httpx.get(f"{address}/healthz", timeout=30).status_code == 200:
                        break
                except httpx.TransportError:
                    time.sleep(0.2)
            yield address
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.mark.postgres
@pytest.mark.slow
def test_two_processes_together_keep_a_tenant_to_its_quotas(seeded_postgres: str, tmp_path: Path) -> None:
    database = Database(seeded_postgres)
    now = datetime.fromisoformat("2026-11-30T12:00:00+00:00")
    who = bearer(make_key(database, "shared-quota", now, SCOPES))
    limit(database, "shared-quota", quotes_per_day=3, webhooks=4)
    with serving(seeded_postgres, tmp_path, 1) as first, serving(seeded_postgres, tmp_path, 2) as second:

        def ask(n: int) -> tuple[str, int, int]:
            path, body = ("/v1/quotes", job()) if n % 2 else ("/v1/webhooks", HOOK)
            process = n // 2 % 2
            headers = {**who, "Idempotency-Key": str(uuid4())}
            answer = httpx.post(f"{(first, second)[process]}{path}", json=body, headers=headers, timeout=120)
            return path, process, answer.status_code

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(ask, range(24)))
    database.close()
    statuses = {path: sorted(s for p, _, s in answers if p == path) for path in ("/v1/quotes", "/v1/webhooks")}
    assert statuses["/v1/quotes"] == [201] * 3 + [429] * 9
    assert statuses["/v1/webhooks"] == [201] * 4 + [429] * 8
    assert {process for _, process, _ in answers} == {0, 1}
