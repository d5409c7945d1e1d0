"""Log lines go to what standard error is now, not to what it was when logging was set up."""

import io
import json
import logging
import sys
from collections.abc import Iterator

import pytest
import structlog

from app.foundation.telemetry import configure_logging


@pytest.fixture
def root_logger() -> Iterator[None]:
    """The root logger as other tests expect it."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("root_logger")
def test_a_stream_that_was_closed_since_is_not_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    passing, lasting = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", passing)
    configure_logging("INFO", "json")
    log = structlog.get_logger()
    monkeypatch.setattr(sys, "stderr", lasting)
    passing.close()
    log.warning("ours", number=1)
    logging.getLogger("httpx").warning("theirs")
    ours, theirs = (json.loads(line) for line in lasting.getvalue().splitlines())
    assert (ours["event"], ours["number"], theirs["event"]) == ("ours", 1, "theirs")
