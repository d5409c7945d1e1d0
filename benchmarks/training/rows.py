"""Measurement rows of training as the engine's own values: workload, cluster, pinned plan, measured figures."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.catalog.shipped import accelerator_id_of, shipped_accelerators, shipped_models, unusable_models
from app.engine.hardware import Accelerator, Cluster, Fabric
from app.engine.training.hardware_arrays import dense_peak
from app.engine.training.setting import FUSED_ATTENTION_YEAR
from app.engine.workload import Adapter, Software, TrainingPlanRequest, TrainingWorkload
from benchmarks.training.layouts import micro_batches_of, request_of, year_of
from benchmarks.training.stack_words import row_text, source_text, stack_of

METHODS = {
    "pretrain": "pretrain",
    "continued_pretrain": "continued_pretrain",
    "sft": "full_finetune",
    "finetune": "full_finetune",
    "full_finetune": "full_finetune",
    "lora": "lora",
    "qlora": "qlora",
    "dpo": "dpo",
    "grpo": "grpo",
}
# precision strings begin with their format ("fp8-cs", "fp8-rowwise", "bf16-mixed"); longest first
PRECISIONS = ("mxfp8", "nvfp4", "fp8", "bf16", "fp16", "tf32", "fp32", "int8")
# sequence length where a row states none: what pretraining benchmarks of the time used
DEFAULT_SEQUENCE, OLD_DEFAULT_SEQUENCE = 4096, 2048
# tokens in a global batch where a row states none (Llama 2 and 3 pretraining: 4 million)
DEFAULT_BATCH_TOKENS = 4_194_304
# mean tokens of a SQuAD sample with its prompt: paragraphs of about 120 words, question and answer
SQUAD_TOKENS = 250.0
# FP8 training reached the stacks with Transformer Engine 1.0
FP8_YEAR = 2023.4
# tokens to the target of MLPerf tasks whose rows state none: median of the calibration rows that state both minutes
# (evaluations taken out) and tokens per second; GPT-3 1.09 to 1.21e9 over 11 rows, Llama 3.1 405B 2.4 to 2.7e9
MLPERF_TOKENS = {"gpt3-175b": 1.11e9, "llama3.1-405b": 2.51e9}


class RowRefusedError(ValueError):
    """A row that cannot be predicted, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One measurement in the engine's words.

    ``tokens_per_s`` is per accelerator; ``wall_hours`` None where the row has no duration or no amount of work.
    """

    id: str
    title: str
    family: str
    gpu: str
    task: str
    precision: str
    moe: bool
    proxy: bool
    workload: TrainingWorkload
    cluster: Cluster
    request: TrainingPlanRequest
    tokens_per_s: float | None
    wall_hours: float | None
    evaluation_hours: float
    peak_bytes: float | None
    tokens_total: float | None
    raw: Mapping[str, Any]


def read_rows(path: Path) -> list[Mapping[str, Any]]:
    """Raw rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _accelerator(row: Mapping[str, Any]) -> Accelerator:
    try:
        key = accelerator_id_of(str(row["gpu"]))
    except KeyError as error:
        raise RowRefusedError(str(error.args[0])) from None
    found = shipped_accelerators().get(key)
    if found is None:
        raise RowRefusedError(f"accelerator {key} cannot be computed with: the catalog lacks its memory or peaks")
    return found


def _precision(row: Mapping[str, Any], accelerator: Accelerator, year: float | None) -> str:
    stated = row.get("precision")
    if stated is None:
        modern = year is None or year >= FP8_YEAR
        best = ("fp8", "bf16", "fp16") if modern else ("bf16", "fp16")
        return next(p for p in best if dense_peak(accelerator, p) is not None)
    name = str(stated).lower().removeprefix("amp_").removeprefix("amp-")
    for known in PRECISIONS:
        if name.startswith(known):
            return known
    raise RowRefusedError(f"precision {stated!r} is not a training format the engine knows")


def _mtp(row: Mapping[str, Any]) -> int:
    notes = str(row.get("notes") or "").lower()
    if "w/o mtp" in notes or "without mtp" in notes:
        return 0
    if "w/ mtp" in notes or "with mtp" in notes:
        return 1
    implied = (row.get("derived") or {}).get("implied_gflops_per_token")
    # DeepSeek-V3 counts 250 GFLOP a token without its prediction layer and 260 with it
    return int(implied is not None and row["model"]["family_key"] == "deepseek-v3" and 256.0 < implied < 268.0)


def row_of(row: Mapping[str, Any]) -> Row:
    """One raw row as the engine's values.

    Raises
    ------
    RowRefusedError
        With the reason.
    """
    family = str((row.get("model") or {}).get("family_key"))
    transformer = shipped_models().get(family)
    if transformer is None:
        raise RowRefusedError(unusable_models().get(family, f"model {family!r} is not in the catalog"))
    accelerator, year = _accelerator(row), year_of(row)
    precision = _precision(row, accelerator, year)
    task = str(row.get("task") or "pretrain")
    if task not in METHODS:
        raise RowRefusedError(f"task {task!r} is not one the engine knows")
    if not row.get("gpus"):
        raise RowRefusedError("the row states no number of accelerators")
    count = int(row["gpus"])
    old = year is not None and year < FUSED_ATTENTION_YEAR
    sequence = int(row.get("seq_len") or (OLD_DEFAULT_SEQUENCE if old else DEFAULT_SEQUENCE))
    request = request_of(row, accelerator, row.get("global_batch"))
    batch = row.get("global_batch") or _default_batch(row, request, count, sequence)
    if request.data and batch % request.data:
        # a batch told in round tokens: the nearest one that the stated replicas share evenly
        batch = max(round(batch / request.data), 1) * request.data
    moe = any(getattr(g.feed_forward, "experts", 0) for g in transformer.groups)
    workload = TrainingWorkload(
        transformer=transformer,
        method=METHODS[task],
        tokens=float(row.get("tokens_total") or 1e9),
        sequence_length=sequence,
        global_batch_sequences=int(batch),
        precision=precision,
        moe_routing=row.get("moe_routing") if moe else None,
        mtp_layers=_mtp(row) if transformer.mtp_layers else 0,
        software=Software(stack=stack_of(row), released_year=year),
        adapter=_adapter(accelerator, precision) if task in ("lora", "qlora") else None,
        document_tokens=_document(row, task),
    )
    cluster = Cluster(accelerator=accelerator, accelerators=count, fabric=_fabric(row, accelerator))
    return _measured(row, workload, cluster, request, moe)


