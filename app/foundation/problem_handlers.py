"""The one place that turns exceptions into answers: ours, Starlette's own 404/405/413 and FastAPI's 422."""

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.foundation.problem_catalogue import CATALOGUE
from app.foundation.problems import FieldError, Problem, pointer, problem_response
from app.foundation.strict_json import is_json_type, media_type_of

M = TypeVar("M", bound=BaseModel)

_SLUG_BY_STATUS = {
    400: "malformed-json",
    401: "unauthenticated",
    403: "insufficient-scope",
    404: "not-found",
    405: "method-not-allowed",
    406: "not-acceptable",
    413: "payload-too-large",
    414: "uri-too-long",
    415: "unsupported-media-type",
    429: "quota-exceeded",
    503: "overloaded",
}
MAX_FIELD_ERRORS = 50
# the field that says which kind of object it is: absent or unknown, it is what has to be corrected
UNION_TAG_ERRORS = ("union_tag_invalid", "union_tag_not_found")
# their own messages name a Python class
OBJECT_ERRORS = ("model_type", "model_attributes_type", "dict_type")


class RenderedAnswer(Exception):
    """Ends a request early with an answer that was made before (an idempotent replay, a 304)."""

    def __init__(self, response: Response) -> None:
        super().__init__("the answer is ready")
        self.response = response


def install_problem_handlers(
    app: FastAPI,
    *,
    problems_url: str,
    translated: Mapping[type[Exception], Callable[[Exception], Problem]] | None = None,
) -> None:
    """Make every error of every path answer with application/problem+json.

    ``translated`` says what an error of a room that knows no problems (pricing) is to the client.
    """

    def answer(request: Request, problem: Problem) -> Response:
        return problem_response(
            problem,
            accept_language=request.headers.get("accept-language"),
            instance=request.url.path,
            trace_id=request.scope.get("trace_id"),
            problems_url=problems_url,
        )

    async def on_problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return answer(request, error)

    async def on_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(request, _not_json(request, error) or validation_problem(error))

    async def on_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return answer(request, http_problem(request, error))

    async def on_rendered(_request: Request, error: Exception) -> Response:
        assert isinstance(error, RenderedAnswer)
        return error.response

    def on_translated(translate: Callable[[Exception], Problem]) -> Callable[[Request, Exception], Awaitable[Response]]:
        async def handle(request: Request, error: Exception) -> Response:
            return answer(request, translate(error))

        return handle

    for kind, translate in (translated or {}).items():
        app.add_exception_handler(kind, on_translated(translate))
    app.add_exception_handler(Problem, on_problem)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RenderedAnswer, on_rendered)


def _not_json(request: Request, error: RequestValidationError) -> Problem | None:
    """A body that is no object because it was not sent as JSON: its type is what has to be corrected."""
    sent = media_type_of(request.headers)
    whole = any(row["type"] in OBJECT_ERRORS and tuple(row["loc"]) == ("body",) for row in error.errors())
    if not sent or is_json_type(sent) or not whole:
        return None
    return Problem(
        "unsupported-media-type",
        f"The body is sent as {sent[:80]!r}, and this operation reads JSON. Send Content-Type: application/json.",
        accepted=["application/json"],
    )


def http_problem(request: Request, error: HTTPException) -> Problem:
    """Translate an exception of the framework."""
    slug = _SLUG_BY_STATUS.get(error.status_code, "internal" if error.status_code >= 500 else "validation-failed")
    headers = dict(error.headers or {})
    if slug == "not-found":
        detail = f"There is nothing at {request.url.path}. The paths are listed in /openapi.json."
    elif slug == "method-not-allowed":
        headers["Allow"] = _methods(request) or headers.get("Allow", "")
        detail = f"{request.method} is not possible here. Use one of: {headers.get('Allow', 'see /openapi.json')}."
    else:
        detail = str(error.detail) or HTTPStatus(error.status_code).phrase
    return Problem(slug, detail, status=error.status_code, headers=headers)


def _methods(request: Request) -> str:
    """All methods of the path; the framework names only those of the first route that has it."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    asked = request.url.path.split("/")
    # A path written out stands before one with a parameter in its place.
    fitting = [asked] if request.url.path in paths else [t.split("/") for t in paths if _fits(t.split("/"), asked)]
    names = {method.upper() for template in fitting for method in paths["/".join(template)]}
    return ", ".join(sorted(names | {"HEAD"} if "GET" in names else names))


def _fits(template: list[str], asked: list[str]) -> bool:
    same_length = len(template) == len(asked)
    return same_length and all(
        part.startswith("{") or part == given for part, given in zip(template, asked, strict=True)
    )


def validation_problem(error: RequestValidationError) -> Problem:
    """Describe what does not fit the schema.

    A validator may raise ``PydanticCustomError`` with a slug of the catalogue as its type (``money-not-string``,
    ``currency-unknown``): the answer then carries that slug.
    """
    rows = error.errors()
    malformed = next((row for row in rows if row["type"] == "json_invalid"), None)
    if malformed is not None:
        offset = malformed["loc"][-1]
        return Problem("malformed-json", f"The body cannot be read as JSON, at character {offset}.", offset=offset)
    errors = [_field_error(row, error.body) for row in rows[:MAX_FIELD_ERRORS]]
    slug = next((row["type"] for row in rows if row["type"] in CATALOGUE), "validation-failed")
    first = errors[0]
    where = first.pointer if first.pointer is not None else f"parameter {first.parameter!r}"
    more = f" There are {len(rows) - 1} more errors." if len(rows) > 1 else ""
    detail = f"{where or 'The body'}: {first.message}.{more} Correct the fields listed and send the request again."
    if first.pointer is None:
        return Problem(slug, detail, errors=errors)
    return Problem(slug, detail, errors=errors, pointer=first.pointer)


def validated(schema: type[M], body: Mapping[str, Any]) -> M:
    """Read what did not come as a body as strictly as one, with the same sentences where it does not fit."""
    try:
        return schema.model_validate(body)
    except ValidationError as error:
        rows = [{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]
        raise RequestValidationError(rows, body=body) from error


def _field_error(row: Any, body: Any) -> FieldError:
    place, *path = row["loc"]
    # A validator of the whole body may say which field it is about.
    path += (row.get("ctx") or {}).get("path", ())
    message = str(row["msg"]).removeprefix("Value error, ").rstrip(".")
    if row["type"] == "extra_forbidden":
        message = "this field is not known here"
    if row["type"] in OBJECT_ERRORS:
        message = "a JSON object is expected here"
    if place == "body":
        segments = _existing_path(path, body, is_missing=row["type"] == "missing")
        if row["type"] in UNION_TAG_ERRORS:
            segments.append(str(row["ctx"]["discriminator"]).strip("'"))
        return FieldError(code=row["type"], message=message, pointer=pointer(*segments))
    return FieldError(code=row["type"], message=message, parameter=str(path[0]) if path else str(place))


def _existing_path(path: list[Any], body: Any, *, is_missing: bool) -> list[str | int]:
    """Drop the segments that name a branch of a union or a validator and not a place in the body."""
    kept: list[str | int] = []
    node = body
    for position, segment in enumerate(path):
        is_last = position == len(path) - 1
        if _has(node, segment):
            node = node[segment]
        elif not (is_last and is_missing):
            continue
        kept.append(segment)
    return kept


def _has(node: Any, segment: Any) -> bool:
    # A form is a mapping too, and not a dict.
    if isinstance(node, Mapping):
        return segment in node
    return isinstance(node, list) and isinstance(segment, int) and 0 <= segment < len(node)
