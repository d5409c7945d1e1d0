"""Texts that people read: at least one character of them can be seen."""

from typing import Annotated

from pydantic import AfterValidator, Field, Strict
from pydantic_core import PydanticCustomError


def _visible(value: str) -> str:
    if not any(character.isprintable() and not character.isspace() for character in value):
        raise PydanticCustomError(
            "blank_text", "holds no character that can be seen; write something or leave it out", {}
        )
    return value


Visible = Annotated[str, Strict(), AfterValidator(_visible), Field(json_schema_extra={"pattern": r"\S"})]
"""Text with a visible character; the lengths are added where it is used."""
