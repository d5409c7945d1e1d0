"""Measurement rows as cases the engine can predict: the conventions of the sources live here, and only here."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.hardware import Accelerator
from app.engine.serving.operators import Precisions, checkpoint_precisions
from app.engine.serving.speculation import accepted_tokens
from app.engine.transformer import MoeMlp, Transformer
from benchmarks.serving.stacks import released_year, stack_of

# InferenceX draws lengths uniformly in [0.8 L, L]; data README, trap 1
UNIFORM_LENGTH_MEAN = 0.9

# what InferenceX's public scripts set and its rows do not repeat (SemiAnalysisAI/InferenceX, `benchmarks/*.sh`,
# October 2025 to April 2026): prompt tokens of an iteration; vLLM's `async-scheduling`; `kv-cache-dtype` (below)
INFERENCEX_CHUNK = {"vllm": 8192.0, "tensorrt-llm": 16384.0}

# how many request times a test runs on after its queue is empty: the longest remaining time of the running requests
# over their mean; for lengths uniform from zero, and uniform in [0.8 L, L]. Equal lengths end together
LONGEST_TAIL = 0.9
SHORT_TAIL = 0.5

PRECISIONS = {
    "fp8": "fp8", "fp16": "bf16", "bf16": "bf16", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "int4": "int4", "int8": "int8",
    "fp4": "nvfp4", "awq": "int4", "gptq": "int4", "w4a16": "int4", "w8a8": "int8", "float16": "bf16",
    "bfloat16": "bf16", "mxfp8": "mxfp8", "fp32": "fp32",
}  # fmt: skip


# other spellings: four bits are weight-only integers, eight bits integers
LOOSE_PRECISIONS = ((r"w4|q4|4[- ]?bit", "int4"), (r"w8|q8|8[- ]?bit", "int8"), (r"16[- ]?bit|half", "bf16"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row, ready to predict."""

    id: str
    source: str
    accelerator: Accelerator
    transformer: Transformer
    model: str
    precisions: Precisions
    stack: str
    year: float
    regime: str
    accelerators: int
    plan: tuple[int, int, int, int] | None
    prompt: float | None
    output: float
    concurrency: float | None
    fixed_lengths: bool
    mixture: bool
    mlperf: bool
    measured: Mapping[str, float]
    limits: tuple[float, float] | None = None
    test_requests: float | None = None
    workers: tuple[int, int] | None = None
    tail: float = 0.0
    draft: int = 0
    accepted: float = 1.0
    overlaps: bool = False
    chunk: float | None = None

    @property
    def pair(self) -> str:
        """Chip and model."""
        return f"{self.accelerator.id}|{self.model}"


class RefusedError(Exception):
    """A row that cannot be predicted, with the reason."""


def weights_format(precision: str | None, accelerator: Accelerator) -> str:
    """Weight format of a row's precision string.

    ``unstated`` is the framework's default of 16 bit; no string at all, or one that hides it, means the best format
    with a unit of its own on the chip (data README, scoring rules).
    """
    text = (precision or "").lower()
    if text.startswith("unstated"):
        return "bf16"
    if not text or text in ("auto", "unknown", "undisclosed"):
        peaks = accelerator.dense_peaks
        return "nvfp4" if peaks.fp4 and accelerator.vendor == "NVIDIA" else "fp8" if peaks.fp8 else "bf16"
    words = re.findall(r"[a-z]*fp\d+|bf16|int\d|awq|gptq|w4a16|w8a8|float16|bfloat16", text)
    for word in words:
        if word in PRECISIONS:
            return PRECISIONS[word]
    for pattern, name in LOOSE_PRECISIONS:
        if re.search(pattern, text):
            return name
    raise RefusedError(f"unknown precision {precision!r}")


# families whose FP8 checkpoints the authors publish block-scaled and without cache scales; NVIDIA's own FP8 and FP4
# checkpoints of other families carry FP8 cache scales (`kv_cache_quant_algo` in hf_quant_config.json)
BLOCK_SCALED = ("qwen3", "deepseek", "minimax", "glm", "kimi")


