from dataclasses import replace
from decimal import Decimal

import pytest

from app.quotes.policy import (
    DEFAULT_POLICY,
    ApprovalPolicy,
    Measure,
    PolicyFacts,
    Rule,
    policy_from_document,
    review_reasons,
)

QUIET = PolicyFacts(
    discount=Decimal("0.05"),
    margin=Decimal("0.10"),
    total=Decimal("1000.00"),
    currency="USD",
    stale_lines=0,
    oldest_price_days=3,
    held_prices=False,
)


def policy(*rules: Rule) -> ApprovalPolicy:
    return ApprovalPolicy(version=1, rules=rules, longest_validity_days=90, default_validity_days=30)


def test_inside_the_default_policy() -> None:
    assert review_reasons(DEFAULT_POLICY, QUIET) == ()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"discount": Decimal("0.1501")}, "discount_above_threshold"),
        ({"margin": Decimal("-0.0001")}, "margin_below_threshold"),
        ({"margin": None}, "margin_unknown"),
        ({"stale_lines": 1}, "stale_lines_above_threshold"),
        ({"held_prices": True}, "held_prices"),
    ],
)
def test_each_threshold_of_the_default_policy(change: dict[str, object], code: str) -> None:
    assert [reason.code for reason in review_reasons(DEFAULT_POLICY, replace(QUIET, **change))] == [code]  # type: ignore[arg-type]


def test_a_threshold_itself_is_inside() -> None:
    assert review_reasons(DEFAULT_POLICY, replace(QUIET, discount=Decimal("0.15"), margin=Decimal(0))) == ()


def test_a_price_of_an_unknown_day_passes_no_limit_of_age() -> None:
    limited = policy(Rule(measure=Measure.PRICE_AGE_DAYS, above=Decimal(10_000)))
    assert review_reasons(limited, QUIET) == ()
    assert [r.code for r in review_reasons(limited, replace(QUIET, oldest_price_days=None))] == ["price_age_unknown"]


def test_totals_are_compared_in_their_own_currency_only() -> None:
    limited = policy(Rule(measure=Measure.TOTAL, above=Decimal(500), currency="USD"))
    assert [r.code for r in review_reasons(limited, QUIET)] == ["total_above_threshold"]
    assert [r.code for r in review_reasons(limited, replace(QUIET, currency="CNY"))] == ["total_without_threshold"]


def test_a_policy_survives_its_document() -> None:
    assert policy_from_document(DEFAULT_POLICY.as_document(), version=0) == DEFAULT_POLICY


@pytest.mark.parametrize(
    "rule",
    [
        {"measure": "discount"},
        {"measure": "discount", "above": "0.1", "below": "0.2"},
        {"measure": "discount", "above": "NaN"},
        {"measure": "discount", "above": "a lot"},
        {"measure": "total", "above": "5"},
        {"measure": "margin", "below": "0", "currency": "USD"},
        {"measure": "held_prices", "above": "1"},
        {"measure": "mood", "above": "1"},
    ],
)
def test_policies_that_mean_nothing_are_refused(rule: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        policy_from_document({"rules": [rule], "longest_validity_days": 90, "default_validity_days": 30}, version=1)
