"""A price book that was renamed is one book, by whichever name or id it is asked for."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from app.access.principal import Principal
from app.catalog import pricebook_service as service
from app.catalog.pricebooks import PriceBook
from app.foundation.database import Database

AT = datetime(2026, 11, 30, tzinfo=UTC)
SOMEONE = Principal(tenant_id="ten_a", actor="someone", scopes=frozenset())


def save(database: Database, book: str | None, name: str) -> PriceBook:
    def work(connection: Any) -> PriceBook:
        return service.save_price_book(
            connection, SOMEONE, book, name=name, currency="USD", valid_from=date(2026, 1, 1), valid_to=None,
            priority=0, rules=(), now=AT,
        )  # fmt: skip

    return database.transact_now(work, "ten_a")


def withdraw(database: Database, book: str) -> PriceBook:
    return database.transact_now(lambda c: service.withdraw_price_book(c, SOMEONE, book, now=AT), "ten_a")


@pytest.mark.parametrize("change", [withdraw, lambda database, book: save(database, book, "third")])
def test_a_name_it_had_before_still_means_the_whole_book(
    database: Database, change: Callable[[Database, str], PriceBook]
) -> None:
    first = save(database, None, "first")
    save(database, first.id, "second")
    last = change(database, "first")
    assert (last.id, last.version) == (first.id, 3)
