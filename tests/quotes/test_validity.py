from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.quotes.validity import Validity, end_of_local_day, local_today, utc_text

ZONES = ["UTC", "Asia/Shanghai", "America/New_York", "America/Sao_Paulo", "Asia/Kathmandu", "Pacific/Kiritimati"]


def test_the_contract_example() -> None:
    validity = Validity(valid_from_on=date(2026, 12, 1), valid_through_on=date(2026, 12, 31), timezone="Asia/Shanghai")
    assert validity.as_content() == {
        "from": "2026-12-01",
        "through": "2026-12-31",
        "timezone": "Asia/Shanghai",
        "expires_at": "2026-12-31T16:00:00Z",
    }


@given(day=st.dates(date(1990, 1, 1), date(2037, 12, 31)), zone=st.sampled_from(ZONES))
def test_the_last_day_counts_in_full_and_not_an_instant_more(day: date, zone: str) -> None:
    end = end_of_local_day(day, zone)
    assert local_today(end - timedelta(microseconds=1), zone) == day
    assert local_today(end, zone) > day


@pytest.mark.parametrize(
    ("day", "zone", "end"),
    [
        # Sao Paulo sprang forward at midnight: 2018-11-04 began at 01:00.
        (date(2018, 11, 3), "America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
        # Havana falls back from 01:00 to 00:00: midnight happens twice, the first one ends the day before.
        (date(2025, 11, 1), "America/Havana", datetime(2025, 11, 2, 4, tzinfo=UTC)),
        # Samoa had no 30 December 2011.
        (date(2011, 12, 29), "Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ],
)
def test_odd_midnights(day: date, zone: str, end: datetime) -> None:
    assert end_of_local_day(day, zone) == end


def test_a_period_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="before valid_from"):
        Validity(valid_from_on=date(2026, 12, 2), valid_through_on=date(2026, 12, 1), timezone="UTC")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "../etc/passwd", "GMT+8 "])
def test_unknown_zones_are_refused(zone: str) -> None:
    with pytest.raises(ValueError, match="IANA"):
        Validity(valid_from_on=date(2026, 12, 1), valid_through_on=date(2026, 12, 1), timezone=zone)


def test_instants_are_written_in_utc_with_z() -> None:
    assert utc_text(datetime(2026, 12, 31, 16, 0, 0, 123456, tzinfo=UTC)) == "2026-12-31T16:00:00.123Z"
