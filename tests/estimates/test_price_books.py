"""A tenant's contracted prices: they win, the list price stays visible, and the quote says which rule it was."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from app.catalog.pricebooks import PriceBook, PriceRule
from app.catalog.snapshot import Snapshot
from app.estimates import service
from app.estimates.schemas import EstimateRequest
from app.foundation.canonical import canonical_bytes
from app.foundation.problems import Problem
from tests.estimates.conftest import TODAY, body, training

BOOK = PriceBook(
    id="pb_1",
    version=3,
    name="acme-2027",
    currency="USD",
    valid_from=date(2026, 1, 1),
    valid_to=None,
    priority=1,
    rules=(PriceRule(action="fixed", amount=Decimal("1.50"), basis="accelerator", provider="lambda", contract="OF-7"),),
    recorded_at=datetime(2026, 1, 1, tzinfo=UTC),
    actor="test",
)
SUPPLY = {"providers": ["lambda"], "accelerators": ["h100-sxm5-80"], "accelerator_count": 8}


def asked(book: PriceBook, snapshot: Snapshot, **parts: Any) -> tuple[EstimateRequest, dict[str, Any]]:
    request = EstimateRequest.model_validate(
        body(training(), supply=SUPPLY, terms={"price_book": "acme-2027", **parts.pop("terms", {})}, **parts)
    )
    estimate = service.estimate(snapshot, request, TODAY, book)
    stored = json.loads(canonical_bytes(estimate.engine_outputs))
    again = service.price(snapshot, request, stored, TODAY, book)
    assert canonical_bytes(again) == canonical_bytes(estimate.content)
    assert estimate.pins["price_book_version"] == "pb_1@v3"
    option: dict[str, Any] = estimate.content["items"][0]["options"][0]
    return request, option


def test_a_fixed_contract_wins_and_list_stays_visible(snapshot: Snapshot) -> None:
    _, option = asked(BOOK, snapshot)
    line = option["cost"]["lines"][0]
    each = option["offer"]["accelerators_per_sold_unit"]
    assert Decimal(line["net_unit_price"]["amount"]) == Decimal("1.50") * each
    assert Decimal(line["list_unit_price"]["amount"]) > Decimal(line["net_unit_price"]["amount"])
    assert line["waterfall"][0]["step"] == "price_book"
    assert line["waterfall"][0]["source"] == "pb_1@v3 (OF-7)"
    assert not line["price_evidence"]["stale"]


def test_a_share_off_list(snapshot: Snapshot) -> None:
    book = replace(BOOK, rules=(PriceRule(action="percent_off", amount=Decimal("0.25")),))
    _, option = asked(book, snapshot)
    line = option["cost"]["lines"][0]
    assert Decimal(line["net_unit_price"]["amount"]) == Decimal(line["list_unit_price"]["amount"]) * Decimal("0.75")


def test_a_contract_in_yuan_over_a_dollar_list_price(snapshot: Snapshot) -> None:
    rule = PriceRule(action="fixed", amount=Decimal("10"), basis="accelerator")
    _, option = asked(replace(BOOK, currency="CNY", rules=(rule,)), snapshot)
    line = option["cost"]["lines"][0]
    assert line["native_net"]["currency"] == "CNY"
    assert line["net"]["currency"] == "USD"
    each = option["offer"]["accelerators_per_sold_unit"]
    native = Decimal(line["quantity"]) * 10 * each
    assert abs(Decimal(line["native_net"]["amount"]) - native) <= Decimal("0.005")
    # 7.4326 CNY and 1.1172 USD for a euro on 2026-10-30
    ratio = Decimal(line["native_net"]["amount"]) / Decimal(line["net"]["amount"])
    assert abs(ratio - Decimal("6.65288")) < Decimal("0.001")


def test_a_contract_stands_where_no_list_price_is_known(snapshot: Snapshot) -> None:
    gap = next(
        o
        for o in snapshot.offers_of_sku("aws", "p5.48xlarge")
        if o.region == "us-east-1" and o.purchase_model == "on_demand"
    )
    book = replace(BOOK, valid_from=date(2025, 1, 1), rules=(PriceRule(action="fixed", amount=Decimal("60")),))
    request = EstimateRequest.model_validate(
        body(
            training(),
            supply={"offers": [gap.id], "accelerator_count": 8},
            terms={"price_book": "acme-2027"},
            as_of="2025-05-15",
        )
    )
    content = service.estimate(snapshot, request, TODAY, book).content
    line = content["items"][0]["options"][0]["cost"]["lines"][0]
    assert line["net_unit_price"]["amount"] == "60.00"


@pytest.mark.parametrize("book", [None, replace(BOOK, withdrawn=True), replace(BOOK, valid_from=date(2027, 1, 1))])
def test_a_book_that_does_not_hold_is_refused(snapshot: Snapshot, book: PriceBook | None) -> None:
    request = EstimateRequest.model_validate(body(training(), terms={"price_book": "acme-2027"}))
    with pytest.raises(Problem) as refused:
        service.estimate(snapshot, request, TODAY, book)
    assert refused.value.errors[0].pointer == "/terms/price_book"
