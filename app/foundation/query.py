"""A query parameter that nobody knows is an error: a typo in a filter would otherwise return everything."""

from difflib import get_close_matches
from typing import Annotated, Any
from weakref import WeakKeyDictionary

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from app.foundation.problems import FieldError, NotFound, Problem

# By endpoint function: FastAPI's route objects cannot be hashed.
_known_by_endpoint: "WeakKeyDictionary[Any, frozenset[str]]" = WeakKeyDictionary()


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise PydanticCustomError("nul", "a text cannot hold a NUL; leave it out", {})
    return text


FormText = Annotated[str, AfterValidator(_without_nul)]
"""A text field of a form, which unlike a JSON body nobody has looked through for what no database column holds."""


def _known_parameters(route: Any) -> frozenset[str]:
    known = _known_by_endpoint.get(route.endpoint)
    if known is None:
        fields = get_flat_params(route.dependant)
        names = frozenset(field.alias for field in fields if isinstance(field.field_info, Query))
        known = _known_by_endpoint[route.endpoint] = names
    return known


async def refuse_unknown_parameters(request: Request) -> None:
    """Answer ``unknown-parameter`` with the names at fault; a dependency of the whole application."""
    if "\x00" in request.url.path or "%00" in request.url.path:
        # No database column holds a NUL, so nothing can be there.
        raise NotFound()
    if not request.scope.get("query_string"):
        return
    holding = [name for name, value in request.query_params.multi_items() if "\x00" in name + value]
    if holding:
        errors = [FieldError(code="nul", message="a text cannot hold a NUL", parameter=name) for name in holding]
        raise Problem("validation-failed", "A query parameter holds a NUL. Leave it out.", errors=errors)
    route = request.scope.get("route")
    if not hasattr(route, "dependant"):
        return
    known = _known_parameters(route)
    given = list(dict.fromkeys(request.query_params.keys()))
    unknown = [name for name in given if name not in known]
    if not unknown:
        _refuse_repeated([name for name, _ in request.query_params.multi_items()])
        return
    guesses = [guess for name in unknown for guess in get_close_matches(name, known, n=1)]
    hint = f" Did you mean {', '.join(guesses)}?" if guesses else ""
    listing = ", ".join(sorted(known)) or "none"
    raise Problem(
        "unknown-parameter",
        f"Unknown query parameter: {', '.join(unknown)[:200]}. Known here: {listing}.{hint}",
        names=unknown,
        errors=[FieldError(code="unknown_parameter", message="not known here", parameter=name) for name in unknown],
    )


def _refuse_repeated(names: list[str]) -> None:
    """No parameter here is a list: of two values one would be dropped in silence."""
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise Problem(
            "unknown-parameter",
            f"A query parameter is given more than once: {', '.join(repeated)[:200]}. Send each once.",
            status=400,
            names=repeated,
            errors=[
                FieldError(code="repeated_parameter", message="given more than once", parameter=n) for n in repeated
            ],
        )
