"""Token prices: every line and tier of both sources, and the tier a prompt's length reaches."""

from datetime import date
from decimal import Decimal

import pytest

from app.catalog import service
from app.catalog.importing import ImportOrder
from app.catalog.imports.staged import RejectedRow
from app.catalog.resolve import MissingOffer, Outcome
from app.catalog.token_prices import token_price, token_tiers
from tests.catalog.test_imports import FILES, TODAY, order, run, staged

GEMINI = ("gemini", "gemini/gemini-2.5-pro")


@pytest.fixture
def priced(seeded, clock):
    reports = run(seeded, clock, order("litellm_model_prices.json", "litellm"))
    assert {report.status for report in reports.values()} == {"committed"}
    return seeded.read_now(service.current_snapshot)


@pytest.mark.parametrize(
    ("line", "prompt", "amount"),
    [
        ("input", 1_000, "1.25"),
        ("input", 200_000, "1.25"),
        ("input", 200_001, "2.5"),
        ("output", 200_000, "10"),
        ("output", 1_000_000, "15"),
        ("cached_input", 200_001, "0.25"),
    ],
)
def test_a_prompt_pays_the_tier_its_length_reaches(priced, line, prompt, amount):
    found = token_price(priced, *GEMINI, line, prompt, TODAY)
    assert (found.outcome, found.amount) == (Outcome.PRICED, Decimal(amount))
    assert found.row.price_unit == "per_mtok"


def test_batch_and_priority_are_prices_of_their_own(priced):
    found = {
        tier: token_price(priced, *GEMINI, "input", 300_000, TODAY, service=tier).amount
        for tier in ("standard", "batch", "priority")
    }
    assert found == {"standard": Decimal("2.5"), "batch": Decimal("1.25"), "priority": Decimal("4.5")}


def test_a_line_without_a_price_is_missing_never_another_line(priced):
    found = token_price(
        priced, "fireworks_ai", "fireworks_ai/accounts/fireworks/models/deepseek-v3p1", "cached_input", 9, TODAY
    )
    assert isinstance(found, MissingOffer)
    assert found.outcome is Outcome.UNKNOWN_PRICE


def test_a_price_of_zero_is_unknown_not_free(shipped):
    rows = staged(shipped, order("litellm_model_prices.json", "litellm"))
    free = [row for row in rows if isinstance(row, RejectedRow)]
    assert {row.reason for row in free} == {"non_positive_price"}
    assert {row.raw["line"] for row in free} >= {"input", "output"}


def test_the_library_keeps_every_tier(seeded, clock):
    """claude-opus-4-6 of genai-prices 0.2.3: 5 USD a million input tokens, 10 above 200,000."""
    what = ImportOrder(file_format="genai-prices", content=b"", filename="genai-prices", provider="anthropic")
    run(seeded, clock, what)
    snapshot = seeded.read_now(service.current_snapshot)
    assert list(token_tiers(snapshot, "anthropic", "claude-opus-4-6", "input")) == [0, 200_000]
    found = [
        token_price(snapshot, "anthropic", "claude-opus-4-6", "input", n, TODAY).amount for n in (200_000, 200_001)
    ]
    assert found == [Decimal(5), Decimal(10)]


def test_a_day_before_the_first_observation_has_no_token_price(priced):
    found = token_price(priced, *GEMINI, "input", 1, date(2026, 11, 29))
    assert (found.outcome, found.amount) == (Outcome.UNKNOWN_PRICE, None)


def test_the_route_shows_each_line_in_its_tier(api):
    content = (FILES / "litellm_model_prices.json").read_bytes()
    form = {"format": "litellm", "dry_run": "false"}
    api.post("/v1/catalog/imports", files={"file": ("prices.json", content)}, data=form)
    asked = {"provider": "gemini", "model": "gemini/gemini-2.5-pro", "prompt_tokens": 250_000}
    answer = api.get("/v1/catalog/token-prices", params=asked).json()
    lines = {row["line"]: row for row in answer["lines"]}
    assert {name: row["offer"]["price"]["winner"]["amount"] for name, row in lines.items()} == {
        "input": "2.5",
        "cached_input": "0.25",
        "output": "15",
    }
    assert lines["input"]["above_tokens"] == 200_000
    assert api.get(f"/v1/catalog/offers/{lines['input']['offer']['id']}").status_code == 200
    assert api.get("/v1/catalog/token-prices", params={**asked, "model": "gemini-9"}).status_code == 404
