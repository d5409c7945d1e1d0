"""``python -m benchmarks.document training|inference``: rewrite one section of ``docs/accuracy.md`` from the rows.

Each kind has a module ``benchmarks.<package>.document`` with a function ``section() -> str``; the other section stays
as it is.
"""

import argparse
import importlib
import re
import sys
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
PACKAGES = {"training": "benchmarks.training.document", "inference": "benchmarks.serving.document"}
HEADER = """# Accuracy

Measured against predicted, generated from the rows in `benchmarks/data`. Do not edit: rerun the commands beside the
figures.
"""


def replaced(text: str, kind: str, section: str) -> str:
    """The document with one section exchanged (or added, in the order of the kinds)."""
    block = f"<!-- {kind}: begin -->\n{section.strip()}\n<!-- {kind}: end -->"
    pattern = re.compile(rf"<!-- {kind}: begin -->.*?<!-- {kind}: end -->", re.DOTALL)
    if pattern.search(text):
        return pattern.sub(lambda _: block, text)
    if kind == "training" and "<!-- inference: begin -->" in text:
        return text.replace("<!-- inference: begin -->", f"{block}\n\n<!-- inference: begin -->")
    return f"{text.rstrip()}\n\n{block}\n"


def main(arguments: list[str]) -> int:
    """Rewrite one section."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.document")
    parser.add_argument("kind", choices=sorted(PACKAGES))
    kind = parser.parse_args(arguments).kind
    section = importlib.import_module(PACKAGES[kind]).section()
    text = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else HEADER
    DOCUMENT.write_text(replaced(text, kind, section), encoding="utf-8")
    print(f"{kind} section of {DOCUMENT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
