"""Trace ids (W3C Trace Context) and one JSON line per event."""

import logging
import re
import secrets
import sys
from contextvars import ContextVar
from typing import Any, TextIO

import orjson
import structlog

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_NO_TRACE = "0" * 32
_NO_SPAN = "0" * 16

trace_id_var: ContextVar[str | None] = ContextVar("trace_id", default=None)


def current_trace_id() -> str | None:
    """Return the trace id of the request being handled."""
    return trace_id_var.get()


def trace_id_from(traceparent: str | None) -> str:
    """Continue the caller's trace, or start one when the header is absent or malformed."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    if match and match.group(1) != _NO_TRACE and match.group(2) != _NO_SPAN:
        return match.group(1)
    return secrets.token_hex(16)


def new_traceparent(trace_id: str) -> str:
    return f"00-{trace_id}-{secrets.token_hex(8)}-01"


def _dumps(value: Any, **_: Any) -> str:
    return orjson.dumps(value, default=str).decode()


def _with_trace(_logger: Any, _name: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    trace_id = trace_id_var.get()
    if trace_id is not None:
        event["trace_id"] = trace_id
    return event


class _StandardError(logging.StreamHandler[TextIO]):
    """Writes to what standard error is when a line is written: the one of the start may have been closed since."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, _value: TextIO) -> None:
        """Keep nothing."""


def configure_logging(level: str, log_format: str) -> None:
    """Send our own events and those of uvicorn and SQLAlchemy through one renderer to standard error."""
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_trace,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: structlog.types.Processor = (
        structlog.processors.JSONRenderer(serializer=_dumps)
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    number = logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
    structlog.configure(
        processors=[*shared, structlog.processors.format_exc_info, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: structlog.PrintLogger(sys.stderr),
        cache_logger_on_first_use=False,
    )
    handler = _StandardError()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                renderer,
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    # Alembic announces its dialect on every look at the revision; a health check makes that a line each time.
    logging.getLogger("alembic.runtime.migration").setLevel(max(number, logging.WARNING))
