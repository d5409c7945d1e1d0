"""Requests made up from the committed API document, against a running service: no answer goes unexplained."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[1]
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
START_S = 240
# Ends a run that hangs, and judges no speed: a run took from 80 s on a free machine to 180 s on a busy one, and a
# machine may be six times slower than either.
LIMIT_S = 1_800


@pytest.fixture
def service(database_url: str, tmp_path: Path) -> Iterator[str]:
    """A service of its own process on a fresh database of either kind, which it seeds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "GPUQUOTE_DATABASE_URL": database_url,
        "GPUQUOTE_PORT": str(port),
        "GPUQUOTE_LOG_LEVEL": "ERROR",
        "GPUQUOTE_RATE_LIMIT_PER_MINUTE": "1000000",
    }
    log = (tmp_path / "service.log").open("wb")
    process = subprocess.Popen([sys.executable, "-m", "app"], cwd=ROOT, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                if httpx.get(f"{address}/healthz").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.2)
        else:
            pytest.fail((tmp_path / "service.log").read_text())
        yield address
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", [1, 2])
def test_no_answer_is_unexplained(service: str, tmp_path: Path, seed: int) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        f"--config-file={CONFIGURATION}",
        "run",
        str(ROOT / "docs" / "openapi.json"),
        f"--url={service}",
        "--phases=examples,coverage,fuzzing,stateful",
        "--max-examples=2",
        f"--seed={seed}",
        "--no-shrink",
        "--continue-on-failure",
        "--request-timeout=60",
        "--warnings=off",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    summary = done.stdout.rpartition("= SUMMARY =")[2]
    assert done.returncode == 0, done.stdout[-8_000:]
    assert "Test cases:" in summary
    sys.stdout.write(summary)