def kv_format(stated: str | None, weights: str, stack: str, model: str) -> str:
    """Cache format: as stated; else FP8 where the stack takes it from the checkpoint and the checkpoint has it."""
    text = (stated or "").lower()
    if "fp8" in text or "int8" in text:
        return "fp8"
    if "16" in text:
        return "bf16"
    quantised = weights == "nvfp4" or (weights == "fp8" and not model.startswith(BLOCK_SCALED))
    return "fp8" if quantised and stack == "tensorrt-llm" else "bf16"


def inferencex_kv(accelerator: Accelerator, model: str) -> str:
    """Cache format that InferenceX's scripts set: FP8 for Llama, and for gpt-oss on Blackwell; else the default."""
    fp8 = model.startswith("llama3") or (model.startswith("gpt-oss") and "Blackwell" in accelerator.architecture)
    return "fp8" if fp8 else "bf16"


def plan_of(row: Mapping[str, Any]) -> tuple[int, int, int, int] | None:
    """Stated (tensor, pipeline, expert, data) widths; None when the row states no tensor width."""
    p = row["parallelism"] or {}
    tensor, pipeline = p.get("tp"), p.get("pp") or 1
    if tensor is None:
        return None
    gpus = int(row["gpus"])
    data = p.get("dp") or 1
    if data > 1 and tensor * pipeline * data > gpus and tensor % data == 0:
        tensor //= data  # SGLang's attention DP counts its ranks inside the tensor width
    expert = p.get("ep") or 1
    group = tensor * data
    while expert > 1 and (expert > group or group % expert):
        expert //= 2
    return int(tensor), int(pipeline), int(expert), int(data)


def regime_of(row: Mapping[str, Any]) -> str:
    """``closed``, ``offline``, ``static``, ``server`` or ``disaggregated``, from the scenario and the fields set."""
    scenario = (row.get("scenario") or "").lower()
    if "disagg" in scenario and row.get("concurrency") is not None:
        return "disaggregated"
    if "static" in scenario:
        return "static"
    if "offline" in scenario:
        return "offline"
    if scenario in ("server", "interactive") and row.get("concurrency") is None:
        return "server"
    if row.get("concurrency") is not None or row.get("batch") is not None:
        return "closed"
    return "offline"


def _measured(figures: Mapping[str, Any], gpus: int, isl: float | None, osl: float) -> dict[str, float]:
    """Numbers of a row; the total output rate is derived from the rate per accelerator or of all tokens if need be."""
    out = {k: float(v) for k, v in figures.items() if isinstance(v, int | float) and v > 0}
    if "output_tokens_per_s_total" not in out:
        if "output_tokens_per_s_per_gpu" in out:
            out["output_tokens_per_s_total"] = out["output_tokens_per_s_per_gpu"] * gpus
        elif "requests_per_s" in out:
            out["output_tokens_per_s_total"] = out["requests_per_s"] * osl
        elif "total_tokens_per_s" in out and isl is not None:
            out["output_tokens_per_s_total"] = out["total_tokens_per_s"] * osl / (isl + osl)
    return out


