"""A request from a file: YAML or JSON, read as strictly as a body over HTTP."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

from app.cli.session import fail
from app.foundation.problems import Problem
from app.foundation.strict_json import parse_strict

# what YAML 1.2 and JSON read as a number and YAML 1.1 as text
_EXPONENT = re.compile(r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+")


class _Loader(yaml.SafeLoader):
    """Plain values only; numbers as in YAML 1.2; no key twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(None, None, f"the key {twice!r} appears twice", node.start_mark)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789"))


def read_body(path: Path) -> dict[str, Any]:
    """Read a whole body, one item, or one job alone."""
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        found = parse_strict(data) if data.lstrip()[:1] == b"{" else _from_yaml(data)
    except Problem as problem:
        fail(f"{path} cannot be read: {problem.detail}")
    except RecursionError:
        fail(f"{path} cannot be read: it is nested too deep")
    except (OSError, ValueError, yaml.YAMLError) as error:
        fail(f"{path} cannot be read: {error}")
    if not isinstance(found, dict):
        fail(f"{path} is not a request: it has to be a mapping with items, one item with a job, or one job.")
    if "items" in found:
        return found
    return {"items": [found if "job" in found else {"job": found}]}


def _from_yaml(data: bytes) -> Any:
    found = yaml.load(data.decode("utf-8"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    return parse_strict(json.dumps(found, default=str).encode())
