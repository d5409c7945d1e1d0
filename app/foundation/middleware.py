"""Pure ASGI layers around the application: trace and last resort outside, request body inside."""

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.foundation.problems import Problem, problem_response
from app.foundation.strict_json import is_json_type, media_type_of, parse_strict
from app.foundation.telemetry import new_traceparent, trace_id_from, trace_id_var

log = structlog.get_logger()

# Everything the service understands is far shorter; RFC 9110 section 4.1 wants at least 8,000.
MAX_TARGET_BYTES = 8_192
_JSON = "application/json"
_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_FILES = ("application/x-ndjson", "text/csv", "application/yaml", "application/octet-stream")


async def send_problem(problem: Problem, scope: Scope, receive: Receive, send: Send, *, problems_url: str) -> None:
    """Answer with a problem from outside the router."""
    response = problem_response(
        problem,
        accept_language=Headers(scope=scope).get("accept-language"),
        instance=scope["path"],
        trace_id=trace_id_var.get(),
        problems_url=problems_url,
    )
    await response(scope, receive, send)


class TraceMiddleware:
    """Gives every request a trace id, and turns what nobody caught into ``internal`` without a stack in the answer."""

    def __init__(self, app: ASGIApp, *, problems_url: str) -> None:
        self._app = app
        self._problems_url = problems_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        trace_id = trace_id_from(Headers(scope=scope).get("traceparent"))
        token = trace_id_var.set(trace_id)
        scope["trace_id"] = trace_id
        state = scope.setdefault("state", {})
        started = False

        async def send_with_trace(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers["traceparent"] = new_traceparent(trace_id)
                for name, value in state.get("response_headers", {}).items():
                    headers.setdefault(name, value)
                for name, value in state.get("deprecation_headers", ()):
                    headers.append(name, value)
            await send(message)

        try:
            await self._app(scope, receive, send_with_trace)
        except Exception:
            log.exception("unhandled_error", method=scope["method"], path=scope["path"])
            if started:
                raise
            problem = Problem(
                "internal",
                "The request failed on our side. Send it again with the same Idempotency-Key: what was stored is then "
                "answered and not done twice. If it stays, report the trace id.",
            )
            await send_problem(problem, scope, receive, send_with_trace, problems_url=self._problems_url)
        finally:
            trace_id_var.reset(token)


class HeadMiddleware:
    """Answers HEAD as GET without the body (RFC 9110 section 9.3.2)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self._app({**scope, "method": "GET"}, receive, send_head)


class BodyMiddleware:
    """Reads the body once: capped in size, of a type we take, and strict where it is JSON."""

    def __init__(self, app: ASGIApp, *, max_body_bytes: int, max_upload_bytes: int, problems_url: str) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._max_upload_bytes = max_upload_bytes
        self._problems_url = problems_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            _check_target(scope)
            is_read = scope["method"] in ("GET", "HEAD", "OPTIONS")
            body = None if is_read else await self._checked_body(scope, receive)
        except Problem as problem:
            await send_problem(problem, scope, receive, send, problems_url=self._problems_url)
            return
        if body is None:
            await self._app(scope, receive, send)
            return
        delivered = False

        async def replay() -> Message:
            nonlocal delivered
            if delivered:
                return await receive()
            delivered = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, replay, send)

    async def _checked_body(self, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        media_type = media_type_of(headers)
        is_upload = media_type in _FILES or media_type == "multipart/form-data"
        limit = self._max_upload_bytes if is_upload else self._max_body_bytes
        body = await _read_capped(headers.get("content-length"), receive, limit)
        if not body:
            return body
        is_json = is_json_type(media_type)
        accepted = [_JSON, "application/merge-patch+json", *_FILES, *_FORMS]
        if not is_json and media_type not in accepted:
            raise Problem(
                "unsupported-media-type",
                f"The body is sent as {media_type[:80] or 'no content type at all'!r}. Send Content-Type: {_JSON}.",
                accepted=accepted,
            )
        if is_json:
            scope.setdefault("state", {})["json_body"] = parse_strict(body)
        return body


def _check_target(scope: Scope) -> None:
    size = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    if size > MAX_TARGET_BYTES:
        raise Problem(
            "uri-too-long",
            f"The address has {size} bytes, more than {MAX_TARGET_BYTES}. Send fewer or shorter query parameters.",
            limit=MAX_TARGET_BYTES,
        )


async def _read_capped(content_length: str | None, receive: Receive, limit: int) -> bytes:
    if content_length is not None and content_length.isdigit() and int(content_length) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(parts)
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _too_large(limit: int) -> Problem:
    return Problem(
        "payload-too-large",
        f"The body is larger than {limit} bytes. Send less at a time, or split the work into several requests.",
        limit=limit,
        headers={"Connection": "close"},
    )