def workers_of(text: str, gpus: int, size: int) -> tuple[int, int]:
    """Prefill and decode replicas of a disaggregated row, in units of its decode replica; half and half if unstated."""
    stated = re.search(r"prefill (\d+) workers? x (\d+) gpus?.*?decode (\d+) workers?", text)
    if stated:
        return max(round(int(stated[1]) * int(stated[2]) / size), 1), int(stated[3])
    half = max(gpus // (2 * size), 1)
    return half, half


# a draft token is taken this often where a row says no more than that it speculates: 85 to 90 % of DeepSeek-V3's second
# tokens (DeepSeek-AI 2024, section 5.4.3), and three draft tokens, as in SGLang's recipes for it
ACCEPTANCE, DRAFT_TOKENS = 0.85, 3
_SPECULATES = re.compile(r"eagle|\bmtp\b|speculat|accept(?:ance|ed)?[- ]length")
_OPEN = re.compile(
    r"\b(?:no|not|none|without|absent|unknown|unstated|off|disabled|capable|may|possibly|whether|flag)\b"
)


def speculation_of(text: str) -> tuple[int, float]:
    """Draft tokens a step and tokens it advances, (0, 1) where the row does not say that it speculates."""
    clauses = re.split(r"[;,]\s|\.\s", text)
    if not any(_SPECULATES.search(c) and not _OPEN.search(c) for c in clauses):
        return 0, 1.0
    drafts = re.search(r"(?:draft|speculative)[-_ ]tokens?[=: ]+(\d+)|\bmtp[-=]?(\d)\b", text)
    length = re.search(r"accept(?:ance|ed)?[- ]length\D{0,12}(\d+(?:\.\d+)?)", text)
    draft = int(drafts[1] or drafts[2]) if drafts else DRAFT_TOKENS
    if length is None:
        return draft, accepted_tokens(draft, ACCEPTANCE)
    return max(draft, math.ceil(float(length[1])) - 1), float(length[1])


def case_of(
    row: Mapping[str, Any], accelerators: Mapping[str, Accelerator], models: Mapping[str, Transformer],
    names: Mapping[str, str],
) -> Case:  # fmt: skip
    """Turn a row into a case, or raise :class:`RefusedError` with the reason."""
    gpu, key = row["gpu"], row["model"]["family_key"]
    accelerator = accelerators.get(names.get(gpu, ""))
    if accelerator is None:
        raise RefusedError(f"unknown accelerator {gpu!r}")
    transformer = models.get(key)
    if transformer is None:
        raise RefusedError(f"unknown model {key!r}")
    source = row["source"]
    title = source["title"] if isinstance(source, dict) else str(source)
    published = source.get("version_or_date") if isinstance(source, dict) else None
    stack = stack_of(row.get("engine")) or "vllm"
    year = released_year(row.get("engine"), stack, published) or 2025.5
    weights = weights_format(row.get("precision"), accelerator)
    text = f"{row['id']} {row.get('notes') or ''}".lower()
    spread = "inferencex" in text
    stated = row.get("kv_precision") or (inferencex_kv(accelerator, key) if spread else None)
    kv = kv_format(stated, weights, stack, key)
    scale = UNIFORM_LENGTH_MEAN if spread and "served mean" not in text else 1.0
    isl, osl = row.get("isl"), row.get("osl")
    if osl is None:
        raise RefusedError("no output length")
    served = "served mean" in text
    mlperf = "mlperf" in title.lower()
    if isl is None and not mlperf:
        raise RefusedError("no input length")
    mixture = any(isinstance(g.feed_forward, MoeMlp) for g in transformer.groups)
    concurrency = row.get("concurrency") or row.get("batch")
    if row.get("batch") and regime_of(row) == "static":
        concurrency = row["batch"]
    gpus = int(row["gpus"])
    measured = _measured(row["measured"], gpus, isl, float(osl))
    plan, split = plan_of(row), regime_of(row) == "disaggregated"
    sent = re.search(r"(\d+) (?:requests|prompts)\b(?! ?/| per\b)|num[_ -]prompts?[=: ]+(\d+)", text)
    draft, accepted = speculation_of(text)
    limits = re.search(r"ttft (\d+) ms.*?tpot (\d+) ms", text)
    return Case(
        id=row["id"], source=title, accelerator=accelerator, transformer=transformer, model=key,
        precisions=checkpoint_precisions(transformer, weights, weights, kv), stack=stack, year=year,
        regime=regime_of(row), accelerators=gpus, plan=plan,
        prompt=None if isl is None else max(float(isl) * scale, 1.0), output=max(float(osl) * scale, 1.0),
        concurrency=None if concurrency is None else float(concurrency), fixed_lengths=not (spread or served),
        mixture=mixture, mlperf=mlperf, measured=measured,
        overlaps=spread and stack == "vllm", chunk=INFERENCEX_CHUNK.get(stack) if spread else None,
        test_requests=float(sent[1] or sent[2]) if sent else None, draft=draft, accepted=accepted,
        tail=LONGEST_TAIL if served else SHORT_TAIL if spread else 0.0,
        workers=workers_of(text, gpus, math.prod(plan[i] for i in (0, 1, 3))) if plan and split else None,
        limits=(float(limits[1]) * 1e-3, float(limits[2]) * 1e-3) if limits else None,
    )  # fmt: skip
