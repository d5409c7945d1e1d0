"""A client made from the API document alone: a method per operation, bodies and answers by generated models.

The models come from datamodel-code-generator; nothing here knows an operation or a field by name. What a generator
needs of the document (an operation id that is unique and a Python name, a schema for every body, a schema for every
answer that is JSON) is what breaks here when it is missing.
"""

import importlib.util
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
from datamodel_code_generator import DataModelType, InputFileType, PythonVersion, generate
from datamodel_code_generator.format import Formatter
from pydantic import BaseModel

METHODS = ("get", "post", "put", "patch", "delete")


def generate_models(document: Path, into: Path) -> ModuleType:
    """Write the models of a document's schemas as a module, and load it."""
    generate(
        document,
        input_file_type=InputFileType.OpenAPI,
        output=into,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        use_annotated=True,
        formatters=[Formatter.BUILTIN],
    )
    spec = importlib.util.spec_from_file_location("generated_models", into)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Pydantic looks generic models up among the loaded modules.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


class DocumentClient:
    """``client.<operation id>(path parameters, query=..., body=model)`` gives an answer that fits its model."""

    def __init__(self, document: Path, models: ModuleType, address: str, **headers: str) -> None:
        self.models = models
        self._http = httpx.Client(base_url=address, headers=headers, timeout=60)
        told = json.loads(document.read_text(encoding="utf-8"))
        operations, self._responses = told["paths"], told["components"].get("responses", {})
        self._operations = {
            operation["operationId"]: (method, path, operation)
            for path, item in operations.items()
            for method, operation in item.items()
            if method in METHODS
        }

    def close(self) -> None:
        self._http.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in self._operations:
            raise AttributeError(name)
        method, path, operation = self._operations[name]

        def call(*, body: BaseModel | None = None, query: dict[str, Any] | None = None, **path_parameters: Any) -> Any:
            assert set(path_parameters) == set(re.findall(r"\{(\w+)\}", path)), name
            sent = None if body is None else body.model_dump(mode="json", by_alias=True, exclude_unset=True)
            answer = self._http.request(method, path.format(**path_parameters), json=sent, params=query)
            return self._read(operation, answer)

        return call

    def _read(self, operation: dict[str, Any], answer: httpx.Response) -> Any:
        described = operation["responses"]
        found = described.get(str(answer.status_code)) or described[f"{answer.status_code // 100}XX"]
        if "$ref" in found:
            found = self._responses[found["$ref"].rpartition("/")[2]]
        media_type = answer.headers["content-type"].partition(";")[0]
        reference = found["content"][media_type].get("schema", {}).get("$ref", "").rpartition("/")[2]
        if not media_type.endswith("json"):
            return answer.content
        told = answer.json()
        # Held to the document's model; read as plain JSON, because models of other answers would read alike.
        if reference:
            getattr(self.models, reference).model_validate(told)
        return told
