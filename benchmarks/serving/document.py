"""The inference section of ``docs/accuracy.md``."""

import json

from benchmarks.accuracy.inference import shipped_calibration
from benchmarks.serving.mlperf import mlperf_lines
from benchmarks.serving.read import DATA, read_cases, read_rows

# written by ``benchmarks.calibrate inference``: the tables of the fit and of the cross-validations
TABLES = DATA / "inference_cross_validation.json"

_INTRODUCTION = """## Inference

Reproduce: `python -m benchmarks.calibrate inference` fits the parameters
(`app/catalog/data/calibration/serving.json`, the same bytes every time) and leaves
every group out in turn; `python -m benchmarks.document inference` writes this section from it; `python -m
benchmarks.accuracy inference FILE.jsonl` judges any file of the schema of `benchmarks/data/README.md`.

What is fitted: kernel curves per architecture and number format, on kernel times only (`kernels.csv`); then
two hundred small effects on top (vendor, family, format, stack, release year), each shrunk towards zero, on the
{figures} figures of {rows} measured rows. No effect belongs to a model, a part or a row. Errors are of predicted
over measured; a row is predicted with the plan it states. Whole groups are left out in the cross-validations: chip-
and-model pairs, sources, chips.

"""

_MLPERF = """**MLPerf** (whole systems, layout searched, mean input length free per model and fitted on these rows
only)

{text}

"""

_LIMITS = """**What limits the rest**

- One source states one stack on one chip in most cases, so that leaving a source or a chip out often leaves its
  stack, its vendor or its regime unmeasured: MI300X with 16-bit vLLM of 2024, and fine-grained experts on AMD, are
  the large errors there.
- Argonne's A100, whose memory no row states, is read as the 40 GB part: Llama 3 70B on four of them falls from 193
  to 158 tokens/s as the batch grows from 16 to 64; read as 80 GB those rows are predicted 5 to 9 times too fast.
- First-token times depend on how requests arrive, which no row states: the same engine, chip and lengths differ by
  a factor of three between a burst and a steady stream.
- The sources leave out the cache format, speculative decoding and, for SGLang and vLLM, most flags; all are assumed
  as `benchmarks/serving/cases.py` says (InferenceX's from its public scripts).
- Closed loops: of the 22 rows beyond 30 % with their pair left out, GPTQ experts (6) and DeepSeek and MiniMax in SGLang
  on MI300X and B200 (13) are known to the fit by their own rows only. Forty-five rows of Qwen3-32B in SGLang on H100
  read like bursts (all prompts first, then all tokens), forty-six of Llama 3 8B on H200 like a steady stream; nothing
  in a row tells which, so that the former's TPOT is predicted a quarter too high.
- Mixtral on TensorRT-LLM of 2024 with made-up prompts touches fewer experts than routing of text would (at a batch
  of 16 four A100, 6.2 TB/s together, would have to read 7.3 TB/s of them); those twelve rows are predicted 40 % too
  slow.
- GPTQ experts in SGLang of early 2025, DeepSeek with attention data parallelism at short outputs, and six rows of
  DeepSeek on TensorRT-LLM 1.3 release candidates are slower than any setting of the model explains; they stay in
  the fit, which is robust, and in the tables.
- Next measurements worth having: MI355X and GB200 closed loops with stated flags; TTFT with stated arrivals; RTX
  and L40S with tensor parallelism over PCIe.
"""


def section() -> str:
    """The section, from the tables the calibration left and the MLPerf rows predicted now."""
    kept = json.loads(TABLES.read_text(encoding="utf-8"))
    cases, _ = read_cases(read_rows(DATA / "inference_calibration.jsonl"))
    mlperf = mlperf_lines([c for c in cases if c.mlperf], shipped_calibration())
    head = _INTRODUCTION.format(rows=kept["rows"], figures=kept["figures"])
    return f"{head}{kept['tables']}\n{_MLPERF.format(text=mlperf)}{_LIMITS}"
