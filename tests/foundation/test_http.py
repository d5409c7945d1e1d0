"""Every path answers in problem+json; bodies, parameters, tags and cursors are taken strictly."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from fastapi import Depends, FastAPI, Request, Response
from fastapi.testclient import TestClient
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from app.foundation import health
from app.foundation.conditional import answer_not_modified, require_if_match, strong_etag
from app.foundation.pagination import PageRequest, page_body, page_request
from app.foundation.problem_catalogue import CATALOGUE


class Cat(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["cat"]
    lives: int = Field(le=9)


class Dog(BaseModel):
    model_config = ConfigDict(extra="forbid")
    kind: Literal["dog"]
    price: str

    @field_validator("price", mode="before")
    @classmethod
    def _string(cls, value: Any) -> Any:
        if not isinstance(value, str):
            raise PydanticCustomError("money-not-string", 'an amount of money is a decimal string such as "1.50"')
        return value


class Zoo(BaseModel):
    model_config = ConfigDict(extra="forbid")
    animals: list[Annotated[Cat | Dog, Field(discriminator="kind")]]


@pytest.fixture
def probe(app: FastAPI) -> Iterator[TestClient]:
    @app.post("/probe/zoo")
    async def zoo(body: Zoo) -> int:
        return len(body.animals)

    @app.get("/probe/fail")
    async def fail() -> None:
        raise RuntimeError("secret detail")

    @app.put("/probe/tagged")
    async def tagged(request: Request) -> str:
        require_if_match(request, strong_etag("v2"), changed_fields=["/title"])
        return "saved"

    @app.get("/probe/tagged")
    async def read_tagged(request: Request, response: Response) -> str:
        answer_not_modified(request, strong_etag("v2"))
        response.headers["ETag"] = strong_etag("v2")
        return "v2"

    @app.get("/probe/list")
    async def listing(
        response: Response, page: Annotated[PageRequest, Depends(page_request)], colour: str | None = None
    ) -> dict[str, Any]:
        after = int(page.position[0]) if page.position else 0
        rows = [n for n in range(1, 8) if n > after][: page.fetch_limit]
        return page_body(*page.close(rows, lambda n: (n,), response))

    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("body", "offset"),
    [
        (b'{"animals": [', 13),
        (b'{"animals": [], "animals": []}', 16),
        (b'{"animals": [{"kind": "cat", "lives": NaN}]}', 38),
        (b'{"animals": [{"kind": "cat", "lives": 1e400}]}', 38),
        (b'{"animals": ["\\ud800"]}', 14),
        (b'{"animals": ["\\u0000"]}', 14),
        (b"\xff", 0),
        (b"[" * 100_000, 0),
        (b"[" * 70 + b"]" * 70, 0),
        (b"9" * 5_000, 0),
    ],
)
def test_a_body_that_is_not_strict_json_is_refused_with_its_offset(probe: TestClient, body: bytes, offset: int) -> None:
    answer = probe.post("/probe/zoo", content=body, headers=JSON)
    problem = answer.json()
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert problem["slug"] == "malformed-json"
    assert problem["offset"] == offset


@pytest.mark.parametrize(
    ("body", "slug", "pointer"),
    [
        ({"animals": [{"kind": "cat", "lives": 10}]}, "validation-failed", "/animals/0/lives"),
        ({"animals": [{"kind": "cat"}]}, "validation-failed", "/animals/0/lives"),
        ({"animals": [{"kind": "fish"}]}, "validation-failed", "/animals/0/kind"),
        ({"animals": [{"kind": "dog", "price": 1.5}]}, "money-not-string", "/animals/0/price"),
        ({"animals": [], "a/b~c": 1}, "validation-failed", "/a~1b~0c"),
        ({}, "validation-failed", "/animals"),
    ],
)
def test_field_errors_point_into_the_body(probe: TestClient, body: Any, slug: str, pointer: str) -> None:
    answer = probe.post("/probe/zoo", json=body)
    problem = answer.json()
    assert answer.status_code == 422
    assert problem["slug"] == slug
    assert problem["errors"][0]["pointer"] == pointer
    assert problem["trace_id"] in answer.headers["traceparent"]


def test_frameworks_own_errors_are_problems_too(probe: TestClient) -> None:
    missing = probe.get("/nowhere")
    wrong_method = probe.delete("/probe/zoo")
    failed = probe.get("/probe/fail")
    too_large = probe.post("/probe/zoo", content=b"[" + b"1," * 2_500_000 + b"1]", headers=JSON)
    chunked = probe.post("/probe/zoo", content=iter([b"x" * 1_000_000] * 3), headers=JSON)
    wrong_type = probe.post("/probe/zoo", content=b"a: 1", headers={"Content-Type": "text/yaml"})
    answers = [missing, wrong_method, failed, too_large, chunked, wrong_type]
    assert [a.status_code for a in answers] == [404, 405, 500, 413, 413, 415]
    assert [a.json()["slug"] for a in answers] == [
        "not-found",
        "method-not-allowed",
        "internal",
        "payload-too-large",
        "payload-too-large",
        "unsupported-media-type",
    ]
    assert {a.headers["content-type"] for a in answers} == {"application/problem+json"}
    assert wrong_method.headers["allow"] == "POST"
    assert "secret" not in failed.text
    assert too_large.json()["limit"] == 2_000_000


def test_a_wrong_method_is_told_every_method_of_the_path(probe: TestClient) -> None:
    assert probe.delete("/v1/quotes").headers["allow"] == "GET, HEAD, POST"
    assert probe.put("/v1/quotes/quo_1").headers["allow"] == "GET, HEAD, PATCH"
    assert "GET, HEAD, POST" in probe.delete("/v1/quotes").json()["detail"]


def test_a_repeated_parameter_is_refused(probe: TestClient) -> None:
    answer = probe.get("/probe/list?limit=1&limit=2")
    assert (answer.status_code, answer.json()["names"]) == (400, ["limit"])


@pytest.mark.parametrize(
    "accept", ["application/pdf", "text/*", "application/json;q=0", "*/*;q=0", "application/json;q=x"]
)
def test_a_representation_that_there_is_not_is_refused(probe: TestClient, accept: str) -> None:
    answer = probe.get("/version", headers={"Accept": accept})
    assert (answer.status_code, answer.json()["slug"]) == (406, "not-acceptable")
    assert answer.json()["available"] == ["application/json"]


@pytest.mark.parametrize(
    "accept",
    ["*/*", "application/*", "text/html, */*;q=0.1", "application/json;q=0.5, */*;q=0", "Application/JSON", ""],
)
def test_what_is_asked_for_among_others_is_answered(probe: TestClient, accept: str) -> None:
    assert probe.get("/version", headers={"Accept": accept or "*/*"}).status_code == 200


def test_an_address_of_more_than_eight_kilobytes_is_refused(probe: TestClient) -> None:
    long, most = (probe.get("/probe/list?colour=" + "x" * size) for size in (8_180, 8_170))
    assert (long.status_code, long.json()["slug"], long.json()["limit"]) == (414, "uri-too-long", 8_192)
    assert most.status_code == 200


def test_infinity_is_refused_with_what_to_write(probe: TestClient) -> None:
    answer = probe.post("/probe/zoo", content=b'{"time_step_limit": [0.0, Infinity]}', headers=JSON)
    assert answer.json()["offset"] == 26
    assert "write null" in answer.json()["detail"]


def test_titles_follow_accept_language(probe: TestClient) -> None:
    chinese = probe.get("/nowhere", headers={"Accept-Language": "fr, zh-Hans-CN;q=0.9, en;q=0.5"})
    english = probe.get("/nowhere", headers={"Accept-Language": "en, zh;q=0.9"})
    assert chinese.json()["title"] == CATALOGUE["not-found"].title_zh
    assert chinese.headers["content-language"] == "zh-CN"
    assert english.json()["title"] == CATALOGUE["not-found"].title_en


def test_a_trace_is_continued_or_begun(probe: TestClient) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    continued = probe.get("/nowhere", headers={"traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    begun = probe.get("/nowhere", headers={"traceparent": "00-" + "0" * 32 + "-00f067aa0ba902b7-01"})
    assert continued.json()["trace_id"] == trace
    assert begun.json()["trace_id"] not in ("0" * 32, trace)


def test_unknown_query_parameters_are_refused(probe: TestClient) -> None:
    answer = probe.get("/probe/list?color=red&limit=2")
    assert answer.status_code == 400
    assert answer.json()["slug"] == "unknown-parameter"
    assert answer.json()["names"] == ["color"]
    assert "colour" in answer.json()["detail"]


def test_paging_walks_every_row_once_and_binds_the_cursor_to_its_filters(probe: TestClient) -> None:
    seen: list[int] = []
    url = "/probe/list?limit=3&colour=red"
    while url:
        page = probe.get(url)
        seen += page.json()["items"]
        url = page.links["next"]["url"] if "next" in page.links else ""
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    cursor = probe.get("/probe/list?limit=3").json()["next_cursor"]
    assert probe.get(f"/probe/list?cursor={cursor}&colour=red").json()["slug"] == "cursor-filter-mismatch"
    changed = ("A" if cursor[0] != "A" else "B") + cursor[1:]
    assert probe.get(f"/probe/list?cursor={changed}").json()["slug"] == "invalid-cursor"
    assert probe.get("/probe/list?cursor=%21").json()["slug"] == "invalid-cursor"
    assert probe.get("/probe/list?limit=201").json()["slug"] == "validation-failed"


def test_conditional_requests(probe: TestClient) -> None:
    current = probe.get("/probe/tagged").headers["etag"]
    missing = probe.put("/probe/tagged")
    stale = probe.put("/probe/tagged", headers={"If-Match": '"old"'})
    weak = probe.put("/probe/tagged", headers={"If-Match": f"W/{current}"})
    assert (missing.status_code, missing.json()["slug"]) == (428, "precondition-required")
    assert (stale.status_code, stale.json()["slug"]) == (412, "precondition-failed")
    assert stale.json()["current_etag"] == current
    assert stale.json()["changed_fields"] == ["/title"]
    assert "weak" in weak.json()["detail"]
    assert probe.put("/probe/tagged", headers={"If-Match": f'"x", {current}'}).status_code == 200
    fresh = probe.get("/probe/tagged", headers={"If-None-Match": f"W/{current}"})
    assert (fresh.status_code, fresh.content) == (304, b"")


def test_health_says_what_is_missing(probe: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe.get("/version").json()["engine_version"]
    answer = probe.get("/healthz")
    assert (answer.status_code, answer.json()["slug"]) == (503, "maintenance")
    assert "catalog" in answer.json()["detail"]
    assert answer.headers["retry-after"]
    probe.app.state.readiness_checks = ()
    assert probe.get("/readyz").json() == {"status": "ok"}
    monkeypatch.setattr(health, "head_revision", lambda: "a later one")
    assert "migration" in probe.get("/healthz").json()["detail"]


@pytest.mark.parametrize("path", ["/healthz", "/v1/quotes", "/openapi.json", "/v1/quotes/quo_none"])
def test_head_is_get_without_the_body(probe: TestClient, path: str) -> None:
    whole, head = probe.get(path), probe.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


@pytest.mark.parametrize("sent", ["application/x-www-form-urlencoded", "application/yaml", "application/octet-stream"])
def test_json_sent_as_something_else_is_told_its_type(probe: TestClient, sent: str) -> None:
    answer = probe.post("/v1/estimates", content=b'{"items": []}', headers={"Content-Type": sent})
    assert (answer.status_code, answer.json()["slug"]) == (415, "unsupported-media-type")
    assert "application/json" in answer.json()["detail"]
