"""Calling an operation of the matrix, and what of an answer two callers may compare."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.testclient import TestClient
from sqlalchemy import event

from app.foundation.database import Database
from tests.security.matrix import Operation, filled
from tests.security.world import Headers, Party, send

# What an answer carries that is about the call and not about what was asked for.
OF_THE_CALL = frozenset({"traceparent", "ratelimit", "date"})


def every_route(app: FastAPI) -> dict[tuple[str, str], Dependant | None]:
    """All operations with what they depend on: of the routers, hidden ones too, and of the framework itself."""
    found: dict[tuple[str, str], Dependant | None] = {}
    for mounted in app.routes:
        inner: Any = getattr(mounted, "effective_route_contexts", None)
        for route in [mounted] if inner is None else inner():
            for method in getattr(route, "methods", None) or ():
                if method not in ("HEAD", "OPTIONS"):
                    # {name:path} is written {name} in the API document
                    path = re.sub(r"\{(\w+):\w+\}", r"{\1}", route.path)
                    found[method, path] = getattr(route, "dependant", None)
    documented = {(method.upper(), path) for path, item in app.openapi()["paths"].items() for method in item}
    assert documented <= found.keys()
    return found


class Names(dict[str, str]):
    """Ids by name; a name that no tenant has an id for (an offer, a revision number) gets something of its form."""

    def __missing__(self, name: str) -> str:
        return "1"


def names_for(ids: Mapping[str, str], own: Party, chosen: Mapping[str, str]) -> Names:
    """The ids to fill in, where some are the caller's own."""
    names = Names(ids)
    for name, pattern in chosen.items():
        own_name = re.fullmatch(r"\{own\.(\w+)\}", pattern)
        names[name] = own.ids[own_name.group(1)] if own_name else pattern.format_map(Names(ids))
    return names


def call(
    client: TestClient, key: tuple[str, str], operation: Operation, names: Names, who: Headers, **headers: str
) -> httpx.Response:
    """Send one operation."""
    method, template = key
    path = template.format_map(names) + (f"?{operation.query}" if operation.query else "")
    body = filled(operation.body, names)
    return send(client, method, path, who, body, operation.form, **{**operation.headers, **headers})


def mentions(key: tuple[str, str], operation: Operation, names: set[str]) -> set[str]:
    """Which of these names an operation takes."""
    text = key[1] + str(operation.body) + "".join(str(dict(ask)) for ask in operation.asks)
    return {name for name in names if f"{{{name}}}" in text}


def comparable(answer: httpx.Response, ids: Mapping[str, str]) -> tuple[int, str, list[tuple[str, str]]]:
    """Status, body and headers with ids and trace taken out."""
    text = re.sub(r'"trace_id":"[0-9a-f]{32}"', '"trace_id":""', answer.text)
    for name, value in sorted(ids.items()):
        text = text.replace(value, f"<{name}>")
    headers = sorted((name, value) for name, value in answer.headers.items() if name not in OF_THE_CALL)
    return answer.status_code, text, headers


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Every statement both engines run meanwhile."""
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        seen.append(statement)

    engines = (database.reader_engine, database.writer_engine)
    for engine in engines:
        event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", note)
