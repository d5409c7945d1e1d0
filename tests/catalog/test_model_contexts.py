"""Context lengths ship with their source and agree with the published configurations."""

import json
from pathlib import Path

import pytest

from app.catalog.shipped import read_data, read_models, shipped_models

CONFIGS = Path(__file__).parents[1] / "data" / "hf_configs"
CONTEXTS = read_data("model_contexts.json")["contexts"]


def configuration(family: str) -> Path:
    """Where the published configuration a context is cited from would stand."""
    return CONFIGS / f"{CONTEXTS[family]['source'].split(' ')[0].replace('/', '--')}.json"


PUBLISHED = sorted(family for family in CONTEXTS if configuration(family).exists())


def test_a_good_part_of_the_contexts_is_checked_against_its_configuration() -> None:
    assert len(PUBLISHED) >= 15


def test_every_context_belongs_to_a_family_and_has_a_source() -> None:
    assert set(CONTEXTS) <= set(read_models())
    assert all(row["source"] and row["context"] > 0 for row in CONTEXTS.values())
    for family, row in CONTEXTS.items():
        assert shipped_models()[family].context == row["context"]


@pytest.mark.parametrize("family", PUBLISHED)
def test_the_published_configuration_says_the_same(family: str) -> None:
    config = json.loads(configuration(family).read_text(encoding="utf-8"))
    stated = config.get("max_position_embeddings") or config["text_config"]["max_position_embeddings"]
    assert CONTEXTS[family]["context"] == stated
