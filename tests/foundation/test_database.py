"""Units of work: exactly once, after the commit, apart by tenant, again when the database asks for it."""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from sqlalchemy import Column, Connection, Integer, MetaData, String, Table, event, func, insert, select, text
from sqlalchemy.exc import OperationalError

from app.foundation.columns import plain_decimal
from app.foundation.database import SYSTEM, CanonicalJson, Database, ExactDecimal, UtcDateTime
from app.foundation.engines import create_migrator
from app.foundation.problems import Problem
from app.foundation.tenancy import APP_ROLE, SYSTEM_ROLE

local = MetaData()
things = Table(
    "test_things",
    local,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("tenant", String(20)),
    Column("amount", ExactDecimal),
    Column("at", UtcDateTime),
    Column("document", CanonicalJson),
)


@pytest.fixture
def store(database: Database) -> Iterator[Database]:
    engine = create_migrator(database.url)
    local.create_all(engine)
    if not database.is_sqlite:
        with engine.begin() as connection:
            connection.execute(text(f"GRANT ALL ON test_things TO {APP_ROLE}, {SYSTEM_ROLE}"))
    yield database
    local.drop_all(engine)
    engine.dispose()


def add(number: int, tenant: str = "a") -> Callable[[Connection], int]:
    def work(connection: Connection) -> int:
        connection.execute(insert(things).values(id=number, tenant=tenant))
        return number

    return work


def count(database: Database) -> int:
    return database.read_now(lambda c: c.execute(select(func.count()).select_from(things)).scalar_one())


def test_many_units_share_commits_and_each_gets_its_own_answer(store: Database) -> None:
    commits: list[str] = []
    event.listen(store.writer_engine, "commit", lambda _connection: commits.append("commit"))

    async def run() -> list[int]:
        return await asyncio.gather(*(store.transact(add(n), tenant="a") for n in range(100)))

    assert asyncio.run(run()) == list(range(100))
    assert count(store) == 100
    assert len(commits) < 100


def test_a_unit_that_fails_takes_nothing_and_nobody_with_it(store: Database) -> None:
    def half(connection: Connection) -> None:
        connection.execute(insert(things).values(id=1_000))
        raise Problem("not-found", "No such thing.")

    async def run() -> list[object]:
        units = [add(1), half, add(1), add(2)]
        return await asyncio.gather(*(store.transact(u, tenant="a") for u in units), return_exceptions=True)

    first, failed, duplicate, last = asyncio.run(run())
    assert (first, last) == (1, 2)
    assert isinstance(failed, Problem)
    assert type(duplicate).__name__ == "IntegrityError"
    assert count(store) == 2


def test_a_failed_commit_raises_and_stores_nothing(store: Database) -> None:
    def refuse(_connection: Connection) -> None:
        raise OSError("disk gone")

    event.listen(store.writer_engine, "commit", refuse)

    async def run() -> list[object]:
        return await asyncio.gather(*(store.transact(add(n), tenant="a") for n in range(3)), return_exceptions=True)

    outcomes = asyncio.run(run())
    event.remove(store.writer_engine, "commit", refuse)
    assert [type(o) for o in outcomes] == [OSError] * 3, outcomes
    assert count(store) == 0


def test_tenants_never_share_a_transaction(store: Database) -> None:
    seen: list[set[str]] = [set()]
    event.listen(store.writer_engine, "begin", lambda _connection: seen.append(set()))

    def work(tenant: str):
        def unit(connection: Connection) -> None:
            seen[-1].add(tenant)
            connection.execute(select(func.count()).select_from(things))

        return unit

    async def run() -> None:
        await asyncio.gather(*(store.transact(work(f"t{n % 3}"), tenant=f"t{n % 3}") for n in range(90)))

    asyncio.run(run())
    assert all(len(tenants) <= 1 for tenants in seen)
    assert sum(len(tenants) for tenants in seen) >= 3


