"""Errors of the engine: pure values, they know nothing of HTTP."""

from collections.abc import Mapping


class EngineInputError(ValueError):
    """An input the engine cannot compute with.

    Parameters
    ----------
    field : str
        Name of the field or key at fault.
    reason : str
        One sentence: what is wrong and why it matters.
    nearest : mapping of str to value
        Values that would be accepted, where there are any.
    """

    def __init__(self, field: str, reason: str, nearest: Mapping[str, float | int | str] | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.nearest = dict(nearest or {})
