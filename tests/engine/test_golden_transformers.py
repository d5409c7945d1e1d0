"""Golden cases of ``tests/golden/transformers.yaml``."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.catalog.shipped import shipped_models
from app.engine.accounting import count_parameters
from app.engine.cache import cache_bytes_per_sequence, cache_bytes_per_token, state_elements
from app.engine.flops import forward_flops
from app.engine.huggingface import read_config
from app.engine.transformer import Transformer

TESTS = Path(__file__).parents[1]
CASES = yaml.safe_load((TESTS / "golden" / "transformers.yaml").read_text(encoding="utf-8"))
BF16 = 2.0
FORWARDS_OF_A_STEP = 3.0


def architecture(case: dict[str, Any]) -> Transformer:
    stated = case["architecture"]
    if "family" in stated:
        return shipped_models()[stated["family"]]
    if "config" in stated:
        return read_config(stated["config"]).transformer
    path = TESTS / "data" / "hf_configs" / stated["config_file"]
    return read_config(json.loads(path.read_text(encoding="utf-8"))).transformer


def figure(name: str, model: Transformer, inputs: dict[str, float]) -> float:
    count = count_parameters(model)
    sequence = inputs.get("sequence", 4096)
    flops = forward_flops(model, sequence, causal_fraction=inputs.get("causal_fraction", 0.5))
    return {
        "total_parameters": lambda: count.total,
        "active_parameters": lambda: count.active,
        "active_without_input_embedding": lambda: count.active_without_input_embedding,
        "cache_bytes_per_token": lambda: cache_bytes_per_token(model, BF16),
        "cache_bytes_at_32768": lambda: cache_bytes_per_sequence(model, 32768, BF16),
        "constant_state_elements": lambda: sum(g.count * state_elements(g.mixer) for g in model.groups),
        "training_flops_per_token": lambda: FORWARDS_OF_A_STEP * flops.total,
        # the head's logits are kept, everything else runs forward twice
        "recomputed_flops_per_token": lambda: 4 * flops.total - flops.head,
    }[name]()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_golden(case: dict[str, Any]) -> None:
    model = architecture(case)
    for name, expected in case["expected"].items():
        assert figure(name, model, case.get("inputs", {})) == pytest.approx(float(expected), rel=case["tolerance"]), (
            name
        )
