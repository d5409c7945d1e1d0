"""The outbox: announced with the change, numbered after the commit, never skipped."""

from datetime import UTC, datetime

import pytest

from app.events import outbox
from app.foundation.database import SYSTEM, Database

AT = datetime(2026, 12, 1, 8, tzinfo=UTC)


def announce(database: Database, tenant: str, subject: str) -> None:
    database.transact_now(
        lambda c: outbox.announce(
            c, tenant_id=tenant, event_type="quote.issued", subject=subject, at=AT, data={"revision": 1}
        ),
        tenant,
    )


def feed(database: Database, tenant: str, after: int = 0) -> list[tuple[int | None, str]]:
    events = database.read_now(lambda c: outbox.feed(c, tenant, after_sequence=after, limit=100), tenant)
    return [(event.sequence, event.subject) for event in events]


def test_events_are_numbered_by_tenant_in_order(database: Database) -> None:
    for n in range(3):
        announce(database, "a", f"quo_{n}")
    announce(database, "b", "quo_b")
    assert feed(database, "a") == []
    assert database.transact_now(lambda c: outbox.publish_pending(c, now=AT), SYSTEM) == 4
    announce(database, "a", "quo_3")
    database.transact_now(lambda c: outbox.publish_pending(c, now=AT), SYSTEM)
    assert feed(database, "a") == [(n + 1, f"quo_{n}") for n in range(4)]
    assert feed(database, "a", after=3) == [(4, "quo_3")]
    assert feed(database, "b") == [(1, "quo_b")]


def test_a_rolled_back_change_announces_nothing(database: Database) -> None:
    def work(connection):
        outbox.announce(connection, tenant_id="a", event_type="quote.issued", subject="x", at=AT, data={})
        raise OSError("the change failed")

    with pytest.raises(OSError, match="the change failed"):
        database.transact_now(work, "a")
    assert database.transact_now(lambda c: outbox.publish_pending(c, now=AT), SYSTEM) == 0


def test_an_unknown_type_is_refused(database: Database) -> None:
    with pytest.raises(ValueError, match="not one of"):
        database.transact_now(
            lambda c: outbox.announce(c, tenant_id="a", event_type="quote.eaten", subject="x", at=AT, data={}), "a"
        )
