"""Prefer: respond-async (RFC 7240): a job is accepted once, has its effect once, and only its tenant sees it."""

import asyncio
import signal
import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app.access import service as access
from app.access.principal import LOOPBACK_PRINCIPAL, TENANT_SCOPES
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM, Database
from app.foundation.prefer import Preference, read_preference
from app.jobs import service
from app.jobs.tables import jobs
from app.jobs.worker import JobWorker
from app.quotes.asked import KINDS
from app.quotes.preparing import Plan
from app.quotes.tables import quotes
from tests.quotes.conftest import Caller, job
from tests.quotes.test_races import served

ASYNC = {"Prefer": "respond-async"}
KEY = {"Idempotency-Key": '"1f0c3f6e-6b0c-4c6e-8f37-0a7f5e2f9d11"'}


def run_jobs(client: TestClient, worker: JobWorker | None = None) -> int:
    """Let a worker take what is due, and wait until it is done with it."""
    chosen = worker or client.app.state.job_worker

    async def run() -> int:
        taken = await chosen.run_due()
        await chosen.settle()
        return taken

    taken: int = client.portal.call(run)
    return taken


def another_worker(client: TestClient) -> JobWorker:
    state = client.app.state
    return JobWorker(state.database, state.clock, kinds=KINDS, budget_s=60)


def count_quotes(client: TestClient) -> int:
    count: int = client.app.state.database.read_now(
        lambda c: c.execute(select(func.count()).select_from(quotes)).scalar_one(), SYSTEM
    )
    return count


