"""A change that moves a predicted number moves ENGINE_VERSION and says so in the changelog.

The numbers are the engine's predictions for a fixed sample of the measured rows, to six digits, kept in
docs/engine_numbers.json. `--update` writes them after ENGINE_VERSION moved and CHANGELOG.md has a line for it.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
KEPT = ROOT / "docs" / "engine_numbers.json"
# Every n-th row: enough of every kind of hardware, precision and regime to notice a change, in seconds.
SAMPLES = (("training", "training_calibration.jsonl", 12), ("inference", "inference_calibration.jsonl", 60))


def numbers() -> dict[str, str]:
    """Predict the sample through the accuracy benchmark."""
    found: dict[str, str] = {}
    for kind, name, step in SAMPLES:
        rows = (ROOT / "benchmarks" / "data" / name).read_text(encoding="utf-8").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            sample, out = Path(folder) / "rows.jsonl", Path(folder) / "out.json"
            sample.write_text("\n".join(rows[::step]) + "\n", encoding="utf-8")
            command = [sys.executable, "-m", "benchmarks.accuracy", kind, str(sample), "--json", str(out)]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            elements = json.loads(out.read_text(encoding="utf-8"))
        for element in elements:
            predicted = element["predicted"]
            text = "refused" if predicted is None else f"{predicted:.6g}"
            found[f"{kind}/{element['id']}/{element['metric']}"] = text
    return found


def main(arguments: list[str]) -> int:
    from app.engine.version import ENGINE_VERSION

    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else None
    now = numbers()
    moved = [] if kept is None else sorted(k for k in now | kept["numbers"] if now.get(k) != kept["numbers"].get(k))
    if kept is not None and not moved and kept["engine_version"] == ENGINE_VERSION:
        return 0
    if kept is not None and moved and kept["engine_version"] == ENGINE_VERSION:
        lines = [f"  {key}: {kept['numbers'].get(key)} -> {now.get(key)}" for key in moved[:10]]
        sys.stdout.write(f"{len(moved)} predictions moved and ENGINE_VERSION did not:\n" + "\n".join(lines) + "\n")
        return 1
    changelog = ROOT / "CHANGELOG.md"
    if f"engine {ENGINE_VERSION}" not in (changelog.read_text(encoding="utf-8") if changelog.exists() else ""):
        sys.stdout.write(
            f"CHANGELOG.md says nothing of engine {ENGINE_VERSION}: which jobs move, which way, how much\n"
        )
        return 1
    if "--update" not in arguments:
        sys.stdout.write("Run: python .ci/version_gate.py --update\n")
        return 1
    document = {"engine_version": ENGINE_VERSION, "numbers": now}
    KEPT.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
