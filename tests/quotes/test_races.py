"""Fifty at once, and a process that dies: no duplicate number, no lost update, no double effect, no half quote."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.access import audit
from app.access.principal import LOOPBACK_TENANT
from app.foundation.database import SYSTEM, Database
from app.foundation.idempotency import LEASE
from app.quotes.content import is_intact
from app.quotes.tables import quote_acceptances, quote_revisions, quotes
from tests.quotes.conftest import Desk, job
from tests.quotes.dying_server import POINTS

CLIENTS = 50


def at_once(call: Callable[[int], httpx.Response], clients: int = CLIENTS) -> list[httpx.Response]:
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(call, range(clients)))


def patiently(send: Callable[[], httpx.Response]) -> httpx.Response:
    """Come back as Retry-After says while the first request with the key is on its way or the service is busy."""
    for _ in range(60):
        answer = send()
        if answer.status_code not in (409, 429, 503) or "retry-after" not in answer.headers:
            break
        time.sleep(float(answer.headers["retry-after"]))
    return answer


def count(database: Database, table: Any) -> int:
    return database.read_now(lambda c: c.execute(select(func.count()).select_from(table)).scalar_one(), SYSTEM)


def test_fifty_creates_with_ten_keys_make_ten_quotes(client: TestClient) -> None:
    client.post("/v1/estimates", json=job())

    def create(n: int) -> httpx.Response:
        return patiently(lambda: client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": f'"k{n % 10}"'}))

    answers = at_once(create)
    assert Counter(a.status_code for a in answers) == {201: CLIENTS}
    assert len({a.json()["id"] for a in answers}) == 10
    assert sum("idempotent-replayed" in a.headers for a in answers) == CLIENTS - 10
    assert count(client.app.state.database, quotes) == count(client.app.state.database, quote_revisions) == 10


def test_fifty_issues_give_fifty_numbers_without_a_gap(client: TestClient, desk: Desk) -> None:
    assert client.put("/v1/approval-policy", json={"rules": []}).status_code == 200
    made = at_once(lambda _: client.post("/v1/quotes", json=job()))
    ids = [answer.json()["id"] for answer in made]
    at_once(lambda n: client.post(f"/v1/quotes/{ids[n]}/revisions/1/submit", json={}))
    issued = at_once(lambda n: client.post(f"/v1/quotes/{ids[n]}/revisions/1/issue", json={}))
    assert Counter(a.status_code for a in issued) == {200: CLIENTS}
    assert sorted(a.json()["number"] for a in issued) == [f"Q-2026-{n:06d}" for n in range(1, CLIENTS + 1)]
    database = client.app.state.database
    assert database.read_now(lambda c: audit.verify(c, LOOPBACK_TENANT), LOOPBACK_TENANT).match


def test_fifty_accepts_take_effect_once(client: TestClient, desk: Desk) -> None:
    quote_id, revision = desk.issued()
    body = {"content_sha256": revision["content_sha256"]}
    answers = at_once(lambda _: client.post(f"/v1/quotes/{quote_id}/revisions/1/accept", json=body))
    assert Counter(a.status_code for a in answers) == {200: 1, 409: CLIENTS - 1}
    assert count(client.app.state.database, quote_acceptances) == 1


def test_fifty_edits_of_one_edition_keep_one(client: TestClient, desk: Desk) -> None:
    quote_id = desk.create()["id"]
    path = f"/v1/quotes/{quote_id}/revisions/1"
    answers = at_once(lambda n: client.patch(path, json={"title": f"t{n}"}, headers={"If-Match": '"r1.1"'}))
    assert Counter(a.status_code for a in answers) == {200: 1, 412: CLIENTS - 1}
    won = next(a.json() for a in answers if a.status_code == 200)
    assert desk.show(quote_id)["spec"]["title"] == won["spec"]["title"]
    assert desk.show(quote_id)["etag"] == '"r1.2"'


def test_an_offer_is_accepted_or_replaced_never_both(client: TestClient, desk: Desk) -> None:
    quote_id, revision = desk.issued()
    client.post(f"/v1/quotes/{quote_id}/reprice")
    desk.act(quote_id, 2, "submit")
    desk.act(quote_id, 2, "approve", waivers=["accept_stale"])
    body = {"content_sha256": revision["content_sha256"]}
    steps = [("1/accept", body), ("2/issue", {})]
    answers = at_once(
        lambda n: client.post(f"/v1/quotes/{quote_id}/revisions/{steps[n % 2][0]}", json=steps[n % 2][1]), 20
    )
    assert all(a.status_code in (200, 409) for a in answers)
    first, second = desk.show(quote_id, 1)["status"], desk.show(quote_id, 2)["status"]
    assert (first, second) in {("accepted", "issued"), ("superseded", "issued"), ("accepted", "approved")}
    assert count(client.app.state.database, quote_acceptances) == (first == "accepted")


@contextmanager
def served(database_url: str, *, dies: str | None = None) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A real server process on a free port; ``dies`` names the point at which it kills itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"DATABASE_URL": database_url, "PORT": str(port), "LOG_LEVEL": "CRITICAL", "WORKERS": "1"}
    environment = {**os.environ, **{f"GPUQUOTE_{name}": value for name, value in settings.items()}}
    module = ["app"] if dies is None else ["tests.quotes.dying_server", dies]
    process = subprocess.Popen([sys.executable, "-m", *module], env=environment)
    client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30)
    try:
        for _ in range(600):
            try:
                if client.get("/healthz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.1)
        else:
            raise AssertionError("the server did not become ready")
        yield client, process
    finally:
        client.close()
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_killed_server_leaves_whole_quotes_or_none(database_url: str) -> None:
    """Answered quotes exist, unanswered ones are whole or absent, and a retry with the same key gives one quote."""
    answered: dict[str, str] = {}

    def post(client: httpx.Client, key: str) -> str | None:
        try:
            answer = client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": f'"{key}"'})
        except httpx.TransportError:
            return None
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    with served(database_url) as (client, process), ThreadPoolExecutor(8) as pool:
        post(client, "warm")
        asked = [pool.submit(post, client, f"k{n}") for n in range(60)]
        while sum(one.done() for one in asked) < 15:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        answered = {f"k{n}": found for n, one in enumerate(asked) if (found := one.result()) is not None}
    assert 0 < len(answered) < 60
    _check_whole(database_url, at_least=len(answered) + 1)
    with served(database_url) as (client, _process), ThreadPoolExecutor(8) as pool:
        again = dict(zip(range(60), pool.map(lambda n: post(client, f"k{n}"), range(60)), strict=True))
    assert all(again[int(key[1:])] == quote_id for key, quote_id in answered.items())
    _check_whole(database_url, at_least=61, at_most=61)


@pytest.mark.slow
@pytest.mark.parametrize("point", sorted(POINTS))
def test_a_server_killed_at_any_point_leaves_one_quote_to_the_retry(database_url: str, point: str) -> None:
    """An unanswered quote is whole or absent; the retry, when Retry-After says, gets one quote."""

    def post(client: httpx.Client) -> httpx.Response:
        return client.post("/v1/quotes", json=job(), headers={"Idempotency-Key": '"once"'})

    with served(database_url, dies=point) as (client, process):
        with pytest.raises(httpx.TransportError):
            post(client)
        assert process.wait(timeout=30) == -signal.SIGKILL
    stored = point == "committed"
    _check_whole(database_url, at_least=stored, at_most=stored)
    with served(database_url) as (client, _process):
        first = post(client)
        if first.status_code == 409:
            # The server came back before the lease ended.
            assert (point, first.json()["slug"]) == ("leased", "idempotency-in-progress")
            wait = float(first.headers["retry-after"])
            assert 0 < wait <= LEASE.total_seconds()
            time.sleep(wait)
            first = post(client)
        assert first.status_code == 201, first.text
        assert ("idempotent-replayed" in first.headers) is stored
        again = post(client)
        assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
        assert client.get(first.headers["location"]).json() == first.json()
    _check_whole(database_url, at_least=1, at_most=1)


def _check_whole(database_url: str, *, at_least: int, at_most: int = 61) -> None:
    database = Database(database_url)
    try:
        rows = database.read_now(lambda c: c.execute(select(quote_revisions)).all(), SYSTEM)
        heads = database.read_now(lambda c: c.execute(select(quotes.c.id)).scalars().all(), SYSTEM)
        assert {row.quote_id for row in rows} == set(heads)
        assert at_least <= len(heads) == len(rows) <= at_most
        assert all(is_intact(row.content, row.content_sha256) for row in rows)
        chain = database.read_now(lambda c: audit.verify(c, LOOPBACK_TENANT), LOOPBACK_TENANT)
        assert (chain.match, chain.entries) == (True, len(heads))
    finally:
        database.close()
