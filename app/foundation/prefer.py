"""Prefer (RFC 7240): whether a client would rather have a job than wait, and how long it waits first."""

import re
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Request

_PREFERENCE = re.compile(r'\s*([!#$%&\'*+.^_`|~0-9A-Za-z-]+)\s*(?:=\s*("(?:[^"\\]|\\.)*"|[^\s;,"]*))?\s*(?:;[^,]*)?')
_LONGEST_WAIT = re.compile("[0-9]{1,6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What is preferred; anything unknown or malformed is ignored, as the RFC asks."""

    respond_async: bool
    wait_s: int | None


def read_preference(header: str) -> Preference:
    """Read the header; of a preference given twice the first counts."""
    given: dict[str, str] = {}
    for part in header.split(","):
        match = _PREFERENCE.fullmatch(part)
        if match is not None:
            given.setdefault(match.group(1).lower(), (match.group(2) or "").strip('"'))
    wait = given.get("wait", "")
    return Preference(
        respond_async="respond-async" in given,
        wait_s=int(wait) if _LONGEST_WAIT.fullmatch(wait) else None,
    )


async def preference(
    request: Request,
    prefer: Annotated[
        str | None,
        Header(
            alias="Prefer",
            description="RFC 7240. respond-async: 202 with a job instead of waiting; with wait=N, only after N seconds "
            "without a result.",
            examples=["respond-async, wait=5"],
        ),
    ] = None,
) -> Preference:
    """Read what the request prefers; several header lines count as one."""
    del prefer
    return read_preference(", ".join(request.headers.getlist("prefer")))