def _fabric(row: Mapping[str, Any], accelerator: Accelerator) -> Fabric | None:
    """The network a row states for a node ("inter-node 800 Gb/s"); None where it states none."""
    found = re.search(r"inter-node (\d+) Gb/s", str(row.get("notes") or ""))
    if not found:
        return None
    share = float(found.group(1)) * 1e9 / 8.0 / accelerator.accelerators_per_node
    return Fabric(kind="infiniband", bytes_per_s_per_accelerator=share)


def _adapter(accelerator: Accelerator, precision: str) -> Adapter:
    """NVIDIA's stacks keep frozen weights in FP8 when they compute in FP8 or below; others keep 16 bits."""
    low = accelerator.vendor == "NVIDIA" and precision in ("fp8", "mxfp8", "nvfp4")
    return Adapter(base_precision="fp8" if low else "bf16")


def _document(row: Mapping[str, Any], task: str) -> float | None:
    """NVIDIA's fine-tuning recipes pack SQuAD; MLPerf's long reports fill their sequences, others do not say."""
    text = row_text(row)
    recipe = any(word in text for word in ("nemo", "megatron-bridge", "dgx cloud", "squad")) and "mlperf" not in text
    return SQUAD_TOKENS if METHODS[task] in ("full_finetune", "lora") and recipe else None


def _default_batch(row: Mapping[str, Any], request: TrainingPlanRequest, count: int, sequence: int) -> int:
    ranks = max(count // ((request.tensor or 1) * (request.pipeline or 1) * (request.context or 1)), 1)
    micro = request.micro_batch_sequences or 1
    if batches := micro_batches_of(row):
        return ranks * micro * batches
    at_once = ranks * micro
    return at_once * max(round(DEFAULT_BATCH_TOKENS / sequence / at_once), 1)


def _measured(
    row: Mapping[str, Any], workload: TrainingWorkload, cluster: Cluster, request: TrainingPlanRequest, moe: bool
) -> Row:
    measured = row.get("measured") or {}
    count = cluster.accelerators
    tokens = float(workload.global_batch_sequences) * workload.sequence_length
    usable = row.get("usable_for") or ["throughput", "step_time", "time"]
    rate = measured.get("tokens_per_s_per_gpu")
    if rate is None and measured.get("tokens_per_s_total"):
        rate = measured["tokens_per_s_total"] / count
    if rate is None and measured.get("step_time_s"):
        rate = tokens / measured["step_time_s"] / count
    if "throughput" not in usable and "step_time" not in usable:
        rate = None
    hours = None
    if "time" in usable:
        hours = _hours(measured, count)
    notes = str(row.get("notes") or "")
    found = re.search(r"eval time inside the run: median ([\d.]+)", notes)
    peak = re.search(r"peak allocated ([\d.]+) GiB", notes)
    return Row(
        id=str(row["id"]),
        title=str((row.get("source") or {}).get("title", "unknown")),
        family=str(row["model"]["family_key"]),
        gpu=str(row["gpu"]),
        task=str(row.get("task") or "pretrain"),
        precision=workload.precision,
        moe=moe,
        proxy=bool(row.get("proxy_model")),
        workload=workload,
        cluster=cluster,
        request=request,
        tokens_per_s=float(rate) if rate else None,
        wall_hours=hours,
        evaluation_hours=float(found.group(1)) / 60.0 if found else 0.0,
        peak_bytes=float(peak.group(1)) * 2.0**30 if peak else None,
        tokens_total=_tokens(row),
        raw=row,
    )


def _tokens(row: Mapping[str, Any]) -> float | None:
    if row.get("tokens_total"):
        return float(row["tokens_total"])
    return MLPERF_TOKENS.get(row["model"]["family_key"]) if "mlperf" in source_text(row) else None


def _hours(measured: Mapping[str, Any], count: int) -> float | None:
    if measured.get("minutes_to_train"):
        return float(measured["minutes_to_train"]) / 60.0
    if measured.get("wall_days"):
        return float(measured["wall_days"]) * 24.0
    if measured.get("gpu_hours"):
        return float(measured["gpu_hours"]) / count
    return None


def readable_rows(raw: Sequence[Mapping[str, Any]]) -> tuple[list[Row], dict[str, str]]:
    """Rows the engine can take, and the reasons of the others by row id."""
    rows: list[Row] = []
    refused: dict[str, str] = {}
    for index, item in enumerate(raw):
        try:
            rows.append(row_of(item))
        except RowRefusedError as error:
            refused[str(item.get("id", index))] = str(error)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            refused[str(item.get("id", index))] = f"malformed row: {type(error).__name__}: {error}"
    return rows, refused
