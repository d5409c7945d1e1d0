"""JSON as strict as money needs it: no duplicate keys, no NaN, no number beyond a double, no text SQL cannot hold.

The usual parsers keep the last of two equal keys and read 1e400 as infinity; either would sign a number that nobody
wrote. The fast path is one ``json.loads`` with hooks; only a refused body is scanned again to find where.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from app.foundation.problems import Problem

MAX_DEPTH = 64
_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|-?[A-Za-z0-9.+-]+|[{}\[\],:])', re.DOTALL)
_SUSPECT_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


def media_type_of(headers: Mapping[str, str]) -> str:
    """The type a body is sent as, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json_type(media_type: str) -> bool:
    """Whether a media type is JSON or a format built on it (RFC 6839)."""
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


class _RefusedError(ValueError):
    pass


def _refuse(reason: str) -> NoReturn:
    raise _RefusedError(reason)


def _finite(token: str) -> float:
    value = float(token)
    return value if math.isfinite(value) else _refuse(f"the number {token[:40]} is too large for a double")


def _whole(token: str) -> int:
    return int(token) if len(token) <= 400 else _refuse("a number has more than 400 digits")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                _refuse(f"the key {key[:80]!r} appears twice in one object")
            seen.add(key)
    return result


def _constant(token: str) -> NoReturn:
    _refuse(f"{token} is not a JSON number (RFC 8259), write null or a finite number in its place")


def malformed(reason: str, offset: int) -> Problem:
    return Problem(
        "malformed-json",
        f"The body cannot be read as JSON: {reason}, at character {offset}. Send one valid JSON document in UTF-8.",
        offset=offset,
    )


def parse_strict(body: bytes) -> Any:
    """Parse a JSON document, or raise the problem ``malformed-json`` with the character offset of the fault."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise malformed("it is not UTF-8", error.start) from error
    try:
        value = json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_int=_whole, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise malformed(error.msg[0].lower() + error.msg[1:], error.pos) from error
    except _RefusedError as error:
        raise malformed(str(error), _offset_of_fault(text)) from error
    except RecursionError as error:
        raise malformed(f"it is nested deeper than {MAX_DEPTH} levels", 0) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise malformed(f"it is nested deeper than {MAX_DEPTH} levels", 0)
    suspect = _SUSPECT_ESCAPE.search(text)
    if (suspect or "\x00" in text) and not storable(value):
        raise malformed("a text holds a NUL or half a surrogate pair", suspect.start() if suspect else 0)
    return value


def _depth(value: Any) -> int:
    level, deepest = [value], 0
    while level:
        below = [child for node in level for child in _children(node)]
        level, deepest = below, deepest + 1
    return deepest - 1


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def storable(value: Any) -> bool:
    """Whether no text in a JSON value holds a NUL or half a surrogate pair, which no database keeps."""
    waiting = [value]
    while waiting:
        node = waiting.pop()
        texts = [node] if isinstance(node, str) else list(node) if isinstance(node, dict) else []
        if any("\x00" in text or any("\ud800" <= char <= "\udfff" for char in text) for text in texts):
            return False
        waiting.extend(_children(node))
    return True


def _offset_of_fault(text: str) -> int:
    """Find the first lexeme that ``json.loads`` accepts in form and we refuse in meaning."""
    open_objects: list[set[str] | None] = []
    previous = ""
    for match in _TOKEN.finditer(text):
        lexeme, start = match.group(1), match.start(1)
        if lexeme in "{[":
            open_objects.append(set() if lexeme == "{" else None)
        elif lexeme in "}]":
            open_objects.pop()
        elif lexeme[0] == '"':
            keys = open_objects[-1] if open_objects else None
            if keys is not None and previous in "{,":
                key = json.loads(lexeme, strict=False)
                if key in keys:
                    return start
                keys.add(key)
        elif lexeme not in ",:" and lexeme not in ("true", "false", "null") and _is_refused_number(lexeme):
            return start
        previous = lexeme
    return 0


def _is_refused_number(lexeme: str) -> bool:
    if lexeme.lstrip("-")[:1].isalpha():
        return True
    return len(lexeme) > 400 or not math.isfinite(float(lexeme))
