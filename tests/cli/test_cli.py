"""The command line on a database of its own: the six commands of docs/quote-life.md, JSON, and exit codes."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from typer.testing import CliRunner

from app.catalog import service as catalog
from app.cli.main import app
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM, Database
from tests.catalog.test_imports import FILES

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
REQUEST = {
    "job": {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11},
    "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "providers": ["aws"]},
}

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def seeded(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "seeded.db"
    shutil.copyfile(sqlite_template, path)
    database = Database(f"sqlite:///{path}")
    database.transact_now(lambda connection: catalog.seed(connection, clock=ManualClock(NOON)), SYSTEM)
    database.close()
    return path


@pytest.fixture
def run(seeded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    shutil.copyfile(seeded, tmp_path / "cli.db")
    monkeypatch.setenv("GPUQUOTE_DATABASE_URL", f"sqlite:///{tmp_path / 'cli.db'}")
    monkeypatch.setattr("app.cli.session.SystemClock", lambda: ManualClock(NOON))
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(REQUEST))
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_six_commands_from_draft_to_accepted(run: Run) -> None:
    assert "total CNY " in run("estimate", "train.yaml", "--currency", "CNY").stdout
    quote_id = run("quote", "create", "train.yaml", "--customer", "acme").stdout.split()[0]
    assert "r1 draft" in run("quote", "show", quote_id).stdout
    issued = run("quote", "issue", quote_id, "--valid-through", "2026-12-31", "--tz", "Asia/Shanghai")
    assert issued.stdout.startswith("Q-2026-000001-1  r1 issued")
    assert "expires 2027-01-01 00:00 Asia/Shanghai (2026-12-31T16:00:00.000Z)" in issued.stdout
    verified = run("quote", "verify", "Q-2026-000001-1")
    assert (verified.exit_code, verified.stdout.splitlines()[0]) == (0, "match")
    accepted = run("quote", "accept", "Q-2026-000001-1", "--signatory", "Li Wei")
    assert "r1 accepted" in accepted.stdout
    assert "list price" in run("quote", "reprice", "Q-2026-000001").stdout
    assert run("quote", "diff", "Q-2026-000001", "1", "2").exit_code == 0


def test_json_is_the_document(run: Run) -> None:
    created = json.loads(run("quote", "create", "train.yaml", "--json").stdout)
    assert created["current_revision"]["content_sha256"]
    shown = json.loads(run("quote", "show", created["id"], "--json").stdout)
    assert shown == created
    assert json.loads(run("quote", "verify", created["id"], "--json").stdout)["match"] is True
    assert json.loads(run("estimate", "train.yaml", "--json").stdout)["totals"]["net"]["currency"] == "USD"


def test_refusals_say_why_and_exit_with_1(run: Run, tmp_path: Path) -> None:
    missing = run("quote", "show", "Q-2026-000009")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "No quote" in missing.stderr
    (tmp_path / "bad.yaml").write_text(yaml.safe_dump({**REQUEST, "colour": "red"}))
    bad = run("estimate", "bad.yaml")
    assert (bad.exit_code, "/items/0/colour" in bad.stderr) == (1, True)
    (tmp_path / "list.yaml").write_text("- 1")
    assert run("estimate", "list.yaml").exit_code == 1
    assert run("estimate", "absent.yaml").exit_code == 1


JOB = '{"kind": "training", "model": {"ref": "llama3-8b"}, "tokens": %s}'


@pytest.mark.parametrize("tokens", ["1e11", "1E11", "1.0e+11", "100000000000"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_numbers_of_a_file_are_those_of_http(run: Run, tmp_path: Path, form: str, tokens: str) -> None:
    text = JOB % tokens if form == "json" else f"kind: training\nmodel: {{ref: llama3-8b}}\ntokens: {tokens}\n"
    (tmp_path / f"job.{form}").write_text(text)
    spec = json.loads(run("estimate", f"job.{form}", "--json").stdout)["spec"]
    assert spec["items"][0]["job"]["tokens"] == 1e11


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"kind: training\ntokens: 1\ntokens: 2\n", "appears twice"),
        ((JOB % '1, "tokens": 2').encode(), "appears twice"),
        ("title: 风险".encode("gbk"), "utf-8"),
        (b"[" * 3000, "nested"),
        (b'title: "a\\0b"\n', "NUL"),
        (b"kind: training\ntokens: .inf\n", "not a JSON number"),
        (b"kind: !!python/object:os.system x\n", "constructor"),
    ],
)
def test_a_file_that_http_would_refuse_is_refused(run: Run, tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    for command in (("estimate", "bad.yaml"), ("quote", "create", "bad.yaml")):
        refused = run(*command)
        assert (refused.exit_code, refused.stdout, refused.exception.__class__) == (1, "", SystemExit)
        assert said in refused.stderr


def test_a_file_is_refused_at_the_place_http_names(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(JOB % '"many"')
    assert "/items/0/job/tokens: " in run("estimate", "bad.json").stderr


def test_a_tenant_that_does_not_exist_keeps_nothing(run: Run) -> None:
    refused = run("quote", "create", "train.yaml", "--tenant", "nope")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "no tenant nope" in refused.stderr


def test_wrong_usage_exits_with_2(run: Run) -> None:
    assert run("quote", "shoe").exit_code == 2
    assert run("estimate").exit_code == 2


def test_a_mismatch_exits_with_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    quote_id = run("quote", "create", "train.yaml").stdout.split()[0]
    monkeypatch.setattr("app.quotes.verifying.is_intact", lambda _text, _sha256: False)
    verified = run("quote", "verify", quote_id)
    assert (verified.exit_code, verified.stdout.splitlines()[0]) == (3, "MISMATCH")


def test_catalog_import_is_a_dry_run_unless_told_otherwise(run: Run, tmp_path: Path) -> None:
    shutil.copyfile(FILES / "own_prices.csv", tmp_path / "prices.csv")
    arguments = ("catalog", "import", "prices.csv", "--format", "csv", "--json")
    looked = json.loads(run(*arguments).stdout)
    assert (looked["dry_run"], {row["status"] for row in looked["providers"]}) == (True, {"dry_run"})
    done = json.loads(run(*arguments, "--commit").stdout)
    assert {row["status"] for row in done["providers"]} == {"committed"}
    (tmp_path / "prices.csv").write_text("not,a,price,file\n1,2,3,4\n")
    refused = run(*arguments)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert run("catalog", "import", "prices.csv", "--format", "nonsense").exit_code == 2


def test_a_revision_becomes_a_file(run: Run, tmp_path: Path) -> None:
    quote_id = run("quote", "create", "train.yaml").stdout.split()[0]
    refused = run("proposal", quote_id, "--format", "oci", "-o", "cart.html")
    assert refused.exit_code == 1
    assert "/status: status: offer" in refused.stderr
    assert not (tmp_path / "cart.html").exists()
    run("quote", "issue", quote_id)
    done = run("proposal", "Q-2026-000001-1", "--format", "ubl", "-o", "q.xml")
    content = (tmp_path / "q.xml").read_bytes()
    assert done.stdout.splitlines()[0] == f"q.xml: ubl of revision 1 (offer), {len(content)} bytes"
    assert b"<cbc:ID>Q-2026-000001-1</cbc:ID>" in content
    assert run("proposal", "Q-2026-000001-1", "--format", "ubl").stdout.encode() == content
    cut = run("proposal", "Q-2026-000001-1", "--format", "oci", "-o", "cart.html")
    assert "was Accelerator time lost to failures and restarts" in cut.stdout
    listed = run("proposal", "Q-2026-000001-1", "--format", "pdf")
    assert (listed.exit_code, "ubl, focus-csv, json, cxml, oci" in listed.stderr) == (1, True)
