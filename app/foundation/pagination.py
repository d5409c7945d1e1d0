"""Keyset paging: an opaque, signed cursor that knows the filters it was made for."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

import orjson
from fastapi import Query, Request, Response

from app.foundation.problems import Problem

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
_MAC_BYTES = 16
_PAGING_PARAMETERS = frozenset({"cursor", "limit"})

Row = TypeVar("Row")
Position = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What page is asked for. ``position`` is the sort key of the last row already seen, ``None`` on the first page."""

    limit: int
    position: Position | None
    filters_sha256: str
    signing_key: bytes
    path: str
    filters: tuple[tuple[str, str], ...]

    @property
    def fetch_limit(self) -> int:
        """Rows to select: one more than shown tells whether there is a next page."""
        return self.limit + 1

    def close(
        self, rows: Sequence[Row], position_of: Callable[[Row], Position], response: Response
    ) -> tuple[list[Row], str | None]:
        """Cut the extra row off, set the Link header, and return the rows with the next cursor."""
        shown = list(rows[: self.limit])
        if len(rows) <= self.limit:
            return shown, None
        cursor = encode_cursor(position_of(shown[-1]), self.filters_sha256, self.signing_key)
        query = urlencode([*self.filters, ("limit", str(self.limit)), ("cursor", cursor)])
        response.headers["Link"] = f'<{self.path}?{query}>; rel="next"'
        return shown, cursor


def filters_hash(path: str, filters: Sequence[tuple[str, str]]) -> str:
    return hashlib.sha256(orjson.dumps([path, sorted(filters)])).hexdigest()[:16]


def _mac(payload: bytes, signing_key: bytes) -> bytes:
    return hmac.new(signing_key, b"cursor\0" + payload, hashlib.sha256).digest()[:_MAC_BYTES]


def encode_cursor(position: Position, filters_sha256: str, signing_key: bytes) -> str:
    payload = orjson.dumps([filters_sha256, list(position)])
    return base64.urlsafe_b64encode(_mac(payload, signing_key) + payload).decode().rstrip("=")


def decode_cursor(cursor: str, filters_sha256: str, signing_key: bytes) -> Position:
    """Check the cursor and return the position in it."""
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid() from error
    mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(payload, signing_key)):
        raise _invalid()
    made_for, position = orjson.loads(payload)
    if made_for != filters_sha256:
        raise Problem(
            "cursor-filter-mismatch",
            "The cursor was made with other filters. Keep the filters while paging, or start without a cursor.",
        )
    return tuple(position)


def _invalid() -> Problem:
    return Problem("invalid-cursor", "The cursor is not one of ours or was changed. Start again without a cursor.")


async def page_request(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Rows on a page.")] = DEFAULT_LIMIT,
    cursor: Annotated[str | None, Query(max_length=2_000, description="next_cursor of the page before.")] = None,
) -> PageRequest:
    """Read ``limit`` and ``cursor``; every other query parameter is a filter the cursor is bound to."""
    signing_key: bytes = request.app.state.settings.signing_key
    filters = tuple(
        (name, value) for name, value in request.query_params.multi_items() if name not in _PAGING_PARAMETERS
    )
    made_for = filters_hash(request.url.path, filters)
    position = decode_cursor(cursor, made_for, signing_key) if cursor is not None else None
    return PageRequest(
        limit=limit,
        position=position,
        filters_sha256=made_for,
        signing_key=signing_key,
        path=request.url.path,
        filters=filters,
    )


def page_body(items: Sequence[Any], next_cursor: str | None) -> dict[str, Any]:
    """Return the one shape of every list."""
    return {"items": list(items), "next_cursor": next_cursor}
