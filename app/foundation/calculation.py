"""Calculations run in threads, within a budget: a request that takes longer is refused rather than left hanging."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from app.foundation.problems import Problem

T = TypeVar("T")
KEPT_HINT = (
    "Ask for fewer items or a narrower supply; or keep the answer: POST /v1/quotes with Prefer: respond-async makes it "
    "a job."
)


def begin(calculate: Callable[[], T]) -> "asyncio.Task[T]":
    """Start a calculation in a thread."""
    return asyncio.ensure_future(run_in_threadpool(calculate))


def abandon(calculation: "asyncio.Task[Any]") -> None:
    """Take no more interest in a calculation: a thread cannot be stopped, so it ends by itself and unheard."""
    calculation.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


def timed_out(budget_s: float, hint: str) -> Problem:
    """Refuse what took longer than its budget."""
    return Problem(
        "calculation-timeout",
        f"The calculation took longer than the {budget_s:g} s it may. Nothing was stored. {hint}",
        budget_s=budget_s,
        job_hint=hint,
    )


async def within_time(request: Request, calculate: Callable[..., T], *arguments: Any) -> T:
    """Calculate in a thread; raises ``calculation-timeout`` past the budget of the settings."""
    budget_s: float = request.app.state.settings.calculation_budget_s
    calculation = begin(lambda: calculate(*arguments))
    done, _ = await asyncio.wait({calculation}, timeout=budget_s)
    if not done:
        abandon(calculation)
        raise timed_out(budget_s, KEPT_HINT)
    return calculation.result()
