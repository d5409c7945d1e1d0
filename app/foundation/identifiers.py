"""Opaque ids: a prefix that says what it is, and a UUIDv7 that sorts by time."""

import re

import uuid_utils

_ID = re.compile(r"[a-z]{2,5}_[0-9a-f]{32}")


def new_id(prefix: str) -> str:
    """Return a fresh id such as ``quo_018f...`` (prefix, underscore, 32 hexadecimal digits)."""
    hexadecimal: str = uuid_utils.uuid7().hex
    return f"{prefix}_{hexadecimal}"


def is_id(value: str, prefix: str) -> bool:
    """Tell whether the text has the form of one of our ids with this prefix."""
    return value.startswith(f"{prefix}_") and _ID.fullmatch(value) is not None
