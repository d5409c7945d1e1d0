"""The audit chain: append-only in the database, and any change to it is found."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import text

from app.access import audit
from app.access.principal import LOOPBACK_PRINCIPAL, Principal
from app.foundation.database import SYSTEM, Database
from app.foundation.engines import create_migrator

AT = datetime(2026, 12, 1, 8, 0, 0, 123456, tzinfo=UTC)
OTHER = Principal(tenant_id="ten_other", actor="key_x", scopes=frozenset())


def write(database: Database, number: int, principal: Principal = LOOPBACK_PRINCIPAL) -> None:
    for n in range(number):
        database.transact_now(
            lambda c, n=n: audit.record(
                c,
                principal=principal,
                at=AT,
                action="quote.issue",
                subject=f"quo_{n % 2}",
                after_sha256="ab" * 32,
                reason="because",
                details={"n": n},
            ),
            principal.tenant_id,
        )


def verified(database: Database, tenant_id: str = LOOPBACK_PRINCIPAL.tenant_id) -> audit.AuditVerification:
    return database.read_now(lambda c: audit.verify(c, tenant_id), tenant_id)


def tamper(database: Database, statement: str) -> None:
    """Change rows as somebody with full power over the database would."""
    engine = create_migrator(database.url)
    with engine.begin() as connection:
        if database.is_sqlite:
            for action in ("update", "delete"):
                connection.execute(text(f"DROP TRIGGER IF EXISTS audit_entries_no_{action}"))
        else:
            connection.execute(text("SET session_replication_role = replica"))
        connection.execute(text(statement))
    engine.dispose()


def test_each_tenant_has_its_own_whole_chain(database: Database) -> None:
    write(database, 5)
    write(database, 2, OTHER)
    assert (verified(database).match, verified(database).entries) == (True, 5)
    assert verified(database, "ten_other").entries == 2
    of_one = database.read_now(lambda c: audit.entries(c, "ten_loopback", subject="quo_1"), "ten_loopback")
    assert [entry.sequence for entry in of_one] == [2, 4]
    assert of_one[0].at == AT


@pytest.mark.parametrize(
    ("statement", "broken_at"),
    [
        ("UPDATE audit_entries SET actor = 'somebody' WHERE sequence = 3", 3),
        ("DELETE FROM audit_entries WHERE sequence = 2", 2),
        ("DELETE FROM audit_entries WHERE sequence = 5", 5),
        ("UPDATE audit_heads SET sequence = 4", 6),
    ],
)
def test_a_change_by_anybody_is_found(database: Database, statement: str, broken_at: int) -> None:
    write(database, 5)
    tamper(database, statement)
    outcome = verified(database)
    assert not outcome.match
    assert outcome.broken_at == broken_at
    assert outcome.reason


@pytest.mark.parametrize("statement", ["UPDATE audit_entries SET reason = 'x'", "DELETE FROM audit_entries"])
def test_the_database_refuses_to_change_an_entry(database: Database, statement: str) -> None:
    write(database, 1)
    with pytest.raises(Exception, match=r"append-only|permission denied"):
        database.transact_now(lambda c: c.execute(text(statement)), SYSTEM)
    assert verified(database).match


def test_concurrent_writers_do_not_fork_the_chain(database: Database) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: write(database, 5), range(8)))
    outcome = verified(database)
    assert (outcome.match, outcome.entries) == (True, 40)
