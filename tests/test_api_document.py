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
START_S = 240
# Left out, with the reason:
# positive_data_acceptance - a body that fits the schema may still name an accelerator that is not in the catalog, a
# cursor nobody gave out, a job that fits no machine. These get 400 or 422 with a pointer, which the document says.
LEFT_OUT = "positive_data_acceptance"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """A service of its own process on a fresh, seeded database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "GPUQUOTE_DATABASE_URL": f"sqlite:///{tmp_path}/service.db",
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
def test_no_answer_is_unexplained(service: str, tmp_path: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "run",
        str(ROOT / "docs" / "openapi.json"),
        f"--url={service}",
        "--phases=examples,coverage,fuzzing",
        "--max-examples=2",
        "--seed=1",
        "--no-shrink",
        "--continue-on-failure",
        f"--exclude-checks={LEFT_OUT}",
        "--request-timeout=60",
        "--warnings=off",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-8_000:]
    assert "Operations:" in done.stdout
