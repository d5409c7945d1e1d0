"""Published whole runs: wall and accelerator hours as predicted, with checkpoints and failures, against the reports."""

import json
import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from app.catalog.shipped import read_data, shipped_models
from app.engine.errors import EngineInputError
from app.engine.hardware import Cluster, Fabric
from app.engine.huggingface import read_config
from app.engine.outcome import Infeasible
from app.engine.run import run_training
from app.engine.training.calibration import TrainingCalibration
from app.engine.training.search import search_training
from app.engine.transformer import Transformer
from app.engine.typical import typical_mixture, typical_transformer
from app.engine.workload import Software, TrainingWorkload
from benchmarks.accuracy.run_facts import (
    accelerator_of,
    batch_of,
    conditions_of,
    plan_loss,
    plan_of,
    precision_of,
    sequence_of,
    stack_of,
    year_of,
)

Case = Mapping[str, Any]

KINDS = ("pretrain", "continued_pretrain", "full_finetune", "lora", "qlora")

# Where a run states no batch: 4 million tokens a step while pretraining as Llama 2 and 3 begin (Touvron et al. 2023;
# Grattafiori et al. 2024), 32 sequences otherwise (fsdp_qlora and tulu recipes).
PRETRAIN_BATCH_TOKENS = 4_194_304
# Large clusters take larger batches: 16 million tokens on Llama 3 405B's 16,384 accelerators.
LEAST_TOKENS_PER_ACCELERATOR = 1024
FINETUNE_BATCH_SEQUENCES = 32

