"""The plan and the software date a measurement row states, in the engine's words."""

import math
import re
from collections.abc import Mapping
from typing import Any

from app.engine.hardware import Accelerator
from app.engine.training.hardware_arrays import COMPILED_VENDORS
from app.engine.training.setting import FUSED_ATTENTION_YEAR, STACK_FAMILIES, UNFUSED_ATTENTION_STACKS
from app.engine.workload import TrainingPlanRequest
from benchmarks.training.stack_words import row_text, source_text, stack_of

# Trainium layouts count NeuronCores; chips hold two (Trn1) or eight, in four logical ones (Trn2)
CORES_PER_CHIP = {"trainium1": 2, "trainium2": 4}


def year_of(row: Mapping[str, Any]) -> float | None:
    """Decimal year of the software a row ran; None where nothing tells."""
    title = str((row.get("source") or {}).get("title", ""))
    # a paper dates its software, whatever repository carries its table today
    if paper := re.search(r"et al\.?,? (\d{4})", title):
        return float(paper.group(1)) + 0.3
    # the container a table names is its software; the date of the file that carries it only bounds it
    version = str((row.get("source") or {}).get("version_or_date") or "").strip()
    if container := re.search(r"\(2(\d)\.(\d\d) (?:era|container)\)", source_text(row)):
        return _container_year(container)
    stated = row.get("software_released_on")
    if not stated and (container := re.fullmatch(r"2(\d)\.(0[1-9]|1[0-2])(?:\.\d+)?", version)):
        return _container_year(container)
    if not stated and (dated := re.search(r"20\d\d-(?:0[1-9]|1[0-2])", version)):
        stated = dated.group(0)
    if not stated:
        return None
    parts = str(stated).split("-")
    return float(parts[0]) + (float(parts[1]) - 0.5) / 12.0 if len(parts) > 1 else float(parts[0]) + 0.5


def _container_year(found: re.Match[str]) -> float:
    return 2020.0 + float(found.group(1)) + (float(found.group(2)) - 0.5) / 12.0


def micro_batches_of(row: Mapping[str, Any]) -> int | None:
    """Micro-batches of a step, where the notes state them."""
    found = re.search(r"mbc=(\d+)", str(row.get("notes") or ""))
    return int(found.group(1)) if found else None


def request_of(row: Mapping[str, Any], accelerator: Accelerator, batch: int | None) -> TrainingPlanRequest:
    """The plan fields a row states."""
    plan = dict(row.get("parallelism") or {})
    count, cores = int(row["gpus"]), CORES_PER_CHIP.get(accelerator.id, 1)
    tensor = plan.get("tp")
    if cores > 1 and tensor:
        tensor = max(tensor // cores, 1)
    plan, data = _fully_sharded(plan, count)
    tensor = plan.get("tp") if tensor is None else tensor
    shard = plan.get("fsdp")
    sharding = "zero3" if shard and shard > 1 else None
    if sharding is None and plan.get("dp") and STACK_FAMILIES.get(stack_of(row) or "megatron") == "megatron":
        # a stated data-parallel degree means replicated weights in these stacks
        sharding = "zero1"
    if sharding == "zero3" and "shard_grad_op" in row_text(row):
        sharding = "zero2"
    product = (tensor or 1) * (plan.get("pp") or 1) * (plan.get("cp") or 1)
    # a stated data degree that does not make up the accelerators counts something else (replicas net of experts)
    if data and (tensor is None or product * data != count):
        data = None
    recompute = str(row.get("recompute") or "")
    level = next((name for name in ("selective", "full", "none") if recompute.startswith(name)), None)
    virtual = plan.get("vp")
    micro = row.get("micro_batch")
    if micro is None and row.get("global_batch") is None and micro_batches_of(row):
        # the batch is derived from the stated number of micro-batches, one sequence each
        micro = 1
    if virtual is None and "1f1b" in row_text(row) and "interleaved" not in row_text(row):
        virtual = 1
    # compiled stacks shard the batch over every chip: a micro-batch that overfills it is another unit's
    compiled = accelerator.vendor in COMPILED_VENDORS
    at_once = micro and micro * (count // product if compiled and not plan.get("pp") else 1)
    if at_once and batch and at_once > batch:
        micro = None
    return TrainingPlanRequest(
        tensor=tensor,
        pipeline=plan.get("pp"),
        virtual_pipeline=virtual,
        context=plan.get("cp"),
        expert=plan.get("ep"),
        data=data,
        sharding=sharding,
        micro_batch_sequences=micro,
        recompute=level,
        sequence_parallel=_sequence_parallel(row, recompute),
    )


def _fully_sharded(plan: dict[str, Any], count: int) -> tuple[dict[str, Any], int | None]:
    """A plan's degrees and its data degree, where a stated sharding degree says more of them than is written."""
    shard, data = plan.get("fsdp") or 1, plan.get("dp")
    if shard <= 1:
        return plan, data
    # what is sharded fully over all accelerators has no other degree, and is in no case cut into stages
    names = ("tp", "pp", "cp") if shard == count else ("pp",)
    plan = plan | {name: plan.get(name) or 1 for name in names}
    others = math.prod(plan.get(name) or 1 for name in ("tp", "pp", "cp"))
    replicas = shard * (data or 1)
    return plan, replicas if others * replicas == count else data


def _sequence_parallel(row: Mapping[str, Any], recompute: str) -> bool | None:
    """As stated; else off before it became the recipes' default, together with fused attention."""
    if "sequence parallel" in recompute:
        return True
    year = year_of(row)
    old = year is not None and year < FUSED_ATTENTION_YEAR
    return False if old or stack_of(row) in UNFUSED_ATTENTION_STACKS else None
