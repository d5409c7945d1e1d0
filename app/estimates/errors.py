"""Refusals of estimates: each says what, why and the nearest value that would do."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from app.engine.errors import EngineInputError
from app.engine.outcome import Infeasible
from app.foundation.problems import FieldError, Problem

_SHOWN = 5


def unknown_name(pointer: str, what: str, name: str, known: Iterable[str]) -> Problem:
    """A name the catalog does not hold, with the closest ones it does."""
    names = sorted(known)
    close = get_close_matches(name, names, n=_SHOWN, cutoff=0.4)
    hint = f"closest: {', '.join(close)}" if close else f"for example: {', '.join(names[:_SHOWN])}"
    message = f"unknown {what} {name!r}; {hint}"
    return Problem(
        "validation-failed",
        f"The catalog holds no {what} {name!r}. {hint[0].upper()}{hint[1:]}.",
        errors=[FieldError(pointer=pointer, code=f"unknown_{what}", message=message)],
        nearest={pointer: close},
    )


def refused_field(pointer: str, code: str, message: str, nearest: Mapping[str, object] | None = None) -> Problem:
    """A field whose value cannot be used."""
    return Problem(
        "validation-failed",
        message,
        errors=[FieldError(pointer=pointer, code=code, message=message)],
        nearest=dict(nearest or {}),
    )


def engine_refused(pointer: str, error: EngineInputError) -> Problem:
    """An input the engine cannot read (a config.json with missing keys)."""
    where = f"{pointer}/{error.field}"
    return refused_field(where, "engine_input", str(error), {where: error.nearest} if error.nearest else None)


def infeasible(pointer: str, constraint: str, detail: str, nearest: Mapping[str, object], **more: Any) -> Problem:
    """A job that cannot run as asked."""
    return Problem(
        "infeasible-spec",
        detail,
        errors=[FieldError(pointer=pointer, code=constraint, message=detail)],
        constraint=constraint,
        nearest_feasible=dict(nearest),
        **more,
    )


def least_bad(refusals: Mapping[str, Infeasible]) -> str:
    """The refusal that speaks for all: an objective missed by hardware that fits, else the one that lacks least."""
    most = float("inf")
    closest = ("missing_bytes", "best_s")

    def rank(key: str) -> tuple[bool, float, float, str]:
        found = refusals[key]
        missing, best = (found.numbers.get(name, most) for name in closest)
        return found.rule != "objective", missing, best, found.rule

    return min(refusals, key=rank)


def infeasible_everywhere(pointer: str, refusals: Mapping[str, Infeasible]) -> Problem:
    """A job that fits none of the hardware asked for; the least bad refusal speaks, all are listed."""
    best = refusals[least_bad(refusals)]
    return infeasible(
        pointer,
        best.rule,
        best.message,
        best.nearest,
        numbers=dict(best.numbers),
        refused=[
            {"hardware": key, "rule": r.rule, "message": r.message, "numbers": dict(r.numbers)}
            for key, r in sorted(refusals.items())
        ],
    )
