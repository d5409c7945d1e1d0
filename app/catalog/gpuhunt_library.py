"""Providers that the optional gpuhunt library asks itself, their answer as the catalog CSV it would write.

The library's requests have time-outs of their own; a whole answer has one here, because a provider may be asked many
times. What it raises is a foreign library's business, so everything is caught and told as one error.
"""

import csv
import io
import queue
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

# Those of gpuhunt 0.1.34 that need no credentials of a customer, and whose prices the catalog has a provider for.
LIBRARY_PROVIDERS = ("lium", "vastai", "vultr")
COLUMNS = ("instance_name", "location", "price", "cpu", "memory", "gpu_count", "gpu_name", "gpu_memory", "spot")


class LibraryError(Exception):
    """The library gave no answer; ``passing`` = another try may help."""

    def __init__(self, why: str, *, passing: bool) -> None:
        super().__init__(why)
        self.passing = passing


def query_provider(provider: str, seconds: float) -> bytes:
    """Ask a provider through the library for everything it sells.

    Raises
    ------
    LibraryError
        Not installed, no answer within ``seconds``, or whatever the library raised.
    """
    try:
        module = import_module(f"gpuhunt.providers.{provider}")
    except ImportError:
        raise LibraryError(
            "install the optional dependency: pip install 'gpuquote[live-feeds]'", passing=False
        ) from None
    kinds = (kind for kind in vars(module).values() if isinstance(kind, type))
    asked: Any = next(kind for kind in kinds if getattr(kind, "NAME", None) == provider)
    return as_csv(_within(seconds, lambda: asked.from_env().get()))


def as_csv(items: Iterable[Any]) -> bytes:
    """Write catalog items in the columns of a gpuhunt catalog that the import reads."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((*COLUMNS, "provider_data"))
    for item in items:
        data = "" if "min_bid" not in item.provider_data else '{"min_bid": true}'
        cells = (getattr(item, column) for column in COLUMNS)
        writer.writerow(["" if cell is None else str(cell) for cell in cells] + [data])
    return text.getvalue().encode()


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Do work in a thread that nobody waits for longer than this; a late answer is thrown away."""
    answers: queue.SimpleQueue[tuple[Any, LibraryError | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((work(), None))
        except Exception as error:
            # Failures of the network are OSErrors in requests too; a missing key or another shape will not pass.
            failed = LibraryError(f"{type(error).__name__}: {str(error)[:200]}", passing=isinstance(error, OSError))
            answers.put((None, failed))

    threading.Thread(target=run, name="gpuhunt", daemon=True).start()
    try:
        answer, failed = answers.get(timeout=seconds)
    except queue.Empty:
        raise LibraryError(f"no answer within {seconds:g} s", passing=True) from None
    if failed is not None:
        raise failed
    return answer
