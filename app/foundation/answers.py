"""Base of the documented answers that are written from stored documents rather than from a model."""

from typing import Any

from pydantic import BaseModel, ConfigDict

Responses = dict[int | str, dict[str, Any]]


class Shown(BaseModel):
    """What a reader may rely on. There may be more members, and more may come: readers ignore what they do not know.

    Answers are not made from these models: stored content goes out as the bytes that were hashed. Tests, and requests
    made up from the API document, hold the answers against them.
    """

    model_config = ConfigDict(extra="allow")


def shows(model: type[BaseModel], status: int = 200) -> Responses:
    """Say in the API document what a route answers that writes its own bytes."""
    return {status: {"model": model}}
