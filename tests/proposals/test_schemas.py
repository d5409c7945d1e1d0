"""The published schemas are current, and hold what the service stores and writes."""

import json
from typing import Any

import jsonschema_rs
import pytest
from sqlalchemy import text

from app.foundation.database import SYSTEM
from app.proposals.canonical import as_json
from app.proposals.published import FOLDER, PUBLISHED, schema_text
from app.proposals.reading import read_document
from app.quotes.content import open_content
from tests.proposals.building import VARIANTS
from tests.quotes.conftest import Desk, job


def validator(name: str) -> Any:
    return jsonschema_rs.validator_for(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published_is_current(name: str) -> None:
    written = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert written == schema_text(name), "run: python -m app.proposals.published"


@pytest.mark.parametrize("name", VARIANTS)
def test_proposals_fit_theirs(name: str) -> None:
    stated = as_json(read_document(VARIANTS[name]))
    schema = validator("proposal")
    schema.validate(stated)
    assert not schema.is_valid({**stated, "markup": "0.15"})
    amount = {"amount": 1.5, "currency": "USD"}
    assert not schema.is_valid({**stated, "totals": {**stated["totals"], "net": amount}})


def test_a_stored_revision_and_its_request_fit_theirs(desk: Desk) -> None:
    request = job(terms={"currency": "CNY", "tax_region": "CN", "contingency": "0.1", "markup": "0.15"})
    validator("quote-request").validate(request)
    assert not validator("quote-request").is_valid({**request, "itmes": []})
    quote_id = desk.create(**{name: value for name, value in request.items() if name != "items"})["id"]
    stored = desk.client.app.state.database.read_now(
        lambda c: c.execute(
            text("SELECT content FROM quote_revisions WHERE quote_id = :id"), {"id": quote_id}
        ).scalar_one(),
        SYSTEM,
    )
    validator("revision").validate(open_content(stored))
