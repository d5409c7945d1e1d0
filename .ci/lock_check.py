"""The locks: every line pinned and hashed, no address of a registry, and every stated dependency is in them."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]+\])?==\S+")
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock: Path) -> list[str]:
    """Join the continued lines of each requirement."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def faults_of(lock: Path, stated: list[str]) -> list[str]:
    text = lock.read_text(encoding="utf-8")
    faults = [f"{lock.name} names an address" for _ in re.findall(r"https?://", text)[:1]]
    found: dict[str, str] = {}
    for line in entries(lock):
        match = PINNED.match(line)
        if not match or not HASH.search(line):
            faults.append(f"{lock.name}: not pinned and hashed: {line[:80]}")
        else:
            found[normal(match.group(1))] = line.split()[0]
    for requirement in stated:
        name = normal(re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0])
        if name not in found:
            faults.append(f"{lock.name} lacks {name}, which pyproject.toml states")
    return faults


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    run, dev = project["dependencies"], project["optional-dependencies"]["dev"]
    run_lock, dev_lock = ROOT / "requirements.txt", ROOT / "requirements-dev.txt"
    faults = faults_of(run_lock, run) + faults_of(dev_lock, [*run, *dev])
    pins = {line.split("==")[0]: line.split()[0] for line in entries(dev_lock)}
    for line in entries(run_lock):
        name = line.split("==")[0]
        if pins.get(name) != line.split()[0]:
            faults.append(f"{name}: the two locks disagree")
    sys.stdout.write("\n".join(faults) + ("\n" if faults else ""))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
