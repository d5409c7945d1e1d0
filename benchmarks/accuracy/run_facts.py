"""What the report of a whole run says of its hardware, date, software and precision, in the engine's words."""

import re
from collections.abc import Mapping
from typing import Any

from app.catalog.shipped import accelerator_id_of, shipped_accelerators
from app.engine.hardware import Accelerator
from app.engine.run import Reliability, RunConditions
from app.engine.training.hardware_arrays import dense_peak
from benchmarks.training.rows import PRECISIONS
from benchmarks.training.stack_words import STACK_WORDS

Case = Mapping[str, Any]

# The stack a report names beyond the words of measurement rows. None = as tuned as the best calibrated one: llm.c and
# its speedruns are hand-written kernels and compiled graphs, NVIDIA's own reports its own stack.
OWN_WORDS: tuple[tuple[str, str | None], ...] = (
    ("llm.c", None),
    ("llmc", None),
    ("modded-nanogpt", None),
    ("nanochat", None),
    ("nemotron", None),
    ("mpt", "llm-foundry"),
    ("open-instruct", "deepspeed"),
    ("fsdp_qlora", "fsdp"),
    ("starcoder", "megatron"),
    # which has had fused attention since December 2022, unlike what it grew from
    ("gpt-neox", "deepspeed"),
)
# Everything else is somebody's own run of an open framework.
OWN_RUN = "plain"
# Fields of a case that date it, the first stated one counts.
DATE_FIELDS = ("started_on", "date", "run_date", "released_on", "software_released_on")
# A paper follows its run by about a quarter (Nemotron-4 15B, DeepSeek-V3, OLMoE: two to four months).
REPORT_LAG_YEARS = 0.25
# An undated run is taken three years after its accelerators shipped, in the middle of the years a generation is
# trained on (A100 from 2020, H100 from 2022), and never after the page that tells of it.
MIDDLE_AGE_YEARS = 3.5
# FlashAttention and its second version (Dao et al., May 2022 and July 2023), where a report names them.
FLASH_YEARS = (("flashattention-2", 2023.6), ("flash attention 2", 2023.6), ("flashattention", 2023.2))
# Automatic recovery became usual after Gemini's and MegaScale's reports (end of 2023 and early 2024); before, people
# restarted jobs: 48 minutes typical, 3.5 hours at worst (reliability_facts.json: hlat-uptime, opt-machine-failures).
AUTOMATIC_RECOVERY_YEAR = 2024.0
MANUAL_RESTART_S = (660.0, 2880.0, 12600.0)


def text_of(case: Case) -> str:
    """Name, source and notes of a case and its model, in lower case."""
    model, hardware = case.get("model") or {}, case.get("hardware") or {}
    architecture = model.get("architecture")
    note = architecture.get("note") if isinstance(architecture, Mapping) else architecture
    parts = (case.get("id"), model.get("name"), note, case.get("source"), case.get("notes"), hardware.get("label"))
    return " ".join(str(part) for part in parts if part).lower()


def accelerator_of(case: Case) -> tuple[Accelerator | None, bool]:
    """The accelerator, and whether its part had to be assumed from a bare name."""
    hardware = case["hardware"]
    stated = shipped_accelerators().get(str(hardware.get("catalog_id")))
    if stated is not None or hardware.get("catalog_id"):
        return stated, False
    words = re.split(r"[^\w-]+", str(hardware.get("label") or ""))
    for word in words:
        try:
            return shipped_accelerators().get(accelerator_id_of(word)), True
        except KeyError:
            continue
    return None, True


def precision_of(case: Case, accelerator: Accelerator) -> str:
    """The compute format a case states, as far as the part has it; 16 bits where it states none."""
    stated = str(case.get("precision") or "bf16").lower()
    found = [name for name in PRECISIONS if re.search(rf"(?<![a-z]){name}", stated)]
    return next((name for name in found if dense_peak(accelerator, name) is not None), "bf16")


def stack_of(case: Case) -> str | None:
    """The stack a case names."""
    text = text_of(case)
    for word, stack in OWN_WORDS + STACK_WORDS:
        if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text):
            return stack
    return OWN_RUN


def year_of(case: Case, accelerator: Accelerator) -> float:
    """Decimal year of a run: stated, from its report, or the middle of its accelerators' use."""
    text = text_of(case)
    for field in DATE_FIELDS:
        if case.get(field):
            return _decimal(str(case[field]))
    if started := re.search(r"(?:started|began|beginning) (?:on )?(\d{4}-\d{2})", text):
        return _decimal(started.group(1))
    if paper := re.search(r"arxiv[ :]*(\d{2})(\d{2})\.\d{4,5}", text):
        return 2000.0 + float(paper.group(1)) + (float(paper.group(2)) - 0.5) / 12.0 - REPORT_LAG_YEARS
    told = [_decimal(found) for found in re.findall(r"(?<!\d)20[12]\d-\d{2}(?!\d)", text)]
    told += [float(found) + 0.5 for found in re.findall(r"(?<![\d-])(20[12]\d)(?![\d-])", text)]
    released = accelerator.released_on_year
    middle = [float(released) + MIDDLE_AGE_YEARS] if released else []
    year = min(told + middle, default=2026.5)
    return max([year, *[least for word, least in FLASH_YEARS if word in text][:1]])


def conditions_of(year: float) -> RunConditions:
    """What surrounds a run of a year."""
    if year >= AUTOMATIC_RECOVERY_YEAR:
        return RunConditions()
    return RunConditions(reliability=Reliability(restart_s=MANUAL_RESTART_S))


def _decimal(date: str) -> float:
    parts = [float(part) for part in date.split("-")[:2]]
    return parts[0] + (parts[1] - 0.5) / 12.0 if len(parts) > 1 else parts[0] + 0.5
