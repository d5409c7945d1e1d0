"""Published configurations: exact counts against the reference classes, stated quantisation, clear refusals."""

import contextlib
import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.engine.accounting import count_parameters
from app.engine.cache import cache_bytes_per_sequence, cache_bytes_per_token, cache_read_bytes_per_step
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


TOTALS = yaml.safe_load((CONFIGS.parents[1] / "golden" / "published_totals.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TOTALS, ids=lambda case: case["repository"])
def test_published_totals(case: dict[str, Any]) -> None:
    assert count_parameters(read_config(case["config"]).transformer).total == case["total"]


def test_blocks_of_an_architecture_search() -> None:
    """Two blocks as Llama-3.3-Nemotron-Super-49B spells them: one whole, one without attention."""
    attention = {"n_heads_in_group": 8, "no_op": False, "replace_with_linear": False}
    config = {
        "model_type": "nemotron-nas",
        "hidden_size": 8192,
        "num_hidden_layers": 2,
        "num_attention_heads": 64,
        "num_key_value_heads": None,
        "intermediate_size": None,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "block_configs": [
            {"attention": attention, "ffn": {"ffn_mult": 5.25, "no_op": False}},
            {"attention": {"n_heads_in_group": None, "no_op": True}, "ffn": {"ffn_mult": 1.3125, "no_op": False}},
        ],
    }
    whole = 2 * 8192 * 8192 + 2 * 8192 * 1024 + 3 * 8192 * 28672 + 2 * 8192
    assert count_parameters(read_config(config).transformer).total == (
        whole + 3 * 8192 * 7168 + 8192 + 2 * 128256 * 8192 + 8192
    )


def test_block_types_may_replace_the_layer_count() -> None:
    config = load("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json")
    words = {"M": "mamba", "*": "attention", "E": "moe", "-": "mlp"}
    pattern = config.pop("hybrid_override_pattern")
    del config["num_hidden_layers"]
    config["layers_block_type"] = [words[letter] for letter in pattern]
    assert count_parameters(read_config(config).transformer).total == 31577937344


def test_kimi_delta_attention_has_a_constant_state() -> None:
    config = load("moonshotai--Kimi-K2-Instruct.json")
    config["linear_attn_config"] = {
        "full_attn_layers": [4, 8],
        "num_heads": 32,
        "head_dim": 128,
        "short_conv_kernel_size": 4,
    }
    model = read_config(config).transformer
    # two latent layers of 576 cached elements a token; everything else keeps its state
    assert cache_bytes_per_token(model, 1.0) == 2 * 576
    assert cache_bytes_per_sequence(model, 0, 1.0) > 0


def test_block_sparse_selection_reads_less_than_it_keeps() -> None:
    config = load("MiniMaxAI--MiniMax-M2.5.json")
    config["sparse_attention_config"] = {
        "sparse_attention_freq": [0] * 3 + [1] * 59,
        "sparse_topk_blocks": 16,
        "sparse_block_size": 128,
        "sparse_num_index_heads": 4,
        "sparse_index_dim": 128,
    }
    model = read_config(config).transformer
    context = 100_000.0
    kept = cache_bytes_per_sequence(model, context, 1.0)
    assert kept == context * (62 * 2 * 8 * 128 + 59 * 128)
    assert cache_read_bytes_per_step(model, context, 1.0) == kept - 59 * (context - 2048) * 2 * 8 * 128


VARIED = [
    "deepseek-ai--DeepSeek-V4-Flash.json",
    "google--gemma-4-26B-A4B.json",
    "moonshotai--Kimi-K2.5.json",
    "openai--gpt-oss-20b.json",
    "Qwen--Qwen3.5-35B-A3B.json",
]


@pytest.mark.parametrize("file", VARIED)
@pytest.mark.parametrize("wrong", [None, -1, "x", [1], {"a": 1}, 10**30], ids=str)
def test_any_wrong_value_is_an_engine_error_or_harmless(file: str, wrong: object) -> None:
    """People paste configurations: nothing in one may end in another kind of error, or take forever."""
    whole = load(file)
    parts = [(), *((key,) for key, value in whole.items() if isinstance(value, dict))]
    for path in parts:
        for key in whole[path[0]] if path else whole:
            damaged = load(file)
            (damaged[path[0]] if path else damaged)[key] = wrong
            with contextlib.suppress(EngineInputError):
                count_parameters(read_config(damaged).transformer)
