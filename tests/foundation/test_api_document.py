"""The API document says what operations read and answer; /docs shows it offline; deprecation is data of a route."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.foundation.deprecation import Deprecation
from app.foundation.problem_catalogue import CATALOGUE

DRAFTING = {"/v1/quotes", "/v1/quotes/{quote_id}/reprice", "/v1/quotes/{quote_id}/revisions"}


@pytest.fixture
def document(app: FastAPI) -> dict[str, Any]:
    return app.openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, one) for path, found in document["paths"].items() for method, one in found.items()]


def reads(operation: dict[str, Any]) -> set[str]:
    return {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == "header"}


def test_every_answer_has_a_shape(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        good = {status: answer for status, answer in operation["responses"].items() if status[0] == "2"}
        assert good, path
        for status, answer in good.items():
            content = answer.get("content", {}).values()
            typed = content and all(media.get("schema") for media in content)
            assert typed or status == "204" or path.endswith("/content"), (method, path, status)
        assert {"4XX", "5XX"} <= set(operation["responses"])
        assert ("429" in operation["responses"]) is path.startswith("/v1/")


def test_what_is_read_from_headers_is_said(document: dict[str, Any]) -> None:
    found = {(method, path): reads(operation) for path, method, operation in operations(document)}
    assert {path for (method, path), names in found.items() if "Prefer" in names} == DRAFTING
    assert {path for (_, path), names in found.items() if "If-Match" in names} == {
        "/v1/quotes/{quote_id}",
        "/v1/quotes/{quote_id}/revisions/{n}",
        "/v1/webhooks/{webhook_id}",
    }
    posts = {path for (method, path), names in found.items() if method == "post" and "Idempotency-Key" in names}
    assert posts > DRAFTING
    assert "/v1/quotes/{quote_id}/revisions/{n}/accept" in posts
    for path in ("/v1/quotes/{quote_id}", "/v1/quotes/{quote_id}/revisions/{n}", "/v1/catalog/offers"):
        assert "If-None-Match" in found["get", path]
        assert "304" in document["paths"][path]["get"]["responses"]


def test_what_is_answered_in_headers_is_said(document: dict[str, Any]) -> None:
    created = document["paths"]["/v1/quotes"]["post"]["responses"]
    assert {"Location", "ETag", "RateLimit", "RateLimit-Policy", "Idempotent-Replayed"} <= set(
        created["201"]["headers"]
    )
    assert {"Location", "Retry-After", "Preference-Applied"} <= set(created["202"]["headers"])
    assert "Link" in document["paths"]["/v1/quotes"]["get"]["responses"]["200"]["headers"]
    assert "Retry-After" in document["components"]["responses"]["TooMany"]["headers"]


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    for target in set(re.findall(r"'\$ref': '#/([^']+)'", str(document))):
        node: Any = document
        for part in target.split("/"):
            node = node[part]
    schema = document["components"]["schemas"]["Problem"]
    assert set(schema["properties"]["slug"]["enum"]) == set(CATALOGUE)
    example = document["components"]["responses"]["Refused"]["content"]["application/problem+json"]["example"]
    assert set(schema["required"]) <= set(example)
    assert example["title"] == CATALOGUE[example["slug"]].title_en


def test_the_docs_page_needs_no_script_and_no_other_host(client: TestClient) -> None:
    page, style = client.get("/docs"), client.get("/docs.css")
    policy = page.headers["content-security-policy"]
    assert (page.status_code, style.status_code) == (200, 200)
    assert style.headers["content-type"].startswith("text/css")
    assert policy.startswith("default-src 'none'; style-src 'self'")
    assert "unsafe" not in policy
    assert not re.search(r"<script|<iframe|<img|\son[a-z]+=|\sstyle=|javascript:", page.text)
    assert set(re.findall(r'<link[^>]+href="([^"]+)"', page.text)) == {"/docs.css"}
    assert not re.search(r'(src|href)="(https?:)?//', page.text)
    assert "url(" not in style.text
    assert "@import" not in style.text


def test_the_docs_page_shows_everything(client: TestClient, document: dict[str, Any]) -> None:
    page = client.get("/docs").text
    for _, _, operation in operations(document):
        assert f'<article id="{operation["operationId"]}">' in page
    for name in document["components"]["schemas"]:
        assert f'<article id="schema-{name}">' in page
    for problem in CATALOGUE.values():
        assert f'id="problem-{problem.slug}"' in page
        assert problem.title_zh in page
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors <= set(re.findall(r'\sid="([^"]+)"', page))
    assert "idempotency" in re.findall(r'\sid="([^"]+)"', page)


OLD = Deprecation(
    since=datetime(2026, 11, 1, tzinfo=UTC),
    sunset=datetime(2027, 5, 1, tzinfo=UTC),
    successor="/v1/probe/new",
    notice="https://gpuquote.example/changes/probe",
)


def test_a_deprecated_operation_says_so_in_every_answer_and_in_the_document(app: FastAPI) -> None:
    @app.get("/v1/probe/old", **OLD.declared())
    async def old(number: int) -> int:
        return number

    with TestClient(app, raise_server_exceptions=False) as client:
        good, refused = client.get("/v1/probe/old?number=1"), client.get("/v1/probe/old?number=one")
        other = client.get("/version")
    assert (good.status_code, refused.status_code) == (200, 422)
    for answer in (good, refused):
        assert answer.headers["deprecation"] == "@1793491200"
        assert answer.headers["sunset"] == "Sat, 01 May 2027 00:00:00 GMT"
        assert answer.links == {
            "deprecation": {"url": OLD.notice, "rel": "deprecation"},
            "sunset": {"url": OLD.notice, "rel": "sunset"},
            "successor-version": {"url": "/v1/probe/new", "rel": "successor-version"},
        }
    assert "deprecation" not in other.headers
    operation = app.openapi()["paths"]["/v1/probe/old"]["get"]
    assert operation["deprecated"] is True
    assert {"Deprecation", "Sunset", "Link"} <= set(operation["responses"]["200"]["headers"])


def test_a_deprecation_without_an_end_says_since_when_alone() -> None:
    assert Deprecation(since=datetime(2026, 11, 1, tzinfo=UTC)).headers() == [("Deprecation", "@1793491200")]


@pytest.mark.parametrize(
    ("since", "sunset"),
    [
        (datetime(2026, 11, 1), None),  # noqa: DTZ001
        (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)),
    ],
)
def test_a_deprecation_that_cannot_be_is_refused(since: datetime, sunset: datetime | None) -> None:
    with pytest.raises(ValueError, match=r"zone|does not end"):
        Deprecation(since=since, sunset=sunset)
