"""Signed heads: kept daily, and an exported chain is held against one without the service."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.__main__ import main
from app.access import audit_heads
from app.foundation.clock import ManualClock
from app.foundation.database import SYSTEM
from tests.access.conftest import PEPPERS, bearer, make_key

KEY = b"a key of the tests"


@pytest.fixture
def kept(guarded: TestClient, clock: ManualClock) -> tuple[list[dict[str, Any]], dict[str, Any], TestClient]:
    """Entries and head of a tenant as HTTP gives them."""
    database = guarded.app.state.database
    who = bearer(make_key(database, "acme", clock.now()))
    for _ in range(3):
        make_key(database, "acme", clock.now())
    head = guarded.get("/v1/audit/head", headers=who).json()
    entries = guarded.get("/v1/audit", headers=who).json()["items"]
    return entries, head, guarded


def test_what_was_exported_leads_to_the_head(kept: Any) -> None:
    entries, head, _ = kept
    verdict = audit_heads.verify_export(entries, head, head["public_key"])
    assert (verdict.match, verdict.entries) == (True, 4)
    longer = [*entries, {"sequence": 5, "anything": "later"}]
    assert audit_heads.verify_export(longer, head).match


def _changed(entries: list[dict[str, Any]], n: int, **values: Any) -> list[dict[str, Any]]:
    return [{**entry, **values} if entry["sequence"] == n else entry for entry in entries]


def test_what_was_written_anew_does_not(kept: Any) -> None:
    entries, head, _ = kept
    wrong = {
        "an entry changed": (_changed(entries, 2, actor="somebody"), head),
        "an entry left out": (entries[:1] + entries[2:], head),
        "the last left out": (entries[:-1], head),
        "a head of fewer": (entries, {**head, "sequence": 3}),
        "a head of another tenant": (entries, {**head, "tenant_id": "other"}),
        "another time": (entries, {**head, "signed_at": "2020-01-01T00:00:00.000Z"}),
        "no signature": (entries, {**head, "signature": ""}),
    }
    for what, (rows, given) in wrong.items():
        assert not audit_heads.verify_export(rows, given).match, what
    # Somebody with the whole database writes a chain of his own and signs it with a key of his own.
    forged = {**head, "public_key": "00" * 32}
    assert not audit_heads.verify_export(entries, forged).match
    assert not audit_heads.verify_export(entries, head, "11" * 32).match


def test_each_chain_is_signed_once_a_day(kept: Any, clock: ManualClock) -> None:
    _, _, guarded = kept
    database = guarded.app.state.database

    def sign() -> int:
        return database.transact_now(lambda c: audit_heads.sign_day(c, now=clock.now(), signing_key=KEY), SYSTEM)

    assert (sign(), sign()) == (1, 0)
    clock.advance(timedelta(days=1))
    assert (sign(), sign()) == (1, 0)
    who = bearer(make_key(database, "acme", clock.now()))
    heads = guarded.get("/v1/audit/heads", headers=who).json()["items"]
    assert [head["signed_at"][:10] for head in heads] == ["2026-12-01", "2026-11-30"]
    assert all(audit_heads.signature_holds(head, heads[0]["public_key"]) for head in heads)


def test_the_command_line_exports_and_verifies(
    kept: Any,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GPUQUOTE_DATABASE_URL", database_url)
    monkeypatch.setenv("GPUQUOTE_PEPPERS", PEPPERS)
    files = {name: tmp_path / name for name in ("export-audit", "audit-head")}
    for name, path in files.items():
        assert main([name, "acme"]) == 0
        path.write_text(capsys.readouterr().out)
    monkeypatch.setenv("GPUQUOTE_DATABASE_URL", "postgresql://nowhere.invalid/none")
    command = ["verify-audit", str(files["export-audit"]), str(files["audit-head"])]
    assert main(command) == 0
    assert capsys.readouterr().out == "match (4 entries)\n"
    key = json.loads(files["audit-head"].read_text())["public_key"]
    assert main([*command, "--public-key", key]) == 0
    assert main([*command, "--public-key", "11" * 32]) == 3
    files["export-audit"].write_text(files["export-audit"].read_text().replace("operator", "nobody"))
    assert main(command) == 3
    assert "entry 1 was changed" in capsys.readouterr().out
    assert main(["verify-audit", str(tmp_path / "none"), str(files["audit-head"])]) == 2
