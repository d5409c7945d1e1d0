"""The README's examples: each request is sent as it stands there, and the answer must be the one printed below it."""

import json
import re
import shlex
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from app.cli.main import app
from app.foundation.clock import ManualClock

# Names and hashes differ from one database and one build of the engine to the next; figures do not.
_OF_A_RUN = re.compile(r"quo_[0-9a-f]{32}|[0-9a-f]{64}|cat_[0-9a-f]{12}|#[0-9a-f]{4}|engine \d+\.\d+\.\d+|cli:\w+")
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


def life() -> tuple[str, list[tuple[str, str]]]:
    """The job of the six commands, and each command with what it prints."""
    text = README.read_text("utf-8").partition("## The life of a quote in six commands")[2]
    job, console = re.search(r"```yaml\n(.*?)```.*?```console\n(.*?)```", text, flags=re.S).groups()  # type: ignore[union-attr]
    return job, re.findall(r"^\$ gpuquote ([^\n]*)\n(.*?)(?=^\$ |\Z)", console, flags=re.S | re.M)


def test_six_commands_lead_from_draft_to_accepted_as_the_readme_prints(
    seeded_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(seeded_file, tmp_path / "life.db")
    monkeypatch.setenv("GPUQUOTE_DATABASE_URL", f"sqlite:///{tmp_path / 'life.db'}")
    monkeypatch.setattr("app.cli.session.SystemClock", lambda: ManualClock(WRITTEN_AT))
    monkeypatch.chdir(tmp_path)
    job, commands = life()
    (tmp_path / "train.yaml").write_text(job)
    names = [" ".join(command.split()[:2]) for command, _ in commands]
    assert names == [
        "estimate train.yaml",
        *(f"quote {step}" for step in ("create", "show", "issue", "verify", "accept")),
    ]
    quote_id = ""
    for command, printed in commands:
        done = CliRunner().invoke(app, shlex.split(re.sub(r"quo_[0-9a-f]{32}", quote_id, command)))
        assert done.exit_code == 0, done.stderr
        assert _OF_A_RUN.sub("~", done.stdout) == _OF_A_RUN.sub("~", printed)
        quote_id = quote_id or "".join(re.findall(r"quo_[0-9a-f]{32}", done.stdout)[:1])
