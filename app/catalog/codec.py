"""Frozen values to canonical JSON and back, driven by their type hints, for the records a revision keeps."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

TYPE_TAG = "$type"


def encode(value: Any) -> Any:
    """Write a value as JSON data: decimals and dates as strings, dataclasses as objects with their type's name."""
    if is_dataclass(value) and not isinstance(value, type):
        body = {field.name: encode(getattr(value, field.name)) for field in fields(value) if field.init}
        return {TYPE_TAG: type(value).__name__, **body}
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    return value


def decode(hint: Any, data: Any) -> Any:
    """Read a value of the hinted type; a whole number is read as float where the hint says float."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(hint), data)
    if origin is tuple:
        item, *rest = get_args(hint)
        if rest == [Ellipsis]:
            return tuple(decode(item, entry) for entry in data)
        return tuple(decode(part, entry) for part, entry in zip((item, *rest), data, strict=True))
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        item = get_args(hint)[1]
        return {key: decode(item, entry) for key, entry in data.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        hints = _hints(hint)
        return hint(**{name: decode(hints[name], entry) for name, entry in data.items() if name in hints})
    if hint is Decimal:
        return Decimal(data)
    if hint is date:
        return date.fromisoformat(data)
    if hint is float:
        return float(data)
    return data


def _decode_union(options: tuple[Any, ...], data: Any) -> Any:
    if data is None:
        return None
    options = tuple(option for option in options if option is not type(None))
    if len(options) == 1:
        return decode(options[0], data)
    if isinstance(data, dict) and TYPE_TAG in data:
        named = {option.__name__: option for option in options if isinstance(option, type)}
        return decode(named[data[TYPE_TAG]], data)
    return data


@lru_cache(maxsize=256)
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
