"""Prometheus metrics: how many requests, how long they take, by route template; never by path or tenant.

A path holds ids and a tenant is a customer: neither belongs into a label, where it would stay for ever and multiply
the series. With several workers each writes into the directory of ``PROMETHEUS_MULTIPROC_DIR``; any answers for all.
"""

import os
import tempfile
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, multiprocess
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.foundation.problems import Problem
from app.foundation.settings import Settings

MULTIPROCESS_SETTING = "PROMETHEUS_MULTIPROC_DIR"
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})
# From a read of one row to a calculation at the end of its budget.
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
NO_ROUTE = "none"

_requests = Counter("gpuquote_http_requests", "Requests answered.", ["method", "route", "status"])
_seconds = Histogram(
    "gpuquote_http_request_seconds", "Time to the end of the answer.", ["method", "route"], buckets=BUCKETS_S
)


def share_between_workers(settings: Settings) -> None:
    """Give the workers to come one directory for their numbers; call before they are started."""
    if settings.worker_count > 1 and settings.serves_metrics:
        os.environ.setdefault(MULTIPROCESS_SETTING, tempfile.mkdtemp(prefix="gpuquote-metrics-"))


def _template(scope: Scope) -> str:
    """The route as it is written in the API document; one word for all paths that are none of ours."""
    effective = (scope.get("fastapi") or {}).get("effective_route_context")
    path: Any = getattr(effective, "path", None)
    return path if isinstance(path, str) and path else NO_ROUTE


class MetricsMiddleware:
    """Counts and times every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, note_status)
        finally:
            method = scope["method"] if scope["method"] in METHODS else "other"
            route = _template(scope)
            _requests.labels(method, route, str(status)).inc()
            _seconds.labels(method, route).observe(time.perf_counter() - began)


async def metrics(request: Request) -> Response:
    """Answer a scrape, where the settings let it be asked for."""
    settings: Settings = request.app.state.settings
    if not settings.serves_metrics:
        raise Problem("not-found", "There is nothing at /metrics. The operator may set GPUQUOTE_METRICS=public.")
    if os.environ.get(MULTIPROCESS_SETTING):
        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
