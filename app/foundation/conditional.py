"""Conditional requests (RFC 9110 section 13): strong tags, If-Match on guarded methods, If-None-Match on reads."""

import re
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Header, Request
from starlette.responses import Response

from app.foundation.canonical import sha256_hex
from app.foundation.problem_handlers import RenderedAnswer
from app.foundation.problems import Problem

_ENTITY_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


async def reads_if_match(
    if_match: Annotated[
        str | None,
        Header(alias="If-Match", description="ETag of what was read; 428 without, 412 when it changed meanwhile."),
    ] = None,
) -> None:
    del if_match


async def reads_if_none_match(
    if_none_match: Annotated[
        str | None, Header(alias="If-None-Match", description="ETag of what the client holds; 304 while it is current.")
    ] = None,
) -> None:
    del if_none_match


# On the routes that call the functions below: the API document says which header they read.
GUARDED = [Depends(reads_if_match)]
TAGGED = [Depends(reads_if_none_match)]


def strong_etag(content: str | bytes) -> str:
    """Return a strong entity tag of the content, as it stands in the header (quotes included)."""
    data = content.encode() if isinstance(content, str) else content
    return f'"{sha256_hex(data)[:32]}"'


def _tags(header: str) -> list[tuple[bool, str]]:
    return [(bool(match.group(1)), f'"{match.group(2)}"') for match in _ENTITY_TAG.finditer(header)]


def require_if_match(request: Request, current_etag: str, *, changed_fields: Sequence[str] = ()) -> None:
    """Let the change pass when the caller saw the current state: else 428 (header missing) or 412 (stale)."""
    header = request.headers.get("if-match")
    if header is None:
        raise Problem(
            "precondition-required",
            "Two people may edit at once. Read the resource, then send its ETag as If-Match with the change.",
        )
    if header.strip() == "*":
        return
    tags = _tags(header)
    if any(not weak and tag == current_etag for weak, tag in tags):
        return
    if any(weak and tag == current_etag for weak, tag in tags):
        detail = (
            "The tag you sent is weak (W/): a proxy on the way compresses answers and weakened it. Send it without W/."
        )
    elif not tags:
        detail = f"If-Match {header[:60]!r} holds no entity tag. Send the tag as read, quotes included: {current_etag}."
    else:
        detail = "The resource changed since you read it. Read it again, apply your change to that, and retry."
    raise Problem(
        "precondition-failed",
        detail,
        current_etag=current_etag,
        changed_fields=list(changed_fields),
        headers={"ETag": current_etag},
    )


def answer_not_modified(request: Request, etag: str, *, headers: dict[str, str] | None = None) -> None:
    """End the request with 304 when If-None-Match names the current tag (weak comparison)."""
    header = request.headers.get("if-none-match")
    if header is None:
        return
    if header.strip() == "*" or any(tag == etag for _, tag in _tags(header)):
        raise RenderedAnswer(Response(status_code=304, headers={"ETag": etag, **(headers or {})}))
