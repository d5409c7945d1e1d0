"""Small builders shared by the training tests."""

from functools import lru_cache
from typing import Any

from app.catalog.shipped import read_data, shipped_accelerators, shipped_models
from app.engine.hardware import Accelerator, Cluster
from app.engine.outcome import TrainingResult
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from app.engine.transformer import DenseMlp, LayerGroup, SoftmaxAttention, Transformer
from app.engine.workload import TrainingPlanRequest, TrainingWorkload


@lru_cache(maxsize=1)
def calibration() -> TrainingCalibration:
    return TrainingCalibration.from_mapping(read_data("calibration/training.json"))


def accelerator(key: str = "h100-sxm5-80") -> Accelerator:
    return shipped_accelerators()[key]


def gpt(layers: int, hidden: int, heads: int, vocab: int) -> Transformer:
    mixer = SoftmaxAttention(heads=heads, kv_heads=heads, head_dim=hidden // heads, value_head_dim=hidden // heads)
    group = LayerGroup(count=layers, mixer=mixer, feed_forward=DenseMlp(ffn=4 * hidden, gated=False))
    return Transformer(name="gpt", hidden=hidden, vocab=vocab, tied_embeddings=True, groups=(group,))


def workload(family: str = "llama3-8b", **changes: Any) -> TrainingWorkload:
    fields: dict[str, Any] = {
        "transformer": shipped_models()[family],
        "method": "pretrain",
        "tokens": 1e11,
        "sequence_length": 8192,
        "global_batch_sequences": 128,
        "precision": "bf16",
    }
    return TrainingWorkload(**(fields | changes))


def cluster(accelerators: int = 8, part: Accelerator | None = None, **changes: Any) -> Cluster:
    fields: dict[str, Any] = {"accelerator": part or accelerator(), "accelerators": accelerators, "fabric": None}
    return Cluster(**(fields | changes))


def result(job: TrainingWorkload, machine: Cluster, **pinned: Any) -> TrainingResult:
    found = search_training(job, machine, TrainingPlanRequest(**pinned), calibration())
    assert isinstance(found, TrainingResult), found
    return found
