"""Refusals of the catalog."""

from datetime import date

from app.catalog.imports.staged import FileError
from app.catalog.snapshot import Snapshot
from app.foundation.problems import FieldError, NotFound, Problem


def unknown_revision(asked: object, newest: int, pointer: str | None = None) -> Problem:
    """Refuse a catalog revision that was never published; ``pointer`` is where a body names it."""
    parameter = "catalog_revision" if pointer is None else None
    return Problem(
        "unknown-catalog-revision",
        f"There is no catalog revision {str(asked)[:80]}. The newest is {newest}; GET /v1/catalog/revisions lists all.",
        errors=[
            FieldError(code="unknown_revision", message="was never published", pointer=pointer, parameter=parameter)
        ],
        newest=newest,
    )


def no_revision() -> Problem:
    """Refuse the address of a catalog revision that was never published."""
    return NotFound("catalog revision")


def empty_catalog() -> Problem:
    """Say that nothing has been seeded yet."""
    return Problem(
        "maintenance",
        "The catalog is empty. Start the service with python -m app, which seeds it, and retry.",
        headers={"Retry-After": "10"},
    )


def no_offer() -> Problem:
    """Refuse an offer id the revision does not hold."""
    return NotFound("offer")


def unreadable_file(error: FileError) -> Problem:
    """Refuse a file that cannot be read at all; nothing of it was imported."""
    return Problem(
        "validation-failed",
        f"The file cannot be imported, nothing was changed: {error.detail}",
        errors=[FieldError(code=error.reason, message=error.detail, pointer="/content")],
        line=error.line,
    )


def invalid_parameter(name: str, message: str) -> Problem:
    """Refuse a query parameter whose value means nothing."""
    return Problem(
        "validation-failed", message, errors=[FieldError(code="invalid_value", message=message, parameter=name)]
    )


def no_rate(snapshot: Snapshot, base: str, quote: str, on: date) -> Problem:
    """Refuse a conversion for which no rate is known; it is never taken as 1."""
    known = snapshot.fx.currencies()
    absent = [code for code in (base, quote) if code not in known]
    first = snapshot.fx.fixings[0].fixed_on if snapshot.fx.fixings else None
    reason = f"{', '.join(absent)} is not in the source" if absent else f"the first fixing held is of {first}"
    return Problem(
        "fx-unavailable",
        f"No rate from {base} to {quote} on {on}: {reason}. Import a rate file that has it, or ask for another day.",
        errors=[
            FieldError(code="no_rate", message=reason, parameter=name)
            for name, code in (("base", base), ("quote", quote))
            if code in absent or not absent
        ],
        known=list(known),
    )


def unknown_fact_kind(kind: str, known: list[str]) -> Problem:
    """Refuse a kind of fact the catalog does not keep."""
    return Problem("not-found", f"There are no facts of kind {kind[:40]!r}. Known kinds: {', '.join(known)}.")


def unknown_filter(parameter: str, value: str, nearest: list[str], where: str) -> Problem:
    """Refuse to filter by a value that the catalog does not hold: an empty list would say "not offered"."""
    hint = f" Did you mean {', '.join(nearest)}?" if nearest else f" {where}"
    message = f"The catalog knows no {parameter} {value[:80]!r}.{hint}"
    error = FieldError(code=f"unknown_{parameter}", message=message, parameter=parameter)
    return Problem("validation-failed", message, errors=[error], nearest={parameter: nearest})


def unknown_accelerator(accelerator_id: str, nearest: list[str]) -> Problem:
    """Refuse an accelerator id, with the nearest known ones."""
    hint = f" Did you mean {', '.join(nearest)}?" if nearest else ""
    return Problem("not-found", f"No accelerator has the id {accelerator_id[:80]!r}.{hint}", nearest=nearest)


def live_feeds_off(feed: str) -> Problem:
    """Refuse to reach out to the network where nobody has allowed it."""
    return Problem(
        "price-source-unavailable",
        f"The feed {feed} was not fetched: live feeds are off. Set GPUQUOTE_LIVE_FEEDS=true to allow them, or import a "
        "file.",
    )


def no_token_price(provider: str, model: str) -> Problem:
    """Refuse a model whose token prices the catalog does not hold."""
    return Problem(
        "not-found",
        f"There is no token price of {model[:80]!r} at {provider[:40]!r}. Import them (genai-prices or litellm); "
        "GET /v1/catalog/offers?provider= lists what is held.",
    )


def no_model(model_id: str, nearest: list[str]) -> Problem:
    """Refuse a model id, with the nearest known ones."""
    hint = f" Did you mean {', '.join(nearest)}?" if nearest else " GET /v1/catalog/models lists them."
    return Problem("not-found", f"No model has the id {model_id[:80]!r}.{hint}", nearest=nearest)


def no_price() -> Problem:
    """Refuse the id of a price that was never recorded."""
    return NotFound("price")


def no_quarantined_row() -> Problem:
    """Refuse an id that holds no row."""
    return NotFound("quarantined row")


def decided_already(decision: str, reason: str) -> Problem:
    """Refuse a second decision about one row."""
    return Problem("conflict", f"This row was {decision} before, with the reason {reason!r}. A decision is final.")


def not_a_price(reason: str, detail: str) -> Problem:
    """Refuse to accept a row that could not be read as a price."""
    return Problem(
        "conflict",
        f"This row cannot be accepted because it is not a readable price ({reason}: {detail}). Correct the file and "
        "import it again.",
    )


def no_price_book() -> Problem:
    """Refuse a price book that is absent or another tenant's."""
    return NotFound("price book")


def price_book_name_taken(name: str) -> Problem:
    """Refuse a second book of one name."""
    return Problem("conflict", f"A price book named {name!r} exists. Replace it with PUT, or choose another name.")
