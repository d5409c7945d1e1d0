"""Refusals of the catalog."""

from app.catalog.imports.staged import FileError
from app.foundation.problems import FieldError, NotFound, Problem


def unknown_revision(asked: object, newest: int) -> Problem:
    """Refuse a catalog revision that was never published."""
    return Problem(
        "unknown-catalog-revision",
        f"There is no catalog revision {asked}. The newest is {newest}; GET /v1/catalog/revisions lists all.",
        errors=[FieldError(code="unknown_revision", message="was never published", parameter="catalog_revision")],
        newest=newest,
    )


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
