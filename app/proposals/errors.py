"""Refusals of the room, and the collecting of what a format cannot hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from app.foundation.problems import FieldError, NotFound, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """One value that a format cannot hold, or one that was changed to fit."""

    pointer: str
    field: str
    limit: str
    value: str

    def as_json(self) -> dict[str, str]:
        """Give the form answers show."""
        return {"pointer": self.pointer, "field": self.field, "limit": self.limit, "value": self.value}


@dataclass(slots=True)
class Fitting:
    """Takes down, while a format is written, what does not fit and what was changed to fit."""

    format: str
    misfits: list[Misfit] = field(default_factory=list)
    adaptations: list[Misfit] = field(default_factory=list)

    def refuse(self, pointer: str, name: str, limit: str, value: str) -> None:
        """Note a value that cannot be represented; the export will be refused with all of them."""
        self.misfits.append(Misfit(pointer=pointer, field=name, limit=limit, value=value))

    def adapt(self, pointer: str, name: str, limit: str, value: str) -> None:
        """Note a value that was changed to fit, with what it was."""
        self.adaptations.append(Misfit(pointer=pointer, field=name, limit=limit, value=value))

    def close(self, hint: str = "") -> None:
        """End in the refusal where anything did not fit."""
        if self.misfits:
            raise not_representable(self.format, self.misfits, hint)


def not_representable(file_format: str, misfits: Sequence[Misfit], hint: str = "") -> Problem:
    """Refuse, naming every field."""
    names = ", ".join(dict.fromkeys(m.field for m in misfits))
    return Problem(
        "export-not-representable",
        f"{file_format} cannot hold {len(misfits)} value(s) of this revision as they are: {names}. Nothing is rounded "
        f"or cut in silence. {hint or 'Choose another format, or change the quote.'}",
        errors=[
            FieldError(code="not_representable", message=f"{m.field}: {m.limit}", pointer=m.pointer) for m in misfits
        ],
        fields=[m.as_json() for m in misfits],
    )


def incomplete(n: int, unpriced: Sequence[Mapping[str, Any]]) -> Problem:
    return Problem(
        "incomplete-pricing",
        f"Revision {n} has {len(unpriced)} part(s) without a price, so there is no total to export. Choose other "
        "options or another supply first.",
        unpriced_lines=list(unpriced),
    )


def unknown_format(asked: str, available: Sequence[str]) -> Problem:
    listing = ", ".join(available)
    why = "is not written by this service yet" if asked in ("pdf", "xlsx") else "is not a format of proposals"
    return Problem(
        "validation-failed",
        f"{asked[:40]} {why}. Available: {listing}.",
        errors=[FieldError(code="format_not_available", message=f"one of {listing}", pointer="/format")],
        available=list(available),
    )


def foreign_option(name: str, file_format: str, allowed: Sequence[str]) -> Problem:
    usable = ", ".join(allowed) or "none"
    return Problem(
        "validation-failed",
        f"{name} has no meaning for {file_format}. Leave it out; options of this format: {usable}.",
        errors=[FieldError(code="not_of_this_format", message=f"options: {usable}", pointer=f"/{name}")],
    )


def missing_option(name: str, message: str) -> Problem:
    return Problem(
        "validation-failed", message, errors=[FieldError(code="missing", message=message, pointer=f"/{name}")]
    )


def offer_over(quote_id: str, last_day: date, timezone: str) -> Problem:
    return Problem(
        "quote-expired",
        f"The offer stood through {last_day} ({timezone}), and a cart is ordered from as it is. Ask for a new "
        "revision, or export it as UBL, FOCUS CSV or JSON, which state the period.",
        requote=f"/v1/quotes/{quote_id}/reprice",
    )


def no_proposal() -> NotFound:
    return NotFound("proposal")
