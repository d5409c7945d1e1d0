"""``python -m benchmarks.article [--check]``: write ``docs/article.md``, or say whether it is up to date."""

import sys
from pathlib import Path

from benchmarks.article.cases import example_quote, judge_article, read_article, shipped_snapshot
from benchmarks.article.render import render

TARGET = Path(__file__).resolve().parents[2] / "docs" / "article.md"


def document() -> str:
    """The document as it should be."""
    snapshot, article = shipped_snapshot(), read_article()
    return render(snapshot, article, judge_article(snapshot, article), example_quote(snapshot, article))


def main() -> int:
    """Write or check."""
    text = document()
    if "--check" in sys.argv[1:]:
        fresh = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("up to date" if fresh else "out of date: run python -m benchmarks.article")
        return 0 if fresh else 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {TARGET.name}, {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
