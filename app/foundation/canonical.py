"""Canonical JSON (RFC 8785) and its hash: the same value gives the same bytes everywhere."""

import hashlib
from typing import Any

import orjson
import rfc8785

# Between these the shortest decimal form of a number is the same in RFC 8785 and in orjson, but for whole numbers.
_PLAIN_FROM, _PLAIN_TO = 1e-4, 1e15
_LARGEST_INTEGER = 2**53 - 1


def canonical_bytes(value: Any) -> bytes:
    """Serialise as RFC 8785; integers beyond 2**53 and non-finite numbers are refused with ValueError.

    Written by orjson, eight times as fast as rfc8785 on a revision, wherever both write the same bytes; rfc8785 writes
    the numbers of which they do not, and everything with a key beyond ASCII, whose order differs.
    """
    try:
        return orjson.dumps(_written_alike(value), option=orjson.OPT_SORT_KEYS)
    except (_Differs, TypeError, RecursionError):
        return rfc8785.dumps(value)


class _Differs(Exception):
    """The two libraries may not agree on this value."""


def _written_alike(value: Any) -> Any:
    """The value with each number that orjson would write in another form replaced."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    if kind is dict:
        if not all(type(key) is str and key.isascii() for key in value):
            raise _Differs
        return {key: item if type(item) is str else _written_alike(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [item if type(item) is str else _written_alike(item) for item in value]
    if kind is float:
        return _number(value)
    if kind is int and -_LARGEST_INTEGER <= value <= _LARGEST_INTEGER:
        return value
    raise _Differs


def _number(value: float) -> Any:
    if value.is_integer() and -_PLAIN_TO < value < _PLAIN_TO:
        return int(value)
    if _PLAIN_FROM < abs(value) < _PLAIN_TO:
        return value
    return orjson.Fragment(rfc8785.dumps(value))


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def canonical_sha256(value: Any) -> str:
    """Hash of the canonical bytes, 64 hexadecimal digits."""
    return sha256_hex(canonical_bytes(value))
