"""The document behind every format: what it adds up to, what it never holds."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from app.foundation.problems import Problem
from app.proposals.canonical import write_json
from app.proposals.document import Document
from app.proposals.reading import read_document
from app.proposals.rendered import Options
from app.proposals.rendering import WRITERS
from app.quotes.content import canonical_text, open_content
from app.quotes.service import Shown
from tests.proposals.building import SERVING, TRAINING, VARIANTS, shown

# Enough for every format at once; each takes its own.
EVERYTHING = Options(buyer_cookie="cookie", hook_url="https://buyer.example/hook")


def changed(found: Shown, **members: object) -> Shown:
    content = open_content(found.revision.content_text) | members
    return replace(found, revision=replace(found.revision, content_text=canonical_text(content).text))


def written(document: Document) -> dict[str, str]:
    usable = {name: writer for name, writer in WRITERS.items() if document.standing in writer.standings}
    return {name: writer.write(document, EVERYTHING).content.decode() for name, writer in usable.items()}


@pytest.mark.parametrize("name", VARIANTS)
def test_lines_and_taxes_add_up(name: str) -> None:
    document = read_document(VARIANTS[name])
    assert sum(line.amount.amount for line in document.lines) == document.net.amount
    if document.gross is not None:
        taxes = sum(tax.amount.amount for tax in document.taxes if tax.amount is not None)
        assert document.net.amount + taxes == document.gross.amount
    included = sum(tax.amount.amount for tax in document.taxes if tax.inclusive and tax.amount is not None)
    assert sum(line.included_tax.amount for line in document.lines) == included


def test_content_that_does_not_add_up_is_not_exported() -> None:
    found = VARIANTS["one item"]
    totals = open_content(found.revision.content_text)["totals"]
    net = {**totals["net"], "amount": str(Decimal(totals["net"]["amount"]) + Decimal("0.01"))}
    with pytest.raises(ValueError, match="add up"):
        read_document(changed(found, totals={**totals, "net": net}))


def test_an_unpriced_revision_has_nothing_to_export() -> None:
    completeness = {"complete": False, "unpriced_lines": [{"item": "pretrain", "outcome": "unknown_price"}]}
    with pytest.raises(Problem) as caught:
        read_document(changed(VARIANTS["one item"], totals=None, completeness=completeness))
    assert caught.value.slug == "incomplete-pricing"
    assert caught.value.extensions["unpriced_lines"] == completeness["unpriced_lines"]


def test_line_ids_are_the_stored_ones_and_unique_where_items_repeat_them() -> None:
    assert [line.id for line in read_document(shown((TRAINING,))).lines] == ["10", "20", "30", "40"]
    both = [line.id for line in read_document(shown((TRAINING, SERVING))).lines]
    assert both == ["1-10", "1-20", "1-30", "1-40", "2-10", "2-20"]


@pytest.mark.parametrize("name", ["discount and markup", "all of it"])
def test_no_format_holds_cost_or_markup(name: str) -> None:
    """Cost, the steps from it to the price, and the mark-up itself, in any spelling of the figures."""
    found = VARIANTS[name]
    content = open_content(found.revision.content_text)
    lines = [line for item in content["items"] for o in item["options"] for line in o["cost"]["lines"]]
    marked = [line for line in lines if line["waterfall"]]
    assert marked
    secrets = {line["list_unit_price"]["amount"] for line in marked}
    secrets |= {step["unit_price"]["amount"] for line in marked for step in line["waterfall"][:-1]}
    secrets |= {step["delta"]["amount"].lstrip("-") for line in marked for step in line["waterfall"]}
    # Six digits and more cannot stand in a file by chance.
    telling = {digits for secret in secrets if len(digits := secret.replace(".", "").lstrip("0")) >= 6}
    assert len(telling) >= 8
    files = written(read_document(found))
    assert set(files) == set(WRITERS)
    for name_of_format, text in files.items():
        digits = text.replace(".", "")
        for secret in telling:
            # A price is scaled by powers of ten in some formats: compare digits, not the place of the dot.
            assert secret not in digits, (name_of_format, secret)
        assert "prc_1" not in text
        assert "markup" not in text.lower()
        assert "waterfall" not in text


@pytest.mark.parametrize("name", ["owned", "owned by the month"])
def test_no_format_tells_what_an_owned_hour_is_made_of(name: str) -> None:
    found = VARIANTS[name]
    lines = open_content(found.revision.content_text)["items"][0]["options"][0]["cost"]["lines"]
    parts = [line for line in lines if line["kind"] == "ownership"]
    assert len(parts) == 3
    for name_of_format, text in written(read_document(found)).items():
        for part in parts:
            assert part["description"]["en"] not in text
            assert part["net"]["amount"] not in text, name_of_format
            assert part["net_unit_price"]["amount"].replace(".", "").lstrip("0") not in text.replace(".", "")


def test_files_are_the_same_bytes_every_time() -> None:
    for name, found in VARIANTS.items():
        assert written(read_document(found)) == written(read_document(found)), name


def test_canonical_json_states_the_document() -> None:
    found = json.loads(write_json(read_document(VARIANTS["no tax known"]), Options()).content)
    assert found["totals"]["gross"] is None
    assert found["totals"]["tax"] is None
    assert found["totals"]["tax_status"] == "not_determined"
    assert found["number"] == "Q-2026-000007-2"
    assert found["validity"]["expires_at"] == "2026-12-31T16:00:00.000Z"
    assert [line["months"] for line in found["items"][1]["lines"]] == ["12", None, None, "12"]
