"""Throughput and latency of a real endpoint as a ratio to the floor, in one run on one machine.

    python -m benchmarks.quote_latency [--path /v1/quotes] [--requests 200] [--connections 16] [--rounds 3]

Both services run beside each other on fresh SQLite files and take turns, so that what else the machine does falls on
both alike. The last line is the median ratio of throughput; an absolute figure says little about another machine.
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_S = 180.0
BODY = {
    "title": "Latency",
    "items": [
        {
            "id": "pretrain",
            "job": {"kind": "training", "model": {"parameters": 10e9}, "tokens": 200e9},
            "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "providers": ["aws"]},
        }
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One service's turn."""

    per_s: float
    p50_ms: float
    p99_ms: float
    failed: int


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start(stack: ExitStack, arguments: list[str], folder: Path, port: int) -> None:
    """Start a service on a database of its own and wait until it is healthy."""
    environment = {
        **os.environ,
        "GPUQUOTE_DATABASE_URL": f"sqlite:///{folder / f'{port}.db'}",
        "GPUQUOTE_PORT": str(port),
        "GPUQUOTE_LOG_LEVEL": "ERROR",
    }
    process = subprocess.Popen([sys.executable, *arguments], env=environment)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    ends_at = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < ends_at:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"{' '.join(arguments)} did not become healthy")


async def connection(port: int, path: str, body: bytes, number: int, times: list[float]) -> int:
    """Send requests one after the other over one kept connection; return how many were not accepted."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    failed = 0
    for _ in range(number):
        started_at = time.perf_counter()
        writer.write(request)
        answer = await reader.readuntil(b"\r\n\r\n")
        lines = answer.decode("latin-1").split("\r\n")
        length = next(int(line.split(":")[1]) for line in lines if line.lower().startswith("content-length:"))
        await reader.readexactly(length)
        times.append(time.perf_counter() - started_at)
        failed += lines[0].split(" ")[1] not in ("200", "201")
    writer.close()
    return failed


async def measure(port: int, path: str, body: bytes, requests: int, connections: int) -> Round:
    times: list[float] = []
    started_at = time.perf_counter()
    each = max(1, requests // connections)
    failed = await asyncio.gather(*(connection(port, path, body, each, times) for _ in range(connections)))
    seconds = time.perf_counter() - started_at
    times.sort()
    return Round(
        per_s=len(times) / seconds,
        p50_ms=1e3 * statistics.median(times),
        p99_ms=1e3 * times[min(len(times) - 1, int(0.99 * len(times)))],
        failed=sum(failed),
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quote_latency")
    parser.add_argument("--path", default="/v1/quotes", help="endpoint of the real service")
    parser.add_argument("--body", type=Path, default=None, help="JSON file to send instead of the built-in job")
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    body = options.body.read_bytes() if options.body else json.dumps(BODY).encode()
    floor_body = json.dumps(BODY).encode()
    ratios: list[float] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        real, floor = free_port(), free_port()
        uvicorn = ["-m", "uvicorn", "--factory", "--no-access-log", "--log-level", "error"]
        start(stack, ["-m", "app"], folder, real)
        start(stack, [*uvicorn, "--port", str(floor), "benchmarks.floor:create"], folder, floor)
        asyncio.run(measure(real, options.path, body, options.connections, options.connections))
        for number in range(options.rounds):
            shares = {}
            for name, port, path, content in (
                ("floor", floor, "/v1/quotes", floor_body),
                ("real", real, options.path, body),
            ):
                found = asyncio.run(measure(port, path, content, options.requests, options.connections))
                shares[name] = found
                print(
                    f"round {number + 1} {name:5s} {found.per_s:8.1f} requests/s  "
                    f"p50 {found.p50_ms:7.1f} ms  p99 {found.p99_ms:7.1f} ms  failed {found.failed}"
                )
            ratios.append(shares["real"].per_s / shares["floor"].per_s)
    print(f"median ratio of throughput to the floor: {statistics.median(ratios):.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
