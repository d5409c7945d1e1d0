"""Errors that a client sees: RFC 9457 problem details. Services raise ``Problem``; one handler writes every answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from starlette.responses import Response

from app.foundation.problem_catalogue import CATALOGUE, ProblemKind

MEDIA_TYPE = "application/problem+json"
_EXTENSIONS_KEPT_FREE = frozenset({"type", "title", "status", "detail", "instance", "trace_id", "errors", "slug"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """What is wrong with one field. ``pointer`` is RFC 6901 into the body; ``parameter`` names a query or header."""

    code: str
    message: str
    pointer: str | None = None
    parameter: str | None = None

    def as_json(self) -> dict[str, str]:
        where = {"pointer": self.pointer} if self.pointer is not None else {}
        if self.parameter is not None:
            where["parameter"] = self.parameter
        return {**where, "code": self.code, "message": self.message}


class Problem(Exception):
    """A refusal with a stable slug of the catalogue, a sentence for people, and numbers for machines.

    ``detail`` says what is wrong, why, and what to do next. ``extensions`` become members of the answer.
    """

    def __init__(
        self,
        slug: str,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        **extensions: Any,
    ) -> None:
        super().__init__(f"{slug}: {detail}")
        self.kind: ProblemKind = CATALOGUE[slug]
        self.slug = slug
        self.detail = detail
        self.status = status if status is not None else self.kind.status
        self.errors = tuple(errors)
        self.headers = dict(headers or {})
        clash = _EXTENSIONS_KEPT_FREE & extensions.keys()
        if clash:
            raise ValueError(f"problem members {sorted(clash)} are written by the handler")
        self.extensions = extensions


class NotFound(Problem):
    """Absent, or another tenant's: the answer is the same to the byte, apart from the path asked for."""

    def __init__(self, what: str = "resource") -> None:
        super().__init__("not-found", f"No {what} with this id is visible to you. Check the id and your tenant.")


def pointer(*segments: str | int) -> str:
    """Write an RFC 6901 JSON pointer."""
    return "".join("/" + str(segment).replace("~", "~0").replace("/", "~1") for segment in segments)


def preferred_language(accept_language: str | None) -> str:
    """Choose ``en`` or ``zh-CN`` by Accept-Language (RFC 9110 section 12.5.4); English when neither is asked for."""
    best, best_quality = "en", 0.0
    for part in (accept_language or "").split(","):
        tag, _, parameter = part.strip().partition(";")
        quality = 1.0
        if parameter.strip().startswith("q="):
            try:
                quality = float(parameter.strip()[2:])
            except ValueError:
                quality = 0.0
        language = {"zh": "zh-CN", "en": "en"}.get(tag.strip().lower().split("-")[0])
        if language is not None and quality > best_quality:
            best, best_quality = language, quality
    return best


def problem_body(
    problem: Problem, *, language: str, instance: str, trace_id: str | None, problems_url: str
) -> dict[str, Any]:
    """Return the members of the answer, in the order people read them."""
    body: dict[str, Any] = {
        "type": problem.kind.type_uri or f"{problems_url}/{problem.slug}",
        "slug": problem.slug,
        "title": problem.kind.title(language),
        "status": problem.status,
        "detail": problem.detail,
        "instance": instance,
        "trace_id": trace_id,
    }
    if problem.errors:
        body["errors"] = [error.as_json() for error in problem.errors]
    return {**body, **problem.extensions}


def problem_response(
    problem: Problem, *, accept_language: str | None, instance: str, trace_id: str | None, problems_url: str
) -> Response:
    """Write the problem as a response."""
    language = preferred_language(accept_language)
    body = problem_body(problem, language=language, instance=instance, trace_id=trace_id, problems_url=problems_url)
    headers = {"Content-Language": language, "Cache-Control": "no-store", "Vary": "Accept-Language", **problem.headers}
    return Response(orjson.dumps(body, default=str), status_code=problem.status, media_type=MEDIA_TYPE, headers=headers)
