"""Every public engine function names its parameters, their units and a numbered reference."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator

import pytest

import app.engine

# What a physical figure looks like in a signature; arrays say unit and shape in their own words.
FIGURES = (float, "float", "float | None")


def functions() -> Iterator[tuple[str, Callable[..., object]]]:
    for module in pkgutil.walk_packages(app.engine.__path__, "app.engine."):
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            if inspect.isfunction(value) and value.__module__ == module.name and not name.startswith("_"):
                yield f"{module.name.removeprefix('app.engine.')}.{name}", value


FUNCTIONS = dict(functions())


def test_functions_are_found() -> None:
    assert len(FUNCTIONS) > 50


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_function_is_documented(name: str) -> None:
    text = inspect.getdoc(FUNCTIONS[name]) or ""
    assert re.search(r"^References\n-+\n1\. ", text, re.MULTILINE), f"{name} has no numbered reference"
    for parameter in inspect.signature(FUNCTIONS[name]).parameters.values():
        line = re.search(rf"^(?:\w+, )*{parameter.name}(?:, \w+)*(?: :.*)?$", text, re.MULTILINE)
        assert line, f"{name} does not say what {parameter.name} is"
        if parameter.annotation in FIGURES:
            assert "[" in line.group(), f"{name} gives no unit for {parameter.name}"
