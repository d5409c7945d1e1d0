"""docs/openapi.json is what the service answers at /openapi.json. `--update` writes it."""

import difflib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
DOCUMENT = ROOT / "docs" / "openapi.json"


def current() -> str:
    from app.main import create_app

    return json.dumps(create_app().openapi(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    now = current()
    if "--update" in arguments:
        DOCUMENT.write_text(now, encoding="utf-8")
        return 0
    committed = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.exists() else ""
    if committed == now:
        return 0
    difference = difflib.unified_diff(committed.splitlines(), now.splitlines(), "committed", "served", lineterm="", n=1)
    sys.stdout.write("\n".join(list(difference)[:200]))
    sys.stdout.write("\nRun: python .ci/openapi_check.py --update\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
