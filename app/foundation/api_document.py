"""The API document (OpenAPI 3.1): what the framework writes, with headers, refusals and credentials said once.

An operation declares what it reads (``Idempotency-Key``, ``If-Match``, ``cursor`` ...); what it answers beside its body
follows from that, so no route repeats it.
"""

from typing import Any

from fastapi import FastAPI

from app.foundation.problem_catalogue import CATALOGUE
from app.foundation.problems import MEDIA_TYPE

VERSIONED = "/v1/"
_TEXT = {"type": "string"}
HEADERS: dict[str, dict[str, Any]] = {
    "Location": {"description": "Path of what was made, or of the job.", "schema": _TEXT},
    "ETag": {"description": "Strong tag of what is shown, for If-Match and If-None-Match.", "schema": _TEXT},
    "Link": {"description": 'The next page (RFC 8288): <...>; rel="next". Absent on the last.', "schema": _TEXT},
    "Retry-After": {"description": "Seconds to wait before asking again.", "schema": {"type": "integer"}},
    "RateLimit": {"description": 'Requests left, and seconds until more: "default";r=599;t=41.', "schema": _TEXT},
    "RateLimit-Policy": {"description": 'Requests in a window: "default";q=600;w=60.', "schema": _TEXT},
    "Preference-Applied": {"description": "What of Prefer was followed (RFC 7240).", "schema": _TEXT},
    "Idempotent-Replayed": {"description": "true on the stored answer to a retry.", "schema": _TEXT},
    "Idempotency-Expires": {"description": "Until when retries get this answer (HTTP date).", "schema": _TEXT},
    "Allow": {"description": "Methods that are possible.", "schema": _TEXT},
    "WWW-Authenticate": {"description": "How to authenticate.", "schema": _TEXT},
    "traceparent": {"description": "W3C trace context; its trace id is that of problems.", "schema": _TEXT},
    "Deprecation": {"description": "Since when it is deprecated: @unix seconds (RFC 9745).", "schema": _TEXT},
    "Sunset": {"description": "When it ends (RFC 8594, HTTP date).", "schema": _TEXT},
}
PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A refusal (RFC 9457); some slugs have more members, which the error catalogue names.",
    "required": ["type", "slug", "title", "status", "detail", "instance", "trace_id"],
    "properties": {
        "type": _TEXT,
        "slug": {"type": "string", "enum": sorted(CATALOGUE)},
        "title": {"type": "string", "description": "In the language asked for: en or zh-CN."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, why, and what to do next."},
        "instance": _TEXT,
        "trace_id": {"type": ["string", "null"]},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "pointer": {"type": "string", "description": "RFC 6901, into the body."},
                    "parameter": _TEXT,
                    "code": _TEXT,
                    "message": _TEXT,
                },
            },
        },
    },
}
PROBLEM_EXAMPLE = {
    "type": "https://gpuquote.example/problems/draft-exists",
    "slug": "draft-exists",
    "title": "There is a draft already",
    "status": 409,
    "detail": "The quote has a draft already, revision 1, and has room for one. Edit, submit or cancel it first.",
    "instance": "/v1/quotes/quo_01a22fc9e1ab72999a4d5292092323d8/reprice",
    "trace_id": "fa13f4b796d5130bd47b86442338a962",
    "draft": "/v1/quotes/quo_01a22fc9e1ab72999a4d5292092323d8/revisions/1",
}
_PROBLEM_CONTENT = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, a share link, or an OpenID token."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}


def _header_refs(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


RESPONSES: dict[str, dict[str, Any]] = {
    "NotModified": {"description": "The client holds the current one", "headers": _header_refs("ETag")},
    "Refused": {
        "description": "Refused; see slug",
        "content": {MEDIA_TYPE: {**_PROBLEM_CONTENT[MEDIA_TYPE], "example": PROBLEM_EXAMPLE}},
        "headers": _header_refs("traceparent", "Retry-After", "ETag", "Allow", "WWW-Authenticate"),
    },
    "TooMany": {
        "description": "The quota is used up: quota-exceeded",
        "content": _PROBLEM_CONTENT,
        "headers": _header_refs("traceparent", "Retry-After", "RateLimit", "RateLimit-Policy"),
    },
    "Failed": {
        "description": "Our fault, or too busy, or past the time a calculation may take",
        "content": _PROBLEM_CONTENT,
        "headers": _header_refs("traceparent", "Retry-After"),
    },
}


class DocumentedApi(FastAPI):
    """An application whose API document says the whole contract."""

    def openapi(self) -> dict[str, Any]:
        """Return the document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = completed(super().openapi())
        return self.openapi_schema


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """Add to what the framework wrote what it cannot know."""
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    # The framework's own refusal, which no path of ours answers with.
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    components |= {"headers": HEADERS, "responses": RESPONSES, "securitySchemes": SECURITY_SCHEMES}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            _complete(operation, is_versioned=path.startswith(VERSIONED))
    return document


def _complete(operation: dict[str, Any], *, is_versioned: bool) -> None:
    reads = {parameter["name"] for parameter in operation.get("parameters", ())}
    answers = operation["responses"]
    answers.pop("422", None)
    for status, answer in answers.items():
        if status[0] == "2":
            names = _answer_headers(status, reads, is_versioned=is_versioned, is_deprecated="deprecated" in operation)
            answer["headers"] = {**_header_refs(*names), **answer.get("headers", {})}
    if "If-None-Match" in reads:
        answers["304"] = {"$ref": "#/components/responses/NotModified"}
    if is_versioned:
        answers["429"] = {"$ref": "#/components/responses/TooMany"}
        operation["security"] = [{}, {"bearer": []}, {"apiKey": []}]
    answers["4XX"] = {"$ref": "#/components/responses/Refused"}
    answers["5XX"] = {"$ref": "#/components/responses/Failed"}


def _answer_headers(status: str, reads: set[str], *, is_versioned: bool, is_deprecated: bool) -> list[str]:
    names = ["traceparent"]
    if is_versioned:
        names += ["RateLimit", "RateLimit-Policy"]
    if status in ("201", "202"):
        names.append("Location")
    if status == "202" and "Prefer" in reads:
        names += ["Retry-After", "Preference-Applied"]
    if "cursor" in reads or is_deprecated:
        names.append("Link")
    if reads & {"If-Match", "If-None-Match"} or (status == "201" and "Prefer" in reads):
        names.append("ETag")
    if "Idempotency-Key" in reads:
        names += ["Idempotent-Replayed", "Idempotency-Expires"]
    return names + (["Deprecation", "Sunset"] if is_deprecated else [])
