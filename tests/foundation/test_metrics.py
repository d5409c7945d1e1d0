"""Metrics: by route template, never by path or tenant; off from the public; one sum over all workers."""

import subprocess
import sys
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import SecretStr

from app.foundation.settings import Settings
from app.main import create_app

ROOT = Path(__file__).resolve().parents[2]


def series(client: TestClient, **labels: str) -> float:
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    lines = client.get("/metrics").text.splitlines()
    found = [
        line for line in lines if line.startswith("gpuquote_http_requests_total") and all(w in line for w in wanted)
    ]
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


def test_requests_are_counted_by_template_and_status(client: TestClient) -> None:
    labels = {"method": "GET", "route": "/v1/webhooks/{webhook_id}/deliveries", "status": "404"}
    before = series(client, **labels)
    secret = "whk_0123456789abcdef"
    assert client.get(f"/v1/webhooks/{secret}/deliveries").status_code == 404
    client.get(f"/nowhere/{secret}")
    client.request("BREW", "/v1/me")
    text = client.get("/metrics").text
    assert series(client, **labels) == before + 1
    assert series(client, route="none", status="404") >= 1
    assert series(client, method="other") >= 1
    assert secret not in text
    assert "ten_loopback" not in text
    assert "BREW" not in text
    assert "gpuquote_http_request_seconds_bucket" in text


@pytest.mark.parametrize(
    ("host", "metrics", "status"),
    [
        ("127.0.0.1", "auto", 200),
        ("127.0.0.1", "off", 404),
        ("0.0.0.0", "auto", 404),
        ("0.0.0.0", "public", 200),
    ],
)
def test_the_public_sees_metrics_only_where_the_operator_says_so(
    database_url: str, host: str, metrics: str, status: int
) -> None:
    secret = SecretStr("a secret of the tests")
    peppers = SecretStr("p1:0123456789abcdef0123")
    settings = Settings(
        database_url=database_url, log_level="CRITICAL", background_work=False, host=host, metrics=metrics,
        secret=secret, peppers=peppers,
    )  # fmt: skip
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        answer = client.get("/metrics")
    assert answer.status_code == status
    assert status == 200 or answer.json()["slug"] == "not-found"


COUNT = """
from app.foundation import metrics
metrics._requests.labels("GET", "/v1/me", "200").inc()
"""
SUM = """
from prometheus_client import CollectorRegistry, generate_latest, multiprocess
registry = CollectorRegistry()
multiprocess.MultiProcessCollector(registry)
print(generate_latest(registry).decode())
"""


def test_workers_are_summed_up(tmp_path: Path) -> None:
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PATH": "", "PYTHONPATH": str(ROOT)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNT], env=environment, cwd=ROOT, check=True)
    told = subprocess.run(
        [sys.executable, "-c", SUM], env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert 'gpuquote_http_requests_total{method="GET",route="/v1/me",status="200"} 2.0' in told
