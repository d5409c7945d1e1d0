"""Published configurations: exact counts against the reference classes, stated quantisation, clear refusals."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.accounting import count_parameters
from app.engine.errors import EngineInputError
from app.engine.huggingface import PublishedModel, read_config

CONFIGS = Path(__file__).parents[1] / "data" / "hf_configs"
EXPECTED = list(csv.DictReader((CONFIGS / "expected.csv").read_text(encoding="utf-8").splitlines()))


def load(file: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((CONFIGS / file).read_text(encoding="utf-8"))
    return config


def read(file: str) -> PublishedModel:
    side = CONFIGS / file.replace(".json", ".hf_quant_config.json")
    return read_config(load(file), quantization_file=load(side.name) if side.exists() else None)


def test_all_configs_are_covered() -> None:
    assert len(EXPECTED) == 43


@pytest.mark.parametrize("row", EXPECTED, ids=lambda row: row["name"])
def test_counts_are_those_of_the_reference_class(row: dict[str, str]) -> None:
    count = count_parameters(read(row["file"]).transformer)
    assert count.total == int(row["total_params"])
    assert count.active == int(row["active_params"])
    assert count.active_without_input_embedding == int(row["active_params_without_input_embedding"])
    assert count.other == int(row["vision_params_in_total"])


@pytest.mark.parametrize(
    ("file", "weights", "activations", "kv_cache", "attention"),
    [
        ("meta-llama--Meta-Llama-3.1-8B.json", "bf16", "bf16", None, "bf16"),
        ("nvidia--Llama-3.1-70B-Instruct-FP8.json", "fp8", "fp8", "fp8", "fp8"),
        ("openai--gpt-oss-20b.json", "mxfp4", "bf16", None, "bf16"),
        ("deepseek-ai--DeepSeek-V3.json", "fp8", "fp8", None, "fp8"),
        ("deepseek-ai--DeepSeek-V4-Flash.json", "mxfp4", "fp8", None, "fp8"),
        ("nvidia--DeepSeek-V3.1-NVFP4.json", "nvfp4", "nvfp4", "fp8", "bf16"),
        ("nvidia--Qwen3-235B-A22B-NVFP4.json", "nvfp4", "nvfp4", "fp8", "nvfp4"),
        ("nvidia--Qwen3.6-35B-A3B-NVFP4.json", "nvfp4", "bf16", "fp8", "fp8"),
        ("nvidia--GLM-5.1-NVFP4.json", "nvfp4", "nvfp4", "fp8", "bf16"),
        ("moonshotai--Kimi-K2.5.json", "int4", "bf16", None, "bf16"),
    ],
)
def test_stated_quantization(file: str, weights: str, activations: str, kv_cache: str | None, attention: str) -> None:
    stated = read(file).quantization
    assert (stated.weights, stated.activations, stated.kv_cache) == (weights, activations, kv_cache)
    assert stated.parts["attention"] == attention
    assert stated.parts["router"] == "bf16"


@pytest.mark.parametrize(
    "key", ["hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"]
)
def test_a_missing_key_is_named(key: str) -> None:
    config = load("meta-llama--Meta-Llama-3.1-8B.json")
    del config[key]
    with pytest.raises(EngineInputError) as error:
        read_config(config)
    assert error.value.field == key


@pytest.mark.parametrize("value", [0, -1, 1.5, "32", True])
def test_an_impossible_value_is_named(value: object) -> None:
    config = {**load("meta-llama--Meta-Llama-3.1-8B.json"), "num_hidden_layers": value}
    with pytest.raises(EngineInputError, match="num_hidden_layers"):
        read_config(config)


def test_a_short_layer_list_is_refused() -> None:
    config = load("openai--gpt-oss-20b.json")
    config["layer_types"] = config["layer_types"][:5]
    with pytest.raises(EngineInputError, match="describes 5 layers, but the model has 24"):
        read_config(config)


def test_encoders_are_refused() -> None:
    with pytest.raises(EngineInputError, match="decoder-only"):
        read_config({"model_type": "bert", "hidden_size": 768})


def test_gpt2_names_are_understood() -> None:
    config = {
        "model_type": "gpt2",
        "n_layer": 12,
        "n_embd": 768,
        "n_head": 12,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert count_parameters(read_config(config).transformer).total == 124439808
