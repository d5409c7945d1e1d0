"""Requests a minute: never more than the limit, however many workers there are."""

import asyncio

import pytest
from fastapi.testclient import TestClient

from app.access.limits import RateLimiter
from app.foundation.clock import ManualClock
from app.foundation.database import Database
from app.foundation.settings import Settings
from app.main import create_app
from tests.access.conftest import bearer, make_key


def test_the_limit_answers_429_with_its_fields(guarded_settings: Settings, clock: ManualClock) -> None:
    settings = guarded_settings.model_copy(update={"rate_limit_per_minute": 3})
    with TestClient(create_app(settings, clock=clock), raise_server_exceptions=False) as client:
        key = bearer(make_key(client.app.state.database, "acme", clock.now()))
        answers = [client.get("/v1/me", headers=key) for _ in range(5)]
        other = bearer(make_key(client.app.state.database, "other", clock.now()))
        assert client.get("/v1/me", headers=other).status_code == 200
    assert [a.status_code for a in answers] == [200, 200, 200, 429, 429]
    assert answers[0].headers["ratelimit-policy"] == '"default";q=3;w=60'
    assert [a.headers["ratelimit"].split(";")[1] for a in answers] == ["r=2", "r=1", "r=0", "r=0", "r=0"]
    problem = answers[3].json()
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert problem["violated-policies"] == ["default"]
    assert answers[3].headers["retry-after"] == "60"


def test_a_new_minute_begins_anew(guarded_settings: Settings, clock: ManualClock) -> None:
    from datetime import timedelta

    settings = guarded_settings.model_copy(update={"rate_limit_per_minute": 1})
    with TestClient(create_app(settings, clock=clock), raise_server_exceptions=False) as client:
        key = bearer(make_key(client.app.state.database, "acme", clock.now()))
        first, second = (client.get("/v1/me", headers=key).status_code for _ in range(2))
        clock.advance(timedelta(minutes=1))
        third = client.get("/v1/me", headers=key).status_code
    assert (first, second, third) == (200, 429, 200)


@pytest.mark.postgres
def test_workers_share_one_limit_on_postgresql(postgres_url: str, clock: ManualClock) -> None:
    databases = [Database(postgres_url) for _ in range(3)]
    limiters = [RateLimiter(database, clock) for database in databases]

    async def run() -> list[int]:
        async def worker(limiter: RateLimiter) -> int:
            decisions = [await limiter.take("shared", limit=100) for _ in range(80)]
            return sum(decision.allowed for decision in decisions)

        return await asyncio.gather(*(worker(limiter) for limiter in limiters))

    allowed = asyncio.run(run())
    for database in databases:
        database.close()
    assert sum(allowed) == 100


@pytest.mark.postgres
def test_a_burst_in_one_worker_leaves_the_others_their_share(postgres_url: str, clock: ManualClock) -> None:
    databases = [Database(postgres_url) for _ in range(2)]
    one, other = (RateLimiter(database, clock) for database in databases)

    async def run() -> tuple[int, bool]:
        burst = await asyncio.gather(*(one.take("busy", limit=600) for _ in range(60)))
        return sum(decision.allowed for decision in burst), (await other.take("busy", limit=600)).allowed

    taken = asyncio.run(run())
    for database in databases:
        database.close()
    assert taken == (60, True)
