"""Refusals of claims: what is missing, or why the question has no answer."""

from collections.abc import Sequence

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
