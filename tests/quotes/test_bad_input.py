"""Hostile addresses and bodies: an answer that says why, never a 500, nothing stored."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.access.principal import LOOPBACK_TENANT
from tests.quotes.conftest import Caller, Desk, job

HUGE = "9" * 40


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/quotes/quo_%00"),
        ("GET", "/v1/quotes/%F0%9F%92%A5"),
        ("GET", "/v1/quotes/{id}/revisions/0"),
        ("GET", "/v1/quotes/{id}/revisions/-1"),
        ("GET", f"/v1/quotes/{{id}}/revisions/{HUGE}"),
        ("POST", f"/v1/quotes/{{id}}/revisions/{HUGE}/submit"),
        ("POST", "/v1/quotes/{id}/revisions/2/verify"),
        ("GET", f"/v1/quotes/{{id}}/compare?from=1&to={HUGE}"),
        ("GET", "/v1/quotes?customer=a%00b"),
        ("GET", "/v1/quotes?updated_since=2026-12-01T00:00:00"),
        ("GET", "/v1/quotes?updated_since=0001-01-01T00:00:00%2B14:00"),
        ("GET", "/v1/quotes?status=open"),
        ("GET", "/v1/quotes?limit=0"),
        ("GET", "/v1/quotes?cursor=AAAA"),
    ],
)
def test_a_hostile_address_is_a_clear_refusal(client: TestClient, desk: Desk, method: str, path: str) -> None:
    quote_id = desk.create()["id"]
    answer = client.request(method, path.replace("{id}", quote_id))
    assert answer.status_code in (400, 404, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("revisions", {"from": 10**30}),
        ("revisions", {"from": -1}),
        ("revisions", {"from": "rev_nothing"}),
        ("revisions", {"pricing": "free"}),
        ("revisions", {"changes": {"items": []}}),
        ("revisions", {"changes": {"colour": "red"}}),
        ("reprice", {"from": 2}),
        ("revisions", {"from": 3_000_000_000}),
    ],
)
def test_a_new_revision_from_nonsense_is_refused(
    client: TestClient, desk: Desk, path: str, body: dict[str, Any]
) -> None:
    quote_id, _ = desk.issued()
    answer = client.post(f"/v1/quotes/{quote_id}/{path}", json=body)
    assert (answer.status_code, answer.json()["slug"]) == (422, "validation-failed"), answer.text
    assert answer.json()["errors"][0]["pointer"]
    assert len(client.get(f"/v1/quotes/{quote_id}/revisions").json()["items"]) == 1


@pytest.mark.parametrize("number", [10**20, 3_000_000_000, 99, -1])
def test_a_catalog_revision_that_no_database_holds_is_unknown(client: TestClient, desk: Desk, number: int) -> None:
    quote_id = desk.create()["id"]
    asked = {"catalog_revision": number}
    tag = {"If-Match": "*"}
    answers = [
        client.post("/v1/quotes", json=job(**asked)),
        client.patch(f"/v1/quotes/{quote_id}/revisions/1", json=asked, headers=tag),
        client.post(f"/v1/quotes/{quote_id}/revisions", json={"changes": asked}),
    ]
    assert [answer.status_code for answer in answers] == [422] * 3
    assert {answer.json()["slug"] for answer in answers} == {"unknown-catalog-revision"}
    assert answers[0].json()["errors"][0]["pointer"] == "/catalog_revision"


def test_a_patch_is_an_object(client: TestClient, desk: Desk) -> None:
    path = f"/v1/quotes/{desk.create()['id']}/revisions/1"
    for body in ([], "x", 1, None):
        assert client.patch(path, json=body, headers={"If-Match": '"r1.1"'}).status_code == 422


def test_without_costs_nothing_tells_the_margin(desk: Desk, as_person: Caller, client: TestClient) -> None:
    first = desk.create(terms={"markup": "0.15"})
    desk.act(first["id"], 1, "submit")
    second = desk.create(terms={"markup": "0.30"})
    as_person("buyer", "quotes:read", tenant=LOOPBACK_TENANT)
    sides = [{"quote_id": quote["id"], "revision": 1} for quote in (first, second)]
    compared = client.post("/v1/compare", json={"revisions": sides}).json()
    change = compared["changes"][0]
    assert "effects" not in change["drift"]
    assert change["drift"]["change_percent"]
    assert "markup" not in str(compared)
    shown = client.get(f"/v1/quotes/{first['id']}").json()["current_revision"]
    assert shown["review"] is None
    assert "rent_or_own" not in shown["items"][0]
