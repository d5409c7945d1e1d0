"""Refusals of claims: what is missing, or why the question has no answer."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.foundation.problems import FieldError, Problem


def missing(pointer: str, what: str, message: str) -> Problem:
    """Something a claim cannot be judged without."""
    return Problem(
        "validation-failed",
        message,
        errors=[FieldError(pointer=pointer, code=f"missing_{what}", message=message)],
        missing=[what],
    )


def refused(pointer: str, code: str, message: str, choices: Sequence[str] = ()) -> Problem:
    """A claim that cannot be meant like this."""
    return Problem(
        "validation-failed",
        message,
        errors=[FieldError(pointer=pointer, code=code, message=message)],
        choices=list(choices),
    )


def relocated(problem: Problem, moves: Mapping[str, str]) -> Problem:
    """A problem of an estimate with its pointers into the body that was sent here.

    Parameters
    ----------
    moves : mapping of str to str
        Where a part of the estimate's body came from, by its own pointer; the longest match wins.
    """

    def moved(where: str | None) -> str | None:
        for old in sorted(moves, key=len, reverse=True):
            if where is not None and (where == old or where.startswith(f"{old}/")):
                return moves[old] + where[len(old) :]
        return where

    errors = [
        FieldError(code=e.code, message=e.message, pointer=moved(e.pointer), parameter=e.parameter)
        for e in problem.errors
    ]
    extensions = {name: _moved_keys(value, moved) for name, value in problem.extensions.items()}
    return Problem(
        problem.slug, problem.detail, errors=errors, headers=problem.headers, status=problem.status, **extensions
    )


def _moved_keys(value: Any, moved: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {moved(key) if isinstance(key, str) else key: part for key, part in value.items()}
