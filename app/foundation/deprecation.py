"""How an operation ends: Deprecation (RFC 9745), Sunset (RFC 8594) and links, declared on its route as data."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

from fastapi import Depends, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Deprecation:
    """Since when an operation should no longer be used, until when it works, and what takes its place.

    ``@router.get("/v1/old", **Deprecation(since=..., sunset=..., successor="/v1/new").declared())``; ``notice`` is the
    address of what people read about it.
    """

    since: datetime
    sunset: datetime | None = None
    successor: str | None = None
    notice: str | None = None

    def __post_init__(self) -> None:
        if self.since.tzinfo is None or (self.sunset is not None and self.sunset.tzinfo is None):
            raise ValueError("a deprecation needs times with a zone")
        if self.sunset is not None and self.sunset < self.since:
            raise ValueError("an operation does not end before it is deprecated")

    def headers(self) -> list[tuple[str, str]]:
        """Fields of every answer of the operation."""
        fields = [("Deprecation", f"@{int(self.since.timestamp())}")]
        if self.sunset is not None:
            fields.append(("Sunset", format_datetime(self.sunset.astimezone(UTC), usegmt=True)))
        links = {
            "deprecation": self.notice,
            "sunset": self.notice if self.sunset is not None else None,
            "successor-version": self.successor,
        }
        return fields + [("Link", f'<{target}>; rel="{relation}"') for relation, target in links.items() if target]

    def declared(self) -> dict[str, Any]:
        """Keyword arguments of the route: the document says ``deprecated``, every answer carries the fields."""
        return {"deprecated": True, "dependencies": [Depends(_announcing(self))]}


def _announcing(deprecation: Deprecation) -> Callable[[Request], Awaitable[None]]:
    async def announce(request: Request) -> None:
        request.scope.setdefault("state", {})["deprecation_headers"] = deprecation.headers()

    return announce
