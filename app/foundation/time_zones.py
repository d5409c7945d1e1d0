"""Names of the IANA time zone database."""

from functools import lru_cache
from zoneinfo import available_timezones

# in the database's folders, and the zone of nobody or of the host: another machine would name another day
NO_PLACE = {"localtime", "Factory"}


def is_zone(name: str) -> bool:
    """Say whether ``name`` is a zone of the IANA database, the same on every machine."""
    return name in _zones()


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    """All zones; finding them walks hundreds of files."""
    return frozenset(available_timezones() - NO_PLACE)
