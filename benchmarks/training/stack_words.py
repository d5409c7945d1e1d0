"""Which software stack a row's source or notes name."""

import re
from collections.abc import Mapping
from typing import Any

# words in a row's source, and failing that in its notes, that name its stack; first hit wins
STACK_WORDS = (
    ("simumax", "plain"),
    # a vendor's fork of somebody's framework is that vendor's stack
    ("habana", "habana"),
    ("habanaai", "habana"),
    ("gaudi", "habana"),
    ("neuron", "neuron"),
    ("neuronx", "neuron"),
    ("megatron-deepspeed", "megatron-deepspeed"),
    ("bigscience", "megatron-deepspeed"),
    ("gpt-neox", "megatron-deepspeed"),
    ("deepspeed", "deepspeed"),
    ("colossalai", "deepspeed"),
    ("colossal-ai", "deepspeed"),
    ("maxtext", "maxtext"),
    ("tpu-recipes", "maxtext"),
    ("jax", "jax"),
    ("levanter", "jax"),
    ("paxml", "jax"),
    ("palm", "jax"),
    ("torchtitan", "torchtitan"),
    ("automodel", "automodel"),
    ("llm-foundry", "llm-foundry"),
    ("llm foundry", "llm-foundry"),
    ("mosaicml", "llm-foundry"),
    ("internevo", "pytorch"),
    ("internlm", "pytorch"),
    ("nanotron", "pytorch"),
    ("olmo", "pytorch"),
    ("lit-gpt", "pytorch"),
    ("litgpt", "pytorch"),
    ("axolotl", "pytorch"),
    ("torchtune", "pytorch"),
    ("trl", "pytorch"),
    ("metaseq", "fsdp"),
    ("megatron-bridge", "megatron-bridge"),
    ("mlperf", "mlperf"),
    ("nemo", "nemo"),
    ("megatron", "megatron"),
    ("megatron-lm", "megatron"),
    ("primus", "megatron"),
    ("dgx cloud", "nemo"),
    ("fsdp", "fsdp"),
)


def source_text(row: Mapping[str, Any]) -> str:
    """Title, repository, path and version of a row, in lower case."""
    source = row.get("source") or {}
    parts = [source.get(k) for k in ("title", "repo_or_site", "path", "version_or_date")]
    return " ".join(str(p) for p in parts if p).lower()


def row_text(row: Mapping[str, Any]) -> str:
    """The same with the notes."""
    return f"{source_text(row)} {row.get('notes') or ''}".lower()


def stack_of(row: Mapping[str, Any]) -> str | None:
    """The stack a row names, None where it names none."""
    for text in (source_text(row), row_text(row)):
        for word, stack in STACK_WORDS:
            if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text):
                return stack
    return None
