"""Accept (RFC 9110 section 12.5.1): a representation that an operation does not have is refused, not replaced."""

from typing import Any
from weakref import WeakKeyDictionary

from fastapi import Request

from app.foundation.problems import Problem

# By endpoint function: FastAPI's route objects cannot be hashed.
_available_by_endpoint: "WeakKeyDictionary[Any, tuple[str, ...]]" = WeakKeyDictionary()


def available_types(route: Any) -> tuple[str, ...]:
    """Media types of a route's good answers, as it declares them; empty where it answers without a body."""
    known = _available_by_endpoint.get(route.endpoint)
    if known is None:
        declared = (answer.get("content", {}) for status, answer in route.responses.items() if str(status)[0] == "2")
        response_class = getattr(route.response_class, "value", route.response_class)
        own = getattr(response_class, "media_type", None) if route.status_code != 204 else None
        types = dict.fromkeys([*(name for content in declared for name in content), *([own] if own else [])])
        known = _available_by_endpoint[route.endpoint] = tuple(types)
    return known


async def refuse_unacceptable(request: Request) -> None:
    """Answer ``not-acceptable`` where nothing the route has is asked for; a dependency of the whole application."""
    accept = request.headers.get("accept", "*/*")
    if "*/*" in accept and "q=" not in accept:
        return
    route = request.scope.get("route")
    if not hasattr(route, "response_class"):
        return
    available = available_types(route)
    if available and not any(_quality(accept, name) > 0 for name in available):
        raise Problem(
            "not-acceptable",
            f"Accept asks for {accept[:200]!r}; this operation answers with {', '.join(available)}. "
            "Ask for one of these, or leave Accept out.",
            available=list(available),
        )


def _quality(accept: str, media_type: str) -> float:
    """Weight of a media type: that of the most specific range that covers it, 0 where none does."""
    kind = media_type.partition("/")[0]
    ranges = {media_type: 3, f"{kind}/*": 2, "*/*": 1}
    found = (0, 0.0)
    for part in accept.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        quality = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        try:
            found = max(found, (ranges[name], float(quality)))
        except (KeyError, ValueError):
            continue
    return found[1]
