"""Every slug of the error catalogue is reached by a test, and told in English and Chinese."""

import ast
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.estimates import choices
from app.foundation.problem_catalogue import CATALOGUE
from app.foundation.problems import Problem
from app.foundation.settings import Settings
from app.main import create_app
from app.pricing.money import Money
from app.pricing.outcome import Unpriced
from app.quotes.calculation import Calculator
from tests.quotes.conftest import Desk, job

TESTS = Path(__file__).resolve().parents[1]


def asserted_texts(source: str) -> set[str]:
    """Texts in asserts, in what ``pytest.raises`` must match, and in parametrized rows of a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if isinstance(node, ast.Assert) or (is_call and node.func.attr in ("raises", "parametrize")):
            found |= {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return found


def test_every_slug_is_reached_by_some_test() -> None:
    """By reading the tests, so that it holds for a part of a run and for a run spread over processes."""
    texts = {text for path in TESTS.rglob("test_*.py") for text in asserted_texts(path.read_text(encoding="utf-8"))}
    missing = [slug for slug in CATALOGUE if not any(slug in text.split(":")[0].split() for text in texts)]
    assert missing == [], f"no test asserts these slugs: {', '.join(missing)}"


def test_the_search_for_slugs_sees_assertions_alone() -> None:
    source = 'x = "gone"  # "conflict"\nassert f() == "not-found"\nwith pytest.raises(E, match="internal: x"): pass\n'
    assert asserted_texts(source) == {"not-found", "internal: x"}


@pytest.fixture
def telling(app: FastAPI) -> Iterator[TestClient]:
    @app.get("/probe/tell/{slug}")
    async def tell(slug: str) -> None:
        raise Problem(slug, "What, why, and what next.")

    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_every_slug_is_told_in_both_languages(telling: TestClient) -> None:
    for slug, kind in CATALOGUE.items():
        english = telling.get(f"/probe/tell/{slug}", headers={"Accept-Language": "en"})
        chinese = telling.get(f"/probe/tell/{slug}", headers={"Accept-Language": "zh-CN"})
        assert [a.status_code for a in (english, chinese)] == [kind.status] * 2
        assert [a.headers["content-language"] for a in (english, chinese)] == ["en", "zh-CN"]
        assert [a.json()["slug"] for a in (english, chinese)] == [slug] * 2
        assert (english.json()["title"], chinese.json()["title"]) == (kind.title_en, kind.title_zh)
        assert kind.title_en.isascii()
        assert any("\u4e00" <= letter <= "\u9fff" for letter in kind.title_zh)


def test_a_calculation_over_its_time_is_refused_with_the_way_out(
    settings: Settings, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = threading.Event()
    calculate = Calculator.calculate

    def slow(*arguments: Any, **named: Any) -> Any:
        until.wait(30)
        return calculate(*arguments, **named)

    monkeypatch.setattr(Calculator, "calculate", slow)
    hasty = create_app(settings.model_copy(update={"calculation_budget_s": 0.6}), clock=clock)
    with TestClient(hasty, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        key = {"Idempotency-Key": '"late"'}
        refused = client.post("/v1/quotes", json=job(), headers=key)
        assert (refused.status_code, refused.json()["slug"]) == (504, "calculation-timeout")
        assert refused.json()["budget_s"] == 0.6
        assert "Prefer: respond-async" in refused.json()["job_hint"]
        until.set()
        # Nothing was kept under the key: the retry is a new request.
        again = client.post("/v1/quotes", json=job(), headers={**key, "Prefer": "respond-async"})
        assert again.status_code == 202
        assert client.get("/v1/quotes").json()["items"] == []


def test_prices_that_tie_are_not_picked_by_chance(
    client: TestClient, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    tied = Unpriced(outcome="ambiguous", reason="two prices of equal rank and date differ")
    monkeypatch.setattr(choices, "hourly_price", lambda *_: tied)
    quote_id = desk.create()["id"]
    chosen = desk.show(quote_id)["items"][0]["options"]
    refused = desk.act(quote_id, 1, "submit", 422)
    assert refused["slug"] == "ambiguous-price", chosen
    assert refused["candidates"][0]["reason"] == tied.reason


def test_a_policy_may_let_no_offer_out_without_its_tax(client: TestClient, desk: Desk) -> None:
    policy = {"rules": [], "requires_tax": True}
    assert client.put("/v1/approval-policy", json=policy).json()["requires_tax"] is True
    quote_id = desk.create()["id"]
    desk.act(quote_id, 1, "submit")
    refused = desk.act(quote_id, 1, "issue", 422)
    assert (refused["slug"], refused["jurisdiction"]) == ("tax-undetermined", None)
    taxed = desk.create(terms={"tax_region": "CN"})["id"]
    assert desk.issue(taxed)["status"] == "issued"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_amounts_of_two_currencies_are_never_added(app: FastAPI) -> None:
    @app.get("/probe/add")
    async def add() -> str:
        return str(Money.parse("1.00", "USD") + Money.parse("1.00", "CNY"))

    with TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False) as client:
        refused = client.get("/probe/add")
    assert (refused.status_code, refused.json()["slug"]) == (422, "currency-mismatch")
    assert "USD and CNY" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("amount", "currency", "slug"),
    [("1e3", "USD", "money-format"), (1000, "USD", "money-not-string"), ("1000", "XXQ", "currency-unknown")],
)
def test_an_amount_says_what_is_wrong_with_it(client: TestClient, amount: Any, currency: str, slug: str) -> None:
    body = job()
    body["items"][0]["constraints"] = {"budget": {"amount": amount, "currency": currency}}
    refused = client.post("/v1/estimates", json=body)
    assert (refused.status_code, refused.json()["slug"]) == (422, slug)
    assert refused.json()["pointer"].startswith("/items/0/constraints/budget/")
