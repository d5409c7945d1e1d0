"""JSON Merge Patch (RFC 7396) and the list of places where two documents differ (RFC 6901 pointers)."""

from collections.abc import Mapping
from typing import Any


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch: null removes a member, objects merge, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def changed_pointers(before: Any, after: Any, *, limit: int = 50) -> list[str]:
    """List pointers to the leaves that differ, at most ``limit`` of them, in document order."""
    found: list[str] = []
    _walk(before, after, "", found, limit)
    return found


def _walk(before: Any, after: Any, at: str, found: list[str], limit: int) -> None:
    if len(found) >= limit:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in [*before, *(k for k in after if k not in before)]:
            _walk(before.get(key), after.get(key), f"{at}/{_escape(str(key))}", found, limit)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            _walk(left, right, f"{at}/{index}", found, limit)
    elif before != after or type(before) is not type(after):
        found.append(at)


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
