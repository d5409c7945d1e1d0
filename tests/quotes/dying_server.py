"""``python -m tests.quotes.dying_server POINT``: the service, killed as by kill -9 at one point of its first create."""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import app.__main__ as entry
from app.foundation import idempotency
from app.jobs import answering
from app.quotes import asked, preparing


def _die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(after: Callable[..., Any] | None = None, *, wait_s: float = 0.0) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> None:
        if after is not None:
            after(*arguments, **named)
        time.sleep(wait_s)
        _die()

    return call


def _at(owner: Any, name: str, *, after: bool, wait_s: float = 0.0) -> Callable[[], None]:
    return lambda: setattr(owner, name, _dying(getattr(owner, name) if after else None, wait_s=wait_s))


POINTS: dict[str, Callable[[], None]] = {
    # before anything is known of the request
    "calculating": _at(preparing.Plan, "run", after=False),
    # in a calculation so long that its key is reserved
    "leased": _at(preparing.Plan, "run", after=False, wait_s=answering.SHORT_CALCULATION_S + 1.0),
    # rows written, not committed
    "stored": _at(asked, "create_quote", after=True),
    # committed, not answered
    "committed": _at(idempotency.Idempotency, "_respond", after=False),
}

if __name__ == "__main__":
    POINTS[sys.argv[1]]()
    sys.exit(entry.main([]))