# Rows a configuration is spelled with in the file, and its name in a Hugging Face configuration.
DIMENSIONS = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ffn": "intermediate_size",
    "vocab": "vocab_size",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure of one run: measured and predicted, or why there is no prediction."""

    id: str
    metric: str
    measured: float
    predicted: float | None
    p10: float | None
    p90: float | None
    refused: str | None
    evidence_class: str | None
    basis: str


def run(file: Path, json_out: Path | None) -> int:
    """Judge every run of a YAML file in the schema of ``benchmarks/data/whole_runs.yaml`` and print a table."""
    calibration = TrainingCalibration.from_mapping(read_data("calibration/training.json"))
    rows = [
        row for case in yaml.safe_load(file.read_text(encoding="utf-8"))["cases"] for row in judge(case, calibration)
    ]
    for row in rows:
        print(_line(row))
    _summary(rows)
    if json_out is not None:
        json_out.write_text(json.dumps([_element(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    return 0


def judge(case: Case, calibration: TrainingCalibration) -> list[Judged]:
    """Judge the wall and accelerator hours of one run; cases of other kinds give nothing."""
    measured = case.get("measured") or {}
    hours, accelerator_hours = measured.get("wall_hours"), measured.get("accelerator_hours")
    count = (case.get("hardware") or {}).get("count")
    if case.get("kind") not in KINDS or not case.get("tokens") or not (hours or accelerator_hours):
        return []
    if accelerator_hours is None and hours is not None and count is not None:
        accelerator_hours = hours * count
    if accelerator_hours is None:
        return []
    figures = {"accelerator_hours": float(accelerator_hours)}
    if hours is not None:
        figures["wall_hours"] = float(hours)
    try:
        predicted, evidence, basis = _predict(case, calibration)
    except (EngineInputError, _RefusedError) as error:
        return [_refused(case, metric, value, str(error)) for metric, value in figures.items()]
    scale = {"accelerator_hours": float(count or 1), "wall_hours": 1.0}
    return [
        Judged(
            id=case["id"],
            metric=metric,
            measured=value,
            predicted=predicted[1] * scale[metric],
            p10=predicted[0] * scale[metric],
            p90=predicted[2] * scale[metric],
            refused=None,
            evidence_class=evidence,
            basis=basis,
        )
        for metric, value in figures.items()
    ]


class _RefusedError(ValueError):
    """A case that lacks what a prediction needs."""


def _predict(case: Case, calibration: TrainingCalibration) -> tuple[tuple[float, float, float], str, str]:
    hardware = case["hardware"]
    accelerator, assumed = accelerator_of(case)
    if accelerator is None:
        raise _RefusedError(f"accelerator not in the catalog: {hardware.get('label')}")
    transformer, basis = _transformer(case["model"])
    basis += ", part assumed" if assumed else ""
    year = year_of(case, accelerator)
    sequence = sequence_of(case)
    batch_tokens = case.get("global_batch_tokens")
    if batch_tokens is None:
        pretraining = case["kind"].endswith("pretrain")
        large = max(PRETRAIN_BATCH_TOKENS, LEAST_TOKENS_PER_ACCELERATOR * hardware["count"])
        batch_tokens = large if pretraining else FINETUNE_BATCH_SEQUENCES * sequence
        basis += ", batch assumed"
    count = hardware["count"]
    rate = accelerator.scale_out_bytes_per_s_per_accelerator
    cluster = Cluster(
        accelerator=accelerator,
        accelerators=count,
        fabric=Fabric(kind="infiniband", bytes_per_s_per_accelerator=rate) if rate else None,
    )
    workload = TrainingWorkload(
        transformer=transformer,
        method=case["kind"],
        tokens=float(case["tokens"]),
        sequence_length=sequence,
        global_batch_sequences=batch_of(batch_tokens, sequence, count),
        precision=precision_of(case, accelerator),
        software=Software(stack=stack_of(case), released_year=year),
    )
    result = search_training(workload, cluster, plan_of(case), calibration)
    if isinstance(result, Infeasible):
        raise _RefusedError(f"{result.rule}: {result.message}")
    outcome = run_training(result, workload, cluster, conditions_of(year))
    if isinstance(outcome, Infeasible):
        raise _RefusedError(f"{outcome.rule}: {outcome.message}")
    band = outcome.run_hours
    low, middle, high = plan_loss(cluster)
    return (band.p10 * low, band.p50 * middle, band.p90 * high), result.evidence_class, basis


def _transformer(model: Case) -> tuple[Transformer, str]:
    """Architecture as stated; by the family its note names; or a typical one of the stated size."""
    stated = model.get("architecture") or {}
    if isinstance(stated, str):
        stated = {"note": stated}
    config = {name: stated[key] for key, name in DIMENSIONS.items() if stated.get(key)}
    if {"num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"} <= set(config):
        config["model_type"] = "llama" if stated.get("gated_mlp", True) else "gpt_neox"
        config["tie_word_embeddings"] = bool(stated.get("tied", False))
        return read_config(config, name=model["name"]).transformer, "stated dimensions"
    told = f"{stated.get('note', '')} {str(model.get('name') or '').split(' (')[0].replace(' ', '-')}".lower()
    for family in re.findall(r"[a-z0-9.]+(?:-[a-z0-9.]+)+", told):
        if family in shipped_models():
            return shipped_models()[family], f"family {family}"
    parameters, active = model.get("parameters"), model.get("active_parameters")
    if not parameters:
        raise _RefusedError("neither dimensions nor parameters are stated")
    if active and active < parameters:
        return typical_mixture(float(parameters), float(active)), "typical mixture of that size"
    return typical_transformer(float(parameters)), "typical architecture of that size"


def _refused(case: Case, metric: str, value: float, reason: str) -> Judged:
    return Judged(
        id=case["id"],
        metric=metric,
        measured=value,
        predicted=None,
        p10=None,
        p90=None,
        refused=reason,
        evidence_class=None,
        basis="",
    )


def _line(row: Judged) -> str:
    if row.predicted is None:
        return f"{row.id:38} {row.metric:18} {row.measured:12.1f} refused: {row.refused}"
    error = row.predicted / row.measured - 1.0
    return f"{row.id:38} {row.metric:18} {row.measured:12.1f} {row.predicted:12.1f} {error:+8.1%}  {row.basis}"


def _summary(rows: list[Judged]) -> None:
    for title, complete in (("complete specification", True), ("all predicted", False)):
        errors, inside = [], []
        for row in rows:
            assumed = row.basis.startswith("typical") or "assumed" in row.basis
            if row.metric != "accelerator_hours" or row.predicted is None or (complete and assumed):
                continue
            errors.append(abs(row.predicted / row.measured - 1.0))
            inside.append((row.p10 or 0.0) <= row.measured <= (row.p90 or 0.0))
        if errors:
            covered = sum(inside) / len(inside)
            print(f"{title}: {len(errors)} runs, median error {statistics.median(errors):.1%}, coverage {covered:.0%}")


def _element(row: Judged) -> dict[str, Any]:
    return {
        "id": row.id,
        "metric": row.metric,
        "measured": row.measured,
        "predicted": row.predicted,
        "p10": row.p10,
        "p90": row.p90,
        "refused": row.refused,
        "evidence_class": row.evidence_class,
        "searched_predicted": row.predicted,
        "searched_reason": None,
    }