def test_a_full_queue_is_refused_with_503(database_url: str) -> None:
    small = Database(database_url, queue_limit=2)

    def slow(connection: Connection) -> None:
        if small.is_sqlite:
            time.sleep(0.2)
        else:
            connection.execute(text("SELECT pg_sleep(0.2)"))

    async def run() -> list[object]:
        first = asyncio.create_task(small.transact(slow, tenant="x"))
        await asyncio.sleep(0.05)
        rest = [small.transact(slow, tenant=f"t{n}") for n in range(5)]
        return await asyncio.gather(first, *rest, return_exceptions=True)

    outcomes = asyncio.run(run())
    small.close()
    refused = [o for o in outcomes if isinstance(o, Problem)]
    assert len(refused) == 3
    assert {p.slug for p in refused} == {"overloaded"}
    assert {p.status for p in refused} == {503}


def test_a_transient_failure_is_run_again(store: Database) -> None:
    runs: list[int] = []

    def unit(connection: Connection) -> str:
        runs.append(1)
        if len(runs) < 3:
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = 5
            raise OperationalError("x", {}, busy)
        connection.execute(insert(things).values(id=7))
        return "done"

    assert asyncio.run(store.transact(unit, tenant="a")) == "done"
    assert len(runs) == 3
    assert count(store) == 1


def test_closing_finishes_what_is_waiting_and_refuses_the_rest(store: Database) -> None:
    async def run() -> list[object]:
        waiting = [asyncio.create_task(store.transact(add(n), tenant=f"t{n}")) for n in range(20)]
        await asyncio.sleep(0)
        await asyncio.to_thread(store._writer.close)
        late = store.transact(add(99), tenant="a")
        return await asyncio.gather(*waiting, late, return_exceptions=True)

    *done, late = asyncio.run(run())
    assert done == list(range(20))
    assert isinstance(late, Problem)
    assert late.slug == "overloaded"


def test_readers_cannot_write(store: Database) -> None:
    with pytest.raises(Exception, match=r"read.?only"):
        store.read_now(add(1), SYSTEM)


@pytest.mark.parametrize(
    "amount", ["0", "98.32", "90071992547409.93", "12345678901234567890123456.123456789012", "-0.000000000001", "1E+3"]
)
def test_decimals_come_back_exactly(store: Database, amount: str) -> None:
    value = Decimal(amount)
    store.transact_now(lambda c: c.execute(insert(things).values(id=1, amount=value)))
    read = store.read_now(lambda c: c.execute(select(things.c.amount)).scalar_one())
    assert read == value
    if store.is_sqlite:
        stored = store.read_now(lambda c: c.execute(text("SELECT amount FROM test_things")).scalar_one())
        assert stored == plain_decimal(value)
        assert "E" not in stored


@pytest.mark.parametrize("amount", [Decimal("0.1234567890123"), Decimal("1E+26"), Decimal("NaN"), 1.5])
def test_decimals_that_would_be_rounded_are_refused(store: Database, amount: object) -> None:
    with pytest.raises(Exception, match=r"exact|number"):
        store.transact_now(lambda c: c.execute(insert(things).values(id=1, amount=amount)))
    assert count(store) == 0


def test_times_and_documents_come_back_as_they_were(store: Database) -> None:
    at = datetime.fromisoformat("2026-12-01T01:02:03.000004+08:00")
    document = {"b": "2", "a": [1, 1e22, "é"]}
    store.transact_now(lambda c: c.execute(insert(things).values(id=1, at=at, document=document)))
    row = store.read_now(lambda c: c.execute(select(things.c.at, things.c.document)).one())
    stored = store.read_now(lambda c: c.execute(text("SELECT document FROM test_things")).scalar_one())
    assert row.at == at
    assert row.at.tzinfo is UTC
    assert row.document == document
    assert stored == '{"a":[1,1e+22,"é"],"b":"2"}'
    with pytest.raises(Exception, match="zone"):
        store.transact_now(lambda c: c.execute(insert(things).values(id=2, at=at.replace(tzinfo=None))))
