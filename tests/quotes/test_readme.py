"""The README's examples: each request is sent as it stands there, and the answer must be the one printed below it."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.foundation.clock import ManualClock

README = Path(__file__).parents[2] / "README.md"
WRITTEN_AT = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def examples() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(request, printed answer) of every example that creates a quote."""
    found = re.findall(
        r"```sh\ncurl -s \S+/v1/quotes .*?-d '(\{.*?\})'.*?```\n\n```json\n(.*?)```",
        README.read_text("utf-8"),
        flags=re.S,
    )
    return [(json.loads(request), json.loads(answer)) for request, answer in found]


def test_the_readme_shows_a_training_and_an_inference_quote() -> None:
    assert [request["items"][0]["job"]["kind"] for request, _ in examples()] == ["training", "inference"]


@pytest.mark.parametrize("number", [0, 1])
def test_an_example_answers_what_the_readme_prints(client: TestClient, clock: ManualClock, number: int) -> None:
    request, printed = examples()[number]
    clock.set(WRITTEN_AT)
    answer = client.post("/v1/quotes", json=request)
    assert answer.status_code == 201, answer.text
    quote = answer.json()
    option = quote["current_revision"]["items"][0]["options"][0]
    assert (quote["net_total"], option["label"]["en"]) == (printed["net_total"], printed["option"])
    for name in ("duration_hours", "replicas", "ttft_ms", "tpot_ms"):
        if name in printed:
            assert option["performance"][name] == printed[name]
    verdict = client.post(f"/v1/quotes/{quote['id']}/revisions/1/verify").json()
    assert (verdict["match"], verdict["parts"]) == (True, {"content": "match", "money": "match", "engine": "match"})
