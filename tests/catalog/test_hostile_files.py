"""Files that are not what they say: each is refused whole or row by row with a reason, and never breaks the service."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from app.catalog.importing import ImportOrder
from app.catalog.imports.staged import FileError, RejectedRow, StagedPrice, decimal_of
from tests.catalog.test_imports import FILES, HEAD, P5, own, run, staged

JSON_FILES = {
    "aws": ["aws_ec2.json", "aws_ec2_terms.json"],
    "azure": ["azure_retail.json"],
    "gcp": ["gcp_skus.json"],
    "json": ["own_prices.json"],
    "litellm": ["litellm_model_prices.json"],
}
# A number that takes a billion digits to write out, one that is no number, and every other kind of value.
ODD = ["1E999999999", "-1E-999999999", "NaN", "Infinity", "true", "7", '"x"', '"1E30"', "[]", '["x"]', "{}", "null"]
LONG_REGION = P5.format("55.04", "2026-11-20").replace("us-east-1", "r" * 129)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values of a JSON document."""
    if path:
        yield path
    for name, child in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from places(child, (*path, name))


def with_value(document: Any, path: tuple[Any, ...], text: str) -> bytes:
    """The document with a JSON text put in at a path."""
    changed = copy.deepcopy(document)
    node = changed
    for name in path[:-1]:
        node = node[name]
    node[path[-1]] = "@@"
    return json.dumps(changed).replace('"@@"', text).encode()


@pytest.mark.parametrize(
    ("file_format", "name"), [(kind, name) for kind, names in JSON_FILES.items() for name in names]
)
def test_a_value_of_another_kind_is_refused_wherever_it_stands(shipped, file_format, name):
    document = json.loads((FILES / name).read_bytes())
    kept, reasons = 0, set()
    for path in places(document):
        for text in ODD:
            content = with_value(document, path, text)
            try:
                rows = staged(shipped, ImportOrder(file_format=file_format, content=content, filename=name))
            except FileError as error:
                reasons.add(error.reason)
                continue
            kept += 1
            for row in rows:
                assert isinstance(row, StagedPrice | RejectedRow), (path, text)
                if isinstance(row, RejectedRow):
                    assert row.reason, (path, text)
                    assert all(isinstance(value, str) for value in row.raw.values()), (path, text)
                else:
                    assert 0 < row.amount < 10**18, (path, text)
    assert kept > 0
    assert {"malformed_json"} <= reasons <= {"malformed_json", "empty_file", "missing_unit", "missing_column"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"Fx\rf", "malformed_csv"),
        (b'"a', "malformed_csv"),
        (b"a\x00b\n1", "wrong_encoding"),
    ],
)
@pytest.mark.parametrize("file_format", ["csv", "skypilot", "gpuhunt", "ecb"])
def test_a_header_that_cannot_be_read_is_refused_whole(shipped, file_format, content, reason):
    with pytest.raises(FileError) as refused:
        staged(shipped, ImportOrder(file_format=file_format, content=content, filename="x", provider="aws"))
    assert (refused.value.reason, refused.value.line) == (reason, 1)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"prices": [{"note": "\\u0000"}]}', b'{"Items": ["\\ud800"]}'])
@pytest.mark.parametrize("file_format", JSON_FILES)
def test_json_that_no_database_holds_is_refused_whole(shipped, file_format, content):
    with pytest.raises(FileError) as refused:
        staged(shipped, ImportOrder(file_format=file_format, content=content, filename="x"))
    assert refused.value.reason == "malformed_json"


@pytest.mark.parametrize(
    ("header", "rates", "reason"),
    [
        ("Date,USD", "2026-11-20,1E999999999", "malformed_row"),
        ("Date,USD", "2026-11-20,NaN", "malformed_row"),
        ("Date,DOLLAR", "2026-11-20,1.1", "malformed_row"),
        ("Date,USD", "2026-11-20,0", "non_positive_rate"),
    ],
)
def test_a_reference_rate_is_a_plain_number_of_a_currency(shipped, header, rates, reason):
    content = f"{header}\n{rates}\n".encode()
    with pytest.raises(FileError) as refused:
        staged(shipped, ImportOrder(file_format="ecb", content=content, filename="x"))
    assert refused.value.reason == reason


def test_a_text_longer_than_its_column_is_reported_and_the_rest_imported(seeded, clock):
    """PostgreSQL would refuse the whole transaction."""
    good = P5.format("55.04", "2026-11-20")
    stranger = good.replace("aws", "p" * 70, 1)
    reports = run(seeded, clock, own("\n".join([HEAD, good, LONG_REGION, stranger, ""])))
    assert reports["aws"].status == "committed"
    held = [row for report in reports.values() for row in report.quarantined]
    assert [row["reason"] for row in held] == ["text_too_long", "text_too_long"]


def test_a_token_price_with_more_decimals_than_are_kept_is_reported(seeded, clock):
    """0.1 + 0.2 of a token price, as a program that counts in binary writes it."""
    facts = {
        "litellm_provider": "openai",
        "input_cost_per_token": 3.0000000000000004e-07,
        "output_cost_per_token": 1e-6,
    }
    content = json.dumps({"m": facts, "m" * 300: facts}).encode()
    reports = run(seeded, clock, ImportOrder(file_format="litellm", content=content, filename="x"))
    reasons = sorted(row["reason"] for row in reports["openai"].quarantined)
    assert reasons == ["malformed_price", "malformed_price", "text_too_long"]


@pytest.mark.parametrize("given", [True, 0.5, None, [], {}])
def test_an_amount_is_text_or_an_exact_number(given):
    with pytest.raises(TypeError):
        decimal_of(given)


@pytest.mark.parametrize("given", ["1E31", "1E-31", "NaN", "sNaN", "-Infinity"])
def test_an_amount_is_finite_and_of_a_size_that_can_be_written_out(given):
    with pytest.raises(ValueError, match="is not an amount"):
        decimal_of(given)


@pytest.mark.parametrize("field", ["format", "provider", "source"])
def test_a_form_field_holds_no_nul(api, field):
    form = {"format": "csv", field: "a\x00b"}
    refused = api.post("/v1/catalog/imports", files={"file": ("f.csv", HEAD.encode())}, data=form)
    assert (refused.status_code, refused.json()["pointer"]) == (422, f"/{field}"), refused.text
    assert "NUL" in refused.json()["detail"]


def test_the_name_of_an_imported_book_holds_no_nul(api):
    content = (FILES / "focus_made_up.csv").read_bytes()
    refused = api.post("/v1/price-books/imports", files={"file": ("f.csv", content)}, data={"name": "a\x00b"})
    assert (refused.status_code, refused.json()["pointer"]) == (422, "/name"), refused.text
