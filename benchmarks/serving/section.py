"""The serving part of ``docs/accuracy.md``: between its markers, the rest of the file is left alone."""

from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "accuracy.md"
BEGIN, END = "<!-- serving: written by benchmarks.calibrate inference -->", "<!-- end of serving -->"

_INTRODUCTION = """## Inference

Reproduce: `python -m benchmarks.calibrate inference` fits the parameters
(`app/catalog/data/calibration/serving.json`, the same bytes every time) and writes this part; `python -m
benchmarks.accuracy inference FILE.jsonl` judges any file of the schema of `benchmarks/data/README.md`.

What is fitted: kernel curves per architecture and number format, on kernel times only (`kernels.csv`); then a
hundred small effects on top (vendor, family, format, stack, release year), each shrunk towards zero, on the
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
- First-token times depend on how requests arrive, which no row states: the same engine, chip and lengths differ by
  a factor of three between a burst and a steady stream.
- The sources leave out the cache format, speculative decoding and, for SGLang and vLLM, most flags; all are assumed
  as `benchmarks/serving/cases.py` says.
- GPTQ experts in SGLang of early 2025, DeepSeek with attention data parallelism at short outputs, and six rows of
  DeepSeek on TensorRT-LLM 1.3 release candidates are slower than any setting of the model explains; they stay in
  the fit, which is robust, and in the tables.
- Next measurements worth having: MI355X and GB200 closed loops with stated flags; TTFT with stated arrivals; RTX
  and L40S with tensor parallelism over PCIe.
"""


def section(rows: int, figures: int, tables: str, mlperf: str) -> str:
    """The text between the markers."""
    head = _INTRODUCTION.format(rows=rows, figures=figures)
    return f"{BEGIN}\n{head}{tables}\n{_MLPERF.format(text=mlperf)}{_LIMITS}{END}\n"


def write_section(text: str) -> None:
    """Put the part into the document, in place of the one before it."""
    old = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else "# Accuracy, measured\n\n"
    if BEGIN in old and END in old:
        before, rest = old.split(BEGIN, 1)
        after = rest.split(END, 1)[1].lstrip("\n")
    else:
        before, after = old.rstrip("\n") + "\n\n", ""
    DOCUMENT.write_text(before + text + after, encoding="utf-8")
