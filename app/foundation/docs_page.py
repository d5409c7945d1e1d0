"""``/docs``: the API document as one page, written by the server: no script, nothing from elsewhere, works offline."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from jinja2 import Environment, FileSystemLoader
from starlette.responses import HTMLResponse, Response

from app.foundation.canonical import sha256_hex
from app.foundation.problem_catalogue import CATALOGUE

PAGES = Path(__file__).with_name("pages")
# The page holds no script and loads nothing but its own stylesheet.
POLICY = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_WORDS = {"anyOf": " or ", "oneOf": " or ", "allOf": " and "}


def add_docs_page(app: FastAPI) -> None:
    """Serve the page and its stylesheet."""

    async def page(request: Request) -> Response:
        return HTMLResponse(rendered(request.app), headers=PAGE_HEADERS)

    async def style(_request: Request) -> Response:
        return Response((PAGES / "docs.css").read_bytes(), media_type="text/css", headers=PAGE_HEADERS)

    app.add_route("/docs", page, include_in_schema=False)
    app.add_route("/docs.css", style, include_in_schema=False)


def rendered(app: FastAPI) -> str:
    """Write the page, once for each document."""
    return _rendered(json.dumps(app.openapi()))


@lru_cache(maxsize=4)
def _rendered(document: str) -> str:
    environment = Environment(loader=FileSystemLoader(PAGES), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["kind"] = kind
    parsed = json.loads(document)
    return environment.get_template("docs.html").render(
        document=parsed,
        digest=sha256_hex(document.encode())[:12],
        groups=_groups(parsed),
        problems=CATALOGUE.values(),
    )


def _groups(document: Mapping[str, Any]) -> dict[str, list[tuple[str, str, Any]]]:
    """Operations by their first tag, in the order of the document."""
    groups: dict[str, list[tuple[str, str, Any]]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            tag = (operation.get("tags") or ["service"])[0]
            groups.setdefault(tag, []).append((method.upper(), path, _resolved(document, operation)))
    return groups


def _resolved(document: Mapping[str, Any], operation: Mapping[str, Any]) -> dict[str, Any]:
    """The operation with the responses it shares with others written out."""
    answers = {
        status: document["components"]["responses"][answer["$ref"].rpartition("/")[2]] if "$ref" in answer else answer
        for status, answer in operation["responses"].items()
    }
    return {**operation, "responses": answers}


def kind(schema: Mapping[str, Any] | None) -> str:
    """Name a schema in a few words; what it refers to is a section of the page."""
    if not schema:
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for name, word in _WORDS.items():
        if name in schema:
            return word.join(kind(part) for part in schema[name])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {kind(schema.get('items'))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"map to {kind(schema['additionalProperties'])}"
    types = schema.get("type", "any")
    return " or ".join(types) if isinstance(types, list) else str(types)