def accepted(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/quotes", json=job(**more), headers=ASYNC)
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


class Gate:
    """Holds calculations until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        self.entered = threading.Event()
        run = Plan.run

        def held(plan: Plan) -> Any:
            self.entered.set()
            assert self.open.wait(30)
            return run(plan)

        monkeypatch.setattr(Plan, "run", held)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def test_a_job_makes_the_quote_that_a_waiting_client_would_have_got(client: TestClient) -> None:
    answer = client.post("/v1/quotes", json=job(title="Later"), headers=ASYNC)
    made = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{made['id']}" == made["links"]["self"]
    assert answer.headers["preference-applied"] == "respond-async"
    assert answer.headers["retry-after"] == "1"
    assert (made["status"], made["kind"], made["result_url"]) == ("queued", "quote.create", None)
    assert count_quotes(client) == 0
    assert run_jobs(client) == 1
    shown = client.get(answer.headers["location"])
    assert shown.status_code == 200, shown.text
    assert "retry-after" not in shown.headers
    assert (shown.json()["status"], shown.json()["attempts"], shown.json()["problem"]) == ("done", 1, None)
    later = client.get(shown.json()["result_url"]).json()
    at_once = client.post("/v1/quotes", json=job(title="Later")).json()
    assert later["title"] == "Later"
    assert later["current_revision"]["content_sha256"] == at_once["current_revision"]["content_sha256"]
    assert later["owner"] == at_once["owner"]


def test_repricing_as_a_job_drafts_the_next_revision(client: TestClient, desk: Any) -> None:
    quote_id, _ = desk.issued()
    answer = client.post(f"/v1/quotes/{quote_id}/reprice", headers=ASYNC)
    assert (answer.status_code, answer.json()["kind"]) == (202, "quote.draft_revision")
    run_jobs(client)
    done = client.get(answer.headers["location"]).json()
    assert done["result_url"] == f"/v1/quotes/{quote_id}/revisions/2"
    assert client.get(done["result_url"]).json()["pricing"] == "reprice"


def test_what_can_be_refused_at_once_is_not_made_a_job(client: TestClient, desk: Any) -> None:
    unknown = client.post("/v1/quotes/quo_0/reprice", headers=ASYNC)
    invalid = client.post("/v1/quotes", json=job(terms={"currency": "XXX"}), headers=ASYNC)
    quote_id = desk.create()["id"]
    patch = {"changes": {"items": []}}
    patched = client.post(f"/v1/quotes/{quote_id}/reprice", json=patch, headers=ASYNC)
    assert [a.status_code for a in (unknown, invalid, patched)] == [404, 422, 422]
    assert run_jobs(client) == 0


def test_a_job_that_is_refused_says_why_in_the_readers_language(client: TestClient, desk: Any) -> None:
    quote_id = desk.create()["id"]
    answer = client.post(f"/v1/quotes/{quote_id}/reprice", headers=ASYNC)
    run_jobs(client)
    failed = client.get(answer.headers["location"]).json()
    assert (failed["status"], failed["result_url"]) == ("failed", None)
    assert (failed["problem"]["slug"], failed["problem"]["status"]) == ("draft-exists", 409)
    assert failed["problem"]["draft"] == f"/v1/quotes/{quote_id}/revisions/1"
    chinese = client.get(answer.headers["location"], headers={"Accept-Language": "zh-CN"}).json()
    assert chinese["problem"]["title"] == "已存在草稿版本"


def test_a_replay_gives_the_same_job(client: TestClient) -> None:
    first = client.post("/v1/quotes", json=job(), headers={**ASYNC, **KEY})
    run_jobs(client)
    again = client.post("/v1/quotes", json=job(), headers={**ASYNC, **KEY})
    assert (again.status_code, again.content) == (202, first.content)
    for name in ("location", "retry-after", "preference-applied"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["idempotent-replayed"] == "true"
    assert (run_jobs(client), count_quotes(client)) == (0, 1)


def test_what_ends_within_the_wait_is_answered_at_once(client: TestClient) -> None:
    answer = client.post("/v1/quotes", json=job(), headers={"Prefer": "wait=30, respond-async", **KEY})
    assert (answer.status_code, "preference-applied" in answer.headers) == (201, False)
    assert run_jobs(client) == 0


def test_what_does_not_end_within_the_wait_goes_on_as_a_job(client: TestClient, gate: Gate) -> None:
    wanted = {"Prefer": "respond-async, wait=1", **KEY}
    answer = client.post("/v1/quotes", json=job(), headers=wanted)
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    assert answer.headers["preference-applied"] == "respond-async, wait=1"
    gate.open.set()
    client.portal.call(client.app.state.job_worker.settle)
    done = client.get(answer.headers["location"]).json()
    assert (done["status"], done["attempts"]) == ("done", 1)
    assert client.get(done["result_url"]).status_code == 200
    again = client.post("/v1/quotes", json=job(), headers=wanted)
    assert (again.status_code, again.headers["location"]) == (202, answer.headers["location"])
    assert count_quotes(client) == 1


def test_a_cancelled_job_stores_nothing(client: TestClient, gate: Gate) -> None:
    waiting = accepted(client)
    cancelled = client.delete(waiting["links"]["self"])
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert client.delete(waiting["links"]["self"]).json()["status"] == "cancelled"
    running = client.post("/v1/quotes", json=job(), headers={"Prefer": "respond-async, wait=1"}).json()
    assert client.delete(running["links"]["self"]).json()["status"] == "cancelled"
    gate.open.set()
    client.portal.call(client.app.state.job_worker.settle)
    assert run_jobs(client) == 0
    assert client.get(running["links"]["self"]).json()["status"] == "cancelled"
    assert count_quotes(client) == 0


def test_a_finished_job_cannot_be_cancelled(client: TestClient) -> None:
    made = accepted(client)
    run_jobs(client)
    refused = client.delete(made["links"]["self"])
    assert (refused.status_code, refused.json()["slug"]) == (409, "invalid-transition")
    assert refused.json()["current_status"] == "done"


def test_the_job_of_a_dead_worker_is_taken_over_when_its_lease_ends(client: TestClient, clock: ManualClock) -> None:
    made = accepted(client)
    database: Database = client.app.state.database
    dead = database.transact_now(lambda c: service.claim(c, owner="wrk_dead", limit=1, clock=clock), SYSTEM)
    assert [job.id for job in dead] == [made["id"]]
    assert run_jobs(client) == 0
    clock.advance(service.LEASE + timedelta(seconds=1))
    assert run_jobs(client, another_worker(client)) == 1
    done = client.get(made["links"]["self"]).json()
    assert (done["status"], done["attempts"], count_quotes(client)) == ("done", 2, 1)


def test_a_frozen_worker_that_wakes_up_late_stores_nothing(client: TestClient, clock: ManualClock, gate: Gate) -> None:
    made = accepted(client)
    frozen = client.app.state.job_worker
    assert client.portal.call(frozen.run_due) == 1
    assert gate.entered.wait(10)
    clock.advance(service.LEASE + timedelta(seconds=1))
    other = another_worker(client)
    assert client.portal.call(other.run_due) == 1
    gate.open.set()
    client.portal.call(frozen.settle)
    client.portal.call(other.settle)
    done = client.get(made["links"]["self"]).json()
    assert (done["status"], done["attempts"], count_quotes(client)) == ("done", 2, 1)


def test_two_workers_do_a_job_once(client: TestClient) -> None:
    for _ in range(4):
        accepted(client)
    first, second = client.app.state.job_worker, another_worker(client)

    async def race() -> int:
        taken = 0
        while found := sum(await asyncio.gather(first.run_due(), second.run_due())):
            taken += found
            await first.settle()
            await second.settle()
        return taken

    assert client.portal.call(race) == 4
    assert count_quotes(client) == 4


def test_a_job_that_kills_its_process_again_and_again_is_given_up(client: TestClient, clock: ManualClock) -> None:
    made = accepted(client)
    database: Database = client.app.state.database
    for _ in range(service.MOST_ATTEMPTS):
        database.transact_now(lambda c: service.claim(c, owner="wrk_dead", limit=1, clock=clock), SYSTEM)
        clock.advance(service.LEASE + timedelta(seconds=1))
    assert run_jobs(client) == 0
    given_up = client.get(made["links"]["self"]).json()
    assert (given_up["status"], given_up["problem"]["slug"]) == ("failed", "internal")


def test_a_job_over_its_budget_fails(client: TestClient, gate: Gate) -> None:
    made = accepted(client)
    state = client.app.state
    assert run_jobs(client, JobWorker(state.database, state.clock, kinds=KINDS, budget_s=0.2)) == 1
    gate.open.set()
    failed = client.get(made["links"]["self"]).json()
    assert (failed["status"], failed["problem"]["slug"]) == ("failed", "calculation-timeout")
    assert count_quotes(client) == 0


def test_a_tenant_has_so_many_open_jobs_and_no_more(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "MOST_OPEN_JOBS", 1)
    accepted(client)
    refused = client.post("/v1/quotes", json=job(), headers={**ASYNC, **KEY})
    assert (refused.status_code, refused.json()["slug"]) == (429, "quota-exceeded")
    assert (refused.json()["violated-policies"], refused.headers["retry-after"]) == (["open-jobs"], "5")
    run_jobs(client)
    assert client.post("/v1/quotes", json=job(), headers={**ASYNC, **KEY}).status_code == 202


def test_another_tenants_job_is_not_there(client: TestClient, as_person: Caller) -> None:
    made = accepted(client)
    as_person("eve", "quotes:read", "quotes:write", tenant="other")
    shown, cancelled = client.get(made["links"]["self"]), client.delete(made["links"]["self"])
    assert (shown.status_code, cancelled.status_code) == (404, 404)
    assert shown.json()["detail"] == client.get("/v1/jobs/job_0").json()["detail"]


def test_a_job_acts_as_who_asked_for_it(client: TestClient, as_person: Caller) -> None:
    as_person("li.wei", "quotes:read", "quotes:write", "audit:read")
    made = accepted(client)
    run_jobs(client)
    result = client.get(client.get(made["links"]["self"]).json()["result_url"]).json()
    entries = client.get(f"/v1/quotes/{result['id']}/audit").json()["items"]
    assert (made["created_by"], result["created_by"]) == ("li.wei", "li.wei")
    assert [entry["actor"] for entry in entries] == ["li.wei"]


@pytest.mark.parametrize("revoked", [True, False])
def test_a_key_that_was_revoked_meanwhile_has_no_effect_any_more(
    client: TestClient, app: FastAPI, clock: ManualClock, revoked: bool
) -> None:
    database, now = app.state.database, clock.now()
    boss = replace(LOOPBACK_PRINCIPAL, actor="boss")
    key, _ = database.transact_now(
        lambda c: access.create_key(
            c,
            principal=boss,
            name="portal",
            scopes=sorted(TENANT_SCOPES),
            now=now,
            peppers=app.state.settings.pepper_list,
        ),
        boss.tenant_id,
    )

    class Fixed:
        async def authenticate(self, _request: object) -> object:
            return replace(LOOPBACK_PRINCIPAL, actor=key.id, key_id=key.id)

    app.state.authenticator = Fixed()
    made = accepted(client)
    if revoked:
        database.transact_now(lambda c: access.revoke_key(c, principal=boss, key_id=key.id, now=now), boss.tenant_id)
    run_jobs(client)
    ended = client.get(made["links"]["self"]).json()
    if revoked:
        assert (ended["status"], ended["problem"]["slug"], ended["problem"]["status"]) == (
            "failed", "unauthenticated", 401,
        )  # fmt: skip
        assert client.get("/v1/quotes").json()["items"] == []
    else:
        assert ended["status"] == "done"


def test_the_end_of_a_job_is_an_event(client: TestClient) -> None:
    made = accepted(client)
    run_jobs(client)
    client.portal.call(client.app.state.event_worker.publish)
    told = [e for e in client.get("/v1/events").json()["items"] if e["type"] == "job.completed"]
    assert [(e["subject"], e["data"]["status"]) for e in told] == [(made["id"], "done")]


def test_old_jobs_are_forgotten(client: TestClient, clock: ManualClock) -> None:
    old = accepted(client)
    run_jobs(client)
    kept = accepted(client)
    clock.advance(service.KEPT + timedelta(seconds=1))
    database: Database = client.app.state.database
    assert database.transact_now(lambda c: service.forget_old(c, clock=clock), SYSTEM) == 1
    assert client.get(old["links"]["self"]).status_code == 404
    assert client.get(kept["links"]["self"]).json()["status"] == "queued"


@pytest.mark.parametrize(
    ("header", "respond_async", "wait_s"),
    [
        ("", False, None),
        ("respond-async", True, None),
        ("Respond-Async, wait=10", True, 10),
        ('wait="7", respond-async; a=b', True, 7),
        ("wait=3, wait=9", False, 3),
        ("respond-async, wait=-1", True, None),
        ("respond-async, wait=soon", True, None),
        ("respond-async, wait=99999999999", True, None),
        ("handling=lenient, return=minimal", False, None),
        ("respond-asyncx", False, None),
    ],
)
def test_preferences_are_read_and_what_is_unknown_is_ignored(header: str, respond_async: bool, wait_s: Any) -> None:
    assert read_preference(header) == Preference(respond_async=respond_async, wait_s=wait_s)


def test_a_worker_that_starts_runs_what_was_left_behind(client: TestClient, app: FastAPI) -> None:
    made = accepted(client)

    async def start_and_wait() -> None:
        worker = another_worker(client)
        worker.start()
        for _ in range(200):
            await asyncio.sleep(0.05)
            status = await app.state.database.read(
                lambda c: c.execute(select(jobs.c.status)).scalar_one(), tenant=SYSTEM
            )
            if status == "done":
                break
        await worker.stop()

    client.portal.call(start_and_wait)
    assert client.get(made["links"]["self"]).json()["status"] == "done"


@pytest.mark.slow
def test_jobs_survive_a_killed_server(database_url: str) -> None:
    """What was accepted is done after a restart, once, whether it waited or ran when the process was killed."""
    with served(database_url) as (client, process):
        accepted_at = [client.post("/v1/quotes", json=job(), headers=ASYNC) for _ in range(8)]
        assert {answer.status_code for answer in accepted_at} == {202}
        process.send_signal(signal.SIGKILL)
    paths = {answer.headers["location"] for answer in accepted_at}
    with served(database_url) as (client, _process):
        until = time.monotonic() + 120
        shown = [client.get(path).json() for path in paths]
        while any(job["status"] in ("queued", "running") for job in shown) and time.monotonic() < until:
            time.sleep(0.5)
            shown = [client.get(path).json() for path in paths]
        assert {job["status"] for job in shown} == {"done"}
        assert len({job["result_url"] for job in shown}) == 8
        assert len(client.get("/v1/quotes").json()["items"]) == 8
