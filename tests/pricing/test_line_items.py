"""Identities on rounded values, allocation, tax scopes, and prices that are missing."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.pricing.errors import CurrencyMismatchError, PricingError
from app.pricing.line_items import Charge, DocumentDiscount, Line, priced_line, with_contingency, with_discount
from app.pricing.money import Money, total
from app.pricing.outcome import Unpriced
from app.pricing.rounding import DEFAULT_POLICY, POLICIES, TaxRule, allocate
from app.pricing.totals import totals
from app.pricing.waterfall import Waterfall

CURRENCIES = ("USD", "CNY", "JPY", "KWD")
unit_prices = st.decimals(min_value=0, max_value=10**6, places=9)
quantities = st.decimals(min_value=0, max_value=10**6, places=6)


def line(number: int, price: str, billed: str, currency: str = "USD", charge: Charge = "usage") -> Line:
    return priced_line(
        number=number, kind="compute", charge=charge, description={"en": "x"}, billed=Decimal(billed),
        unit="node_hour", hours_basis="contract_hours",
        priced=Waterfall(list_unit_price=Money.parse(price, currency)),
    )  # fmt: skip


def vat(rate: str, inclusive: bool = False) -> TaxRule:
    return TaxRule(
        jurisdiction="CN", category="standard", rate=Decimal(rate), inclusive=inclusive,
        valid_from=date(2019, 4, 1), valid_to=None, source="test",
    )  # fmt: skip


@given(
    st.sampled_from(CURRENCIES),
    st.sampled_from(sorted(POLICIES)),
    st.booleans(),
    st.lists(st.tuples(unit_prices, quantities), min_size=1, max_size=12),
)
def test_identities_hold_on_rounded_values(
    currency: str, policy: str, inclusive: bool, rows: list[tuple[Decimal, Decimal]]
) -> None:
    lines = [line(10 * i, format(p, "f"), format(q, "f"), currency) for i, (p, q) in enumerate(rows)]
    result = totals(lines, currency, POLICIES[policy], [vat("0.06", inclusive)])
    tax = total((t.amount for t in result.tax if t.amount), currency)
    assert result.gross == result.net + tax
    listed = total((x.net for x in lines), currency)
    assert listed == result.usage
    assert (result.gross if inclusive else result.net) == listed


@pytest.mark.parametrize("currency", CURRENCIES)
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_two_hundred_lines_both_tax_scopes(currency: str, policy: str) -> None:
    lines = [line(i, "33.335", "1.5", currency) for i in range(200)]
    result = totals(lines, currency, POLICIES[policy], [vat("0.13")])
    (tax,) = result.tax
    assert tax.amount is not None
    nets = [x.net for x in lines]
    rule = vat("0.13")
    expected = (
        rule.tax_of(total(nets, currency))
        if policy.endswith("tax_by_rate")
        else total((rule.tax_of(n) for n in nets), currency)
    )
    assert tax.amount == expected
    assert result.gross == result.net + tax.amount


def test_the_two_tax_scopes_differ_and_the_policy_is_named() -> None:
    lines = [line(i, "0.05", "1") for i in range(200)]
    by_rate, per_line = (totals(lines, "USD", POLICIES[p], [vat("0.1")]) for p in sorted(POLICIES))
    assert by_rate.tax[0].amount == Money.parse("1.00", "USD")
    assert per_line.tax[0].amount == Money.parse("2.00", "USD")
    assert by_rate.policy != per_line.policy


def test_an_undetermined_tax_is_not_zero() -> None:
    result = totals([line(1, "1", "1")], "USD", DEFAULT_POLICY, [])
    assert result.gross is None
    assert result.tax[0].as_json()["status"] == "not_determined"
    assert result.tax[0].as_json()["amount"] is None


def test_recurring_is_never_added_without_a_horizon() -> None:
    lines = [line(1, "10", "1", charge="one_off"), line(2, "5", "2", charge="recurring"), line(3, "1", "3")]
    with pytest.raises(PricingError, match="horizon"):
        totals(lines, "USD", DEFAULT_POLICY, [])
    result = totals(lines, "USD", DEFAULT_POLICY, [], Decimal(12))
    assert (result.one_off.text, result.recurring_monthly.text, result.usage.text) == ("10.00", "10.00", "3.00")
    assert result.net.text == "133.00"


def test_hours_and_months_state_their_basis() -> None:
    with pytest.raises(PricingError, match="hours basis"):
        priced_line(
            number=1, kind="compute", charge="usage", description={}, billed=Decimal(1), unit="node_hour",
            priced=Waterfall(list_unit_price=Money.parse("1", "USD")),
        )  # fmt: skip


def test_a_document_has_one_currency() -> None:
    with pytest.raises(CurrencyMismatchError):
        totals([line(1, "1", "1", "CNY")], "USD", DEFAULT_POLICY, [])


def test_contingency_is_its_own_line_after_markup() -> None:
    lines = with_contingency([line(10, "100", "1"), line(20, "50", "1", charge="one_off")], Decimal("0.1"), "terms")
    assert [(x.kind, x.charge, x.net.text) for x in lines[2:]] == [
        ("contingency", "one_off", "5.00"),
        ("contingency", "usage", "10.00"),
    ]
    assert len({x.id for x in lines}) == 4


def test_a_monthly_contingency_counts_the_hours_its_lines_count() -> None:
    monthly = replace(line(10, "100", "1", charge="recurring"), hours_basis="730")
    *_, added = with_contingency([monthly], Decimal("0.1"), "terms")
    assert (added.kind, added.charge, added.hours_basis, added.net.text) == ("contingency", "recurring", "730", "10.00")


def test_a_monthly_line_without_its_hours_basis_is_refused() -> None:
    with pytest.raises(PricingError, match="hours basis"):
        priced_line(
            number=1, kind="egress", charge="recurring", description={}, billed=Decimal(1), unit="gb",
            priced=Waterfall(list_unit_price=Money.parse("1", "USD")),
        )  # fmt: skip


@given(
    st.sampled_from(CURRENCIES),
    st.integers(min_value=-(10**9), max_value=10**9),
    st.lists(st.decimals(min_value=0, max_value=10**9, places=6), min_size=1, max_size=40).filter(sum),
)
def test_allocation_adds_up_exactly(currency: str, units: int, weights: list[Decimal]) -> None:
    amount = Money.settled(Money.zero(currency).amount + units, currency)
    parts = allocate(amount, weights)
    assert total(parts, currency) == amount
    ideal = [amount.amount * w / sum(weights) for w in weights]
    unit = Decimal(1).scaleb(int(Money.zero(currency).amount.as_tuple().exponent))
    assert all(abs(p.amount - i) < unit for p, i in zip(parts, ideal, strict=True))


def test_a_document_discount_is_spread_over_its_charge_only() -> None:
    lines = with_discount(
        [line(1, "1", "1"), line(2, "1", "1"), line(3, "1", "1"), line(4, "9", "1", charge="one_off")],
        DocumentDiscount(amount=Money.parse("1.00", "USD"), charge="usage", source="campaign"),
    )
    assert [x.net.text for x in lines] == ["0.66", "0.67", "0.67", "9.00"]


def test_a_discount_larger_than_its_lines_is_refused() -> None:
    with pytest.raises(PricingError):
        with_discount(
            [line(1, "1", "1")],
            DocumentDiscount(amount=Money.parse("1.01", "USD"), charge="usage", source="campaign"),
        )


def test_a_missing_price_says_why_and_is_never_priced() -> None:
    with pytest.raises(ValueError, match="does not say why"):
        Unpriced(outcome="priced", reason="x")
    with pytest.raises(ValueError, match="reason"):
        Unpriced(outcome="unknown_price", reason="")
