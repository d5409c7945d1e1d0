"""What the report of a whole run says of its hardware, date, software and precision, in the engine's words."""

import re
from collections.abc import Mapping
from typing import Any

from app.catalog.shipped import accelerator_id_of, shipped_accelerators
from app.engine.hardware import Accelerator, Cluster
from app.engine.run import Reliability, RunConditions
from app.engine.training.hardware_arrays import dense_peak
from app.engine.training.setting import NEWEST_SOFTWARE_YEAR
from app.engine.workload import TrainingPlanRequest
from benchmarks.training.rows import PRECISIONS

Case = Mapping[str, Any]

# Stacks a run is predicted with. None = as tuned as the best calibrated one: llm.c and its speedruns are hand-written
# kernels and compiled graphs, NVIDIA's own reports its own stack. A framework's name makes no vendor recipe of a run:
# everything else is somebody's own run, but for families whose rows are such runs themselves.
TUNED_WORDS = ("llm.c", "llmc", "modded-nanogpt", "nanochat", "nemotron")
MEASURED_WORDS = (("mpt", "llm-foundry"), ("llm-foundry", "llm-foundry"), ("maxtext", "maxtext"), ("tpu", "maxtext"))
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
# Automatic recovery became usual after Gemini's and MegaScale's reports (end of 2023 and early 2024). Before, hands
# restarted jobs: 3.5 hours each at Llama 3's rate of interruptions (reliability_facts.json: hlat-uptime, 77.8 % useful
# time on 4,096 chips), from the 11 minutes of a script (b200-504) to OPT's 7 hours (55 to 60 % useful time at 2.5
# interruptions in 1,000 accelerator-days).
AUTOMATIC_RECOVERY_YEAR = 2024.0
MANUAL = Reliability(restart_s=(660.0, 12600.0, 25500.0))
# A plan nobody states is not the best one: tuned recipes of the calibration rows take this much longer than the plan
# the engine would choose, by its own account (10th percentile, median and 90th of 120 pretraining rows that state their
# layout), and an own run hardly less. Within one node there is little to choose.
UNSTATED_PLAN = (1.0, 1.08, 1.18)
# Reports round the tokens of a batch ("4M" stands for 3.9 and for 4.2 million).
BATCH_ROUNDING = 0.05
# Where a run states no sequence: what pretraining benchmarks of the time used.
SEQUENCE = 4096


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
    """The stack a case is predicted with."""
    text = text_of(case)
    if any(_names(text, word) for word in TUNED_WORDS):
        return None
    return next((stack for word, stack in MEASURED_WORDS if _names(text, word)), OWN_RUN)


def _names(text: str, word: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", text) is not None


def plan_of(case: Case) -> TrainingPlanRequest:
    """What is known of a plan nobody states: fine-tuning recipes recompute activations."""
    return (
        TrainingPlanRequest() if str(case.get("kind")).endswith("pretrain") else TrainingPlanRequest(recompute="full")
    )


def batch_of(batch_tokens: float, sequence: int, accelerators: int) -> int:
    """Sequences of a batch told in round tokens: nearby, and shared evenly by as many accelerators as can be."""
    told = max(batch_tokens / sequence, 1.0)
    for share in range(1, accelerators + 1):
        if accelerators % share == 0:
            ranks = accelerators // share
            near = max(round(told / ranks), 1) * ranks
            if abs(near / told - 1.0) <= BATCH_ROUNDING:
                return near
    return round(told)


def plan_loss(cluster: Cluster) -> tuple[float, float, float]:
    """Time of the plan a run took over that of the best one: 10th percentile, median, 90th."""
    return UNSTATED_PLAN if cluster.accelerators > cluster.accelerator.accelerators_per_node else (1.0, 1.0, 1.0)


def sequence_of(case: Case) -> int:
    """Tokens of a sequence: as stated, or of a mean sample where a data set of samples is not said to be packed."""
    mean = (case.get("dataset") or {}).get("mean_tokens")
    if mean and "packed" not in text_of(case):
        return int(mean)
    return int(case.get("sequence_length") or SEQUENCE)


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
    if stack_of(case) is None and not told:
        return NEWEST_SOFTWARE_YEAR
    released = accelerator.released_on_year
    middle = [float(released) + MIDDLE_AGE_YEARS] if released else []
    year = min(told + middle, default=NEWEST_SOFTWARE_YEAR)
    return max([year, *[least for word, least in FLASH_YEARS if word in text][:1]])


def conditions_of(year: float) -> RunConditions:
    """What surrounds a run of a year."""
    if year >= AUTOMATIC_RECOVERY_YEAR:
        return RunConditions()
    return RunConditions(reliability=MANUAL)


def _decimal(date: str) -> float:
    parts = [float(part) for part in date.split("-")[:2]]
    return parts[0] + (parts[1] - 0.5) / 12.0 if len(parts) > 1 else parts[0] + 0.5
