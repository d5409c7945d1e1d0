"""What is answered has the shape that the API document promises; what it shows as a request is answered."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel

from app.claims.answer_schemas import ComparisonsAnswer
from app.estimates.answer_schemas import EstimateAnswer, SensitivityAnswer
from app.estimates.examples import REQUESTS
from app.quotes import answer_schemas as shapes
from app.quotes.answer_schemas import QuoteAnswer
from tests.quotes.conftest import Caller, Desk, job


def fits(model: type[BaseModel], document: Any) -> None:
    """Read strictly: a number in the place of a text does not pass."""
    model.model_validate_json(document if isinstance(document, bytes) else document.content, strict=True)


@pytest.mark.parametrize("name", REQUESTS)
def test_every_request_of_the_document_is_answered_in_its_shape(client: TestClient, name: str) -> None:
    body = REQUESTS[name]["value"]
    quote, estimate = client.post("/v1/quotes", json=body), client.post("/v1/estimates", json=body)
    assert (quote.status_code, estimate.status_code) == (201, 200), (quote.text, estimate.text)
    fits(QuoteAnswer, quote)
    fits(EstimateAnswer, estimate)


@pytest.mark.parametrize(
    "item",
    [
        {"supply": {"purchase_models": ["owned"], "accelerators": ["h100-sxm5-80"], "accelerator_count": 64}},
        {
            "job": {"kind": "training", "model": {"ref": "llama3-8b"}},
            "constraints": {"solve_for": "tokens", "deadline_hours": 100},
        },
        {"job": {"kind": "training", "model": {"ref": "llama3-8b"}, "method": "lora", "tokens": 1e9}},
        {"supply": {"accelerators": ["h100-sxm5-80"], "purchase_models": ["capacity_block"]}},
    ],
)
def test_other_kinds_of_answers_have_the_same_shape(client: TestClient, item: dict[str, Any]) -> None:
    plain = {
        "job": {"kind": "training", "model": {"ref": "llama3-8b"}, "tokens": 1e10},
        "supply": job()["items"][0]["supply"],
    }
    answer = client.post("/v1/estimates", json={"items": [{**plain, **item}]})
    assert answer.status_code == 200, answer.text
    fits(EstimateAnswer, answer)


def test_saturated_serving_has_the_same_shape(client: TestClient) -> None:
    served = {
        "kind": "inference",
        "model": {"ref": "llama3-70b"},
        "traffic": {"requests_per_second": 500, "input_tokens": 4000, "output_tokens": 1000},
    }
    supply = {"accelerators": ["h100-sxm5-80"], "accelerator_count": 8}
    answer = client.post("/v1/estimates", json={"items": [{"job": served, "supply": supply}]})
    fits(EstimateAnswer, answer)
    assert answer.json()["items"][0]["options"][0]["performance"]["saturated"] is True


def test_the_answers_of_a_quotes_life_have_their_shapes(client: TestClient, desk: Desk) -> None:
    quote_id, issued = desk.issued()
    at = f"/v1/quotes/{quote_id}"
    fits(shapes.DraftedRevision, client.post(f"{at}/reprice"))
    link = client.post(f"{at}/revisions/1/share-links")
    fits(shapes.ShareLinkAnswer, link)
    body = {"content_sha256": issued["content_sha256"]}
    accepted = client.post(f"{at}/revisions/1/accept", json=body)
    assert accepted.json()["acceptance"]
    fits(shapes.RevisionAnswer, accepted)
    for path, model in {
        "": shapes.QuoteAnswer,
        "/revisions": shapes.RevisionPage,
        "/revisions/1": shapes.RevisionAnswer,
        "/compare?from=1&to=2": shapes.ComparisonAnswer,
        "/revisions/1/explain": shapes.ExplanationAnswer,
        "/audit": shapes.AuditPage,
    }.items():
        fits(model, client.get(at + path))
    fits(shapes.QuotePage, client.get("/v1/quotes"))
    fits(shapes.PolicyAnswer, client.get("/v1/approval-policy"))
    fits(shapes.VerdictAnswer, client.post(f"{at}/revisions/1/verify"))
    fits(shapes.QuoteHeader, client.patch(at, json={"title": "x"}, headers={"If-Match": "*"}))


def test_what_is_shown_without_costs_has_the_same_shape(client: TestClient, as_person: Caller, desk: Desk) -> None:
    quote_id = desk.create(terms={"markup": "0.2"})["id"]
    as_person("li.wei", "quotes:read")
    shown = client.get(f"/v1/quotes/{quote_id}")
    fits(QuoteAnswer, shown)
    line = shown.json()["current_revision"]["items"][0]["options"][0]["cost"]["lines"][0]
    assert "list_unit_price" not in line


def test_studies_and_comparisons_have_their_shapes(client: TestClient) -> None:
    fits(SensitivityAnswer, client.post("/v1/estimates/sensitivity", json={**job(), "samples": 256}))
    asked = job()["items"][0]
    body = {"job": asked["job"], "supplies": [asked["supply"], {"accelerators": ["h200-sxm-141"]}]}
    answer = client.post("/v1/comparisons", json=body)
    assert answer.status_code == 200, answer.text
    fits(ComparisonsAnswer, answer)
