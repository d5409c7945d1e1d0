"""A retry gets the first answer: draft-ietf-httpapi-idempotency-key-header as api.md 2.6 fixes it."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

import pytest
from fastapi import Depends, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel
from sqlalchemy import Connection, func, select
from starlette.responses import Response

from app.access.dependencies import idempotent
from app.foundation.clock import ManualClock
from app.foundation.idempotency import LEASE, Answer, Idempotency, parse_key
from app.foundation.problems import Problem
from app.foundation.tables import idempotency_keys

KEY = {"Idempotency-Key": '"8e03978e-40d5-43e8-bc93-6894a57f9324"'}


class Order(BaseModel):
    count: int


class Effects:
    """Counts how often the effect ran."""

    def __init__(self) -> None:
        self.runs = 0
        self.problem: Problem | None = None
        self.handles: list[Idempotency] = []


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
def shop(app: FastAPI, effects: Effects) -> Iterator[TestClient]:
    @app.post("/shop/{name}")
    async def order(name: str, idempotency: Annotated[Idempotency, Depends(idempotent)], body: Order) -> Response:
        def work(connection: Connection) -> Answer:
            effects.runs += 1
            if effects.problem:
                raise effects.problem
            return Answer(status=201, body={"run": effects.runs}, headers={"Location": "/shop/1", "ETag": '"r1"'})

        return await idempotency.transact(work)

    @app.post("/long")
    async def long(idempotency: Annotated[Idempotency, Depends(idempotent)], body: Order) -> Response:
        await idempotency.reserve()
        effects.handles.append(idempotency)
        if body.count == 0:
            return Response(status_code=202)  # as if the process died here: the lease is left behind

        def work(connection: Connection) -> Answer:
            effects.runs += 1
            return Answer(status=201, body={"run": effects.runs})

        return await idempotency.transact(work)

    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def test_a_replay_is_the_first_answer_to_the_byte(shop: TestClient, effects: Effects) -> None:
    first = shop.post("/shop/a", json={"count": 1}, headers=KEY)
    again = shop.post("/shop/a", content=b'{ "count" : 1 }', headers={**KEY, "Content-Type": "application/json"})
    bare = shop.post("/shop/a", json={"count": 1}, headers={"Idempotency-Key": KEY["Idempotency-Key"].strip('"')})
    assert effects.runs == 1
    for replay in (again, bare):
        assert (replay.status_code, replay.content) == (first.status_code, first.content)
        assert replay.headers["location"] == "/shop/1"
        assert replay.headers["etag"] == '"r1"'
        assert replay.headers["idempotent-replayed"] == "true"
        assert replay.headers["idempotency-expires"] == first.headers["idempotency-expires"]
    assert "idempotent-replayed" not in first.headers


def test_a_key_used_for_something_else_is_refused(shop: TestClient, effects: Effects) -> None:
    shop.post("/shop/a", json={"count": 1}, headers=KEY)
    other_body = shop.post("/shop/a", json={"count": 2}, headers=KEY)
    other_path = shop.post("/shop/b", json={"count": 1}, headers=KEY)
    invalid_body = shop.post("/shop/a", json={"count": "many"}, headers=KEY)
    assert [a.json()["slug"] for a in (other_body, other_path, invalid_body)] == ["idempotency-key-reused"] * 3
    assert other_body.status_code == 422
    assert other_body.json()["first_seen_at"] == "2026-11-30T12:00:00.000Z"
    assert effects.runs == 1


def test_business_refusals_are_remembered_and_faults_are_not(shop: TestClient, effects: Effects) -> None:
    effects.problem = Problem("draft-exists", "There is a draft.", draft="/v1/x")
    first = shop.post("/shop/a", json={"count": 1}, headers=KEY)
    effects.problem = None
    again = shop.post("/shop/a", json={"count": 1}, headers=KEY)
    assert (first.status_code, again.status_code) == (409, 409)
    assert again.json() == first.json()
    assert again.headers["content-type"] == "application/problem+json"
    other = {"Idempotency-Key": '"other"'}
    effects.problem = Problem("precondition-failed", "Stale.")
    assert shop.post("/shop/a", json={"count": 1}, headers=other).status_code == 412
    effects.problem = None
    assert shop.post("/shop/a", json={"count": 1}, headers=other).status_code == 201


def test_a_request_refused_by_its_schema_leaves_no_key(shop: TestClient, effects: Effects) -> None:
    assert shop.post("/shop/a", json={"count": "many"}, headers=KEY).status_code == 422
    stored = shop.app.state.database.read_now(
        lambda c: c.execute(select(func.count()).select_from(idempotency_keys)).scalar_one(), "ten_loopback"
    )
    assert stored == 0
    assert shop.post("/shop/a", json={"count": 1}, headers=KEY).status_code == 201


def test_a_key_is_forgotten_after_72_hours(shop: TestClient, effects: Effects, clock: ManualClock) -> None:
    shop.post("/shop/a", json={"count": 1}, headers=KEY)
    clock.advance(timedelta(hours=71, minutes=59))
    assert shop.post("/shop/a", json={"count": 1}, headers=KEY).json() == {"run": 1}
    clock.advance(timedelta(minutes=1))
    assert shop.post("/shop/a", json={"count": 1}, headers=KEY).json() == {"run": 2}


def test_an_abandoned_calculation_is_taken_over_when_its_lease_ends(
    shop: TestClient, effects: Effects, clock: ManualClock
) -> None:
    assert shop.post("/long", json={"count": 0}, headers=KEY).status_code == 202
    busy = shop.post("/long", json={"count": 0}, headers=KEY)
    assert (busy.status_code, busy.json()["slug"]) == (409, "idempotency-in-progress")
    assert 1 < int(busy.headers["retry-after"]) <= LEASE.total_seconds()
    clock.advance(timedelta(seconds=int(busy.headers["retry-after"]) - 1))
    assert shop.post("/long", json={"count": 0}, headers=KEY).headers["retry-after"] == "1"
    clock.advance(timedelta(seconds=1))
    assert shop.post("/long", json={"count": 0}, headers=KEY).status_code == 202
    assert shop.post("/long", json={"count": 1}, headers={"Idempotency-Key": '"new"'}).json() == {"run": 1}
    assert shop.post("/long", json={"count": 1}, headers={"Idempotency-Key": '"new"'}).json() == {"run": 1}


def test_a_lease_is_kept_by_renewing_it_and_not_by_who_lost_it(
    shop: TestClient, effects: Effects, clock: ManualClock
) -> None:
    assert shop.post("/long", json={"count": 0}, headers=KEY).status_code == 202
    assert shop.portal is not None
    for _ in range(3):
        clock.advance(LEASE - timedelta(seconds=1))
        shop.portal.call(effects.handles[0].renew)
    assert shop.post("/long", json={"count": 0}, headers=KEY).headers["retry-after"] == str(int(LEASE.total_seconds()))
    clock.advance(LEASE)
    assert shop.post("/long", json={"count": 0}, headers=KEY).status_code == 202
    clock.advance(LEASE - timedelta(seconds=1))
    shop.portal.call(effects.handles[0].renew)
    assert shop.post("/long", json={"count": 0}, headers=KEY).headers["retry-after"] == "1"


@pytest.mark.parametrize("header", ['""', "two words", '"a', "é", "x" * 256, '"' + "x" * 256 + '"', ""])
def test_malformed_keys_are_refused(header: str) -> None:
    with pytest.raises(Problem, match="idempotency-key-invalid"):
        parse_key(header)


def test_racing_twins_act_once(shop: TestClient, effects: Effects) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def post(body: int) -> int:
        return shop.post("/shop/a", json={"count": body}, headers=KEY).status_code

    with ThreadPoolExecutor(16) as pool:
        statuses = list(pool.map(post, [1] * 20 + [2] * 5))
    assert effects.runs == 1
    assert sorted(statuses) in ([201] * 20 + [422] * 5, [201] * 5 + [422] * 20)
