"""What a request schema takes as a number, a flag or an instant: the JSON type the API document names, and no other."""

import typing
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, get_args, get_origin

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, Strict, TypeAdapter, ValidationError

from app.foundation.dates import InstantText


def named_in(node: Any) -> set[str]:
    """Names of the schemas a part of the document refers to."""
    if isinstance(node, list):
        return set().union(*map(named_in, node))
    if not isinstance(node, dict):
        return set()
    own = {node["$ref"].rsplit("/", 1)[1]} if "$ref" in node else set()
    return own.union(*map(named_in, node.values()))


def read_from_bodies(document: dict[str, Any]) -> set[str]:
    """Names of the schemas of request bodies, with all they are made of."""
    operations = [one for found in document["paths"].values() for one in found.values()]
    waiting = named_in([one.get("requestBody", {}) for one in operations])
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting |= named_in(document["components"]["schemas"][name]) - found
    return found


def all_schemas(parent: type[BaseModel] = BaseModel) -> Iterator[type[BaseModel]]:
    for schema in parent.__subclasses__():
        yield schema
        yield from all_schemas(schema)


def leaves(hint: Any, metadata: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every plain type in a field's annotation, with what is said about it."""
    if get_origin(hint) is Annotated:
        inner, *said = get_args(hint)
        yield from leaves(inner, (*metadata, *said))
    elif get_origin(hint) not in (None, typing.Literal):
        for part in get_args(hint):
            yield from leaves(part, metadata)
    else:
        yield hint, metadata


def test_numbers_and_flags_of_a_body_are_never_guessed_from_another_type(app: FastAPI) -> None:
    names = read_from_bodies(app.openapi())
    fields = [
        (f"{schema.__name__}.{name}", hint, any(isinstance(one, Strict) for one in metadata))
        for schema in all_schemas()
        if schema.__module__.startswith("app.") and schema.__name__ in names
        for name, field in schema.model_fields.items()
        for hint, metadata in leaves(field.annotation, tuple(field.metadata))
        if hint in (int, float, bool)
    ]
    assert len(fields) > 100
    assert [name for name, _, is_strict in fields if not is_strict] == []


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (0, "instant_format"),
        (1.5, "instant_format"),
        (True, "instant_format"),
        ([], "instant_format"),
        ("2026-12-31", "instant_format"),
        ("2026-12-31T16:00:00", "timezone_aware"),
        ("0001-01-01T00:00:00+14:00", "instant_range"),
        ("9999-12-31T23:59:59-12:00", "instant_range"),
    ],
)
def test_an_instant_is_text_with_a_zone_that_a_calendar_holds(given: object, code: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(InstantText).validate_python(given)
    assert [error["type"] for error in refused.value.errors()] == [code]


def test_an_instant_is_read_in_utc() -> None:
    read = TypeAdapter(InstantText).validate_python("2026-12-31T16:00:00+08:00")
    assert (read, read.tzinfo) == (datetime(2026, 12, 31, 8, tzinfo=UTC), UTC)
