"""Clients generated from docs/openapi.json create, read and accept a quote against a running service."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.client.document_client import METHODS, DocumentClient, generate_models
from tests.test_api_document import ROOT, service  # noqa: F401

DOCUMENT = ROOT / "docs" / "openapi.json"
REQUEST: dict[str, Any] = {
    "title": "From a generated client",
    "items": [
        {
            "id": "pretrain",
            "job": {"kind": "training", "model": {"parameters": 1e10}, "tokens": 1.1e11},
            "supply": {"accelerators": ["h100-sxm5-80"], "accelerator_count": 64, "providers": ["aws"]},
        }
    ],
}


def test_operations_have_names_that_generators_can_use() -> None:
    paths = json.loads(DOCUMENT.read_text(encoding="utf-8"))["paths"]
    operations = [operation for item in paths.values() for method, operation in item.items() if method in METHODS]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)
    assert [name for name in names if not name.isidentifier() or len(name) > 60] == []
    assert [operation["operationId"] for operation in operations if len(operation["tags"]) != 1] == []


def test_a_generated_client_creates_reads_and_accepts_a_quote(service: str, tmp_path: Path) -> None:  # noqa: F811
    models = generate_models(DOCUMENT, tmp_path / "models.py")
    client = DocumentClient(DOCUMENT, models, service)
    quote = client.quotes_create_quote(body=models.QuoteCreate.model_validate(REQUEST))
    at = {"quote_id": quote["id"], "n": 1}
    assert client.lifecycle_submit(**at, body=models.WithReason())["status"] in ("approved", "in_review")
    if client.revisions_show_revision(**at)["status"] == "in_review":
        client.lifecycle_approve(**at, body=models.Approve(waivers=["accept_stale"]))
    issued = client.lifecycle_issue(**at, body=models.Issue())
    read = client.revisions_show_revision(**at)
    assert (read["status"], read["content_sha256"]) == ("issued", issued["content_sha256"])
    accept = models.Accept(content_sha256=read["content_sha256"])
    assert client.lifecycle_accept(**at, body=accept)["status"] == "accepted"
    assert client.quotes_show_quote(quote_id=quote["id"])["status"] == "accepted"
    made = client.proposals_create_proposal(**at, body=models.ProposalCreate(format="ubl"))
    assert client.proposals_download_proposal(proposal_id=made["id"]).startswith(b"<?xml")
    again = client.lifecycle_accept(**at, body=accept)
    assert again["slug"] == "invalid-transition"
    client.close()


GENERATOR = "GPUQUOTE_CLIENT_PYTHON"
SCRIPT = """
import json, sys
from client import Client
from client.api.lifecycle import lifecycle_accept, lifecycle_approve, lifecycle_issue, lifecycle_submit
from client.api.quotes import quotes_create_quote, quotes_show_quote
from client.api.revisions import revisions_show_revision
from client.models import Accept, Approve, Issue, QuoteCreate, WithReason

def told(answer):
    assert answer.status_code < 300, answer.content
    return json.loads(answer.content)

with Client(base_url=sys.argv[1], raise_on_unexpected_status=True) as client:
    quote = told(quotes_create_quote.sync_detailed(client=client, body=QuoteCreate.from_dict(json.loads(sys.argv[2]))))
    at = {"client": client, "quote_id": quote["id"], "n": 1}
    if told(lifecycle_submit.sync_detailed(**at, body=WithReason()))["status"] == "in_review":
        told(lifecycle_approve.sync_detailed(**at, body=Approve.from_dict({"waivers": ["accept_stale"]})))
    told(lifecycle_issue.sync_detailed(**at, body=Issue()))
    read = told(revisions_show_revision.sync_detailed(**at))
    told(lifecycle_accept.sync_detailed(**at, body=Accept(content_sha256=read["content_sha256"])))
    print(told(quotes_show_quote.sync_detailed(client=client, quote_id=quote["id"]))["status"])
"""


@pytest.mark.outside
@pytest.mark.skipif(
    GENERATOR not in os.environ,
    reason=f"{GENERATOR} names no Python that has openapi-python-client, which does not install beside our typer",
)
def test_a_client_of_openapi_python_client_does_so_too(service: str, tmp_path: Path) -> None:  # noqa: F811
    python = os.environ[GENERATOR]
    generate = ["-m", "openapi_python_client", "generate", "--path", str(DOCUMENT), "--meta=none"]
    subprocess.run([python, *generate, "--output-path", "client"], cwd=tmp_path, check=True, capture_output=True)
    run = [python, "-c", SCRIPT, service, json.dumps(REQUEST)]
    done = subprocess.run(run, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("accepted", "")
