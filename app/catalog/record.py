"""One fact of a revision that is not a price."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A fact as a revision keeps it; ``payload`` is JSON data, None = withdrawn from this revision on."""

    kind: str
    key: str
    payload: Any
