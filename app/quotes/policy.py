"""When a revision needs a second pair of eyes: thresholds as data, and the reasons a revision trips them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any


class Measure(StrEnum):
    """What a rule looks at."""

    DISCOUNT = "discount"
    MARGIN = "margin"
    TOTAL = "total"
    STALE_LINES = "stale_lines"
    PRICE_AGE_DAYS = "price_age_days"
    HELD_PRICES = "held_prices"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One threshold: review is needed above or below it.

    ``currency`` belongs to ``total`` only: an amount has no meaning without one.
    """

    measure: Measure
    above: Decimal | None = None
    below: Decimal | None = None
    currency: str | None = None

    def __post_init__(self) -> None:
        if self.measure is Measure.HELD_PRICES:
            if self.above is not None or self.below is not None:
                raise ValueError("held_prices takes no threshold: holding old prices always needs review")
            return
        if (self.above is None) == (self.below is None):
            raise ValueError(f"{self.measure} needs exactly one of above and below")
        if (self.measure is Measure.TOTAL) != (self.currency is not None):
            raise ValueError("total needs a currency, other measures take none")

    def as_document(self) -> dict[str, str]:
        """Write the rule as it is stored and shown."""
        document = {"measure": self.measure.value}
        for name in ("above", "below"):
            bound = getattr(self, name)
            if bound is not None:
                document[name] = format(bound, "f")
        if self.currency is not None:
            document["currency"] = self.currency
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """The rules of one tenant, how long an offer may stand, and whether it may go out without its tax determined."""

    version: int
    rules: tuple[Rule, ...]
    longest_validity_days: int
    default_validity_days: int
    requires_tax: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.default_validity_days <= self.longest_validity_days:
            raise ValueError("default_validity_days must lie between 1 and longest_validity_days")

    def as_document(self) -> dict[str, Any]:
        """Write the policy as it is stored and shown; the version stands beside it."""
        return {
            "rules": [rule.as_document() for rule in self.rules],
            "longest_validity_days": self.longest_validity_days,
            "default_validity_days": self.default_validity_days,
            "requires_tax": self.requires_tax,
        }


# What a tenant without a policy of its own gets; version 0 says that nobody chose it.
DEFAULT_POLICY = ApprovalPolicy(
    version=0,
    rules=(
        Rule(measure=Measure.DISCOUNT, above=Decimal("0.15")),
        Rule(measure=Measure.MARGIN, below=Decimal(0)),
        Rule(measure=Measure.STALE_LINES, above=Decimal(0)),
        Rule(measure=Measure.HELD_PRICES),
    ),
    longest_validity_days=366,
    default_validity_days=30,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFacts:
    """What the rules look at, of one revision.

    ``margin`` is None where the cost behind the price is not known, ``oldest_price_days`` where a price is of an
    unknown day; a rule about either then asks for review.
    """

    discount: Decimal
    margin: Decimal | None
    total: Decimal
    currency: str
    stale_lines: int
    oldest_price_days: int | None
    held_prices: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewReason:
    """One rule that asks for review, with the figure that tripped it."""

    code: str
    message: str
    value: str
    threshold: str

    def as_document(self) -> dict[str, str]:
        """Write the reason as it is recorded and shown."""
        return {"code": self.code, "message": self.message, "value": self.value, "threshold": self.threshold}


def review_reasons(policy: ApprovalPolicy, facts: PolicyFacts) -> tuple[ReviewReason, ...]:
    """List why a revision needs review; empty means it is inside the policy."""
    reasons = [reason for rule in policy.rules if (reason := _tripped(rule, facts)) is not None]
    if facts.held_prices and all(rule.measure is not Measure.HELD_PRICES for rule in policy.rules):
        # No policy can make late acceptance at old prices silent.
        reasons += [reason for reason in (_tripped(Rule(measure=Measure.HELD_PRICES), facts),) if reason is not None]
    totals = [rule for rule in policy.rules if rule.measure is Measure.TOTAL]
    if totals and all(rule.currency != facts.currency for rule in totals):
        # An amount in a currency nobody set a limit for is not "below the limit".
        reasons.append(
            ReviewReason(
                code="total_without_threshold",
                message=f"The policy limits totals, but not in {facts.currency}.",
                value=f"{facts.total:f} {facts.currency}",
                threshold="none",
            )
        )
    return tuple(reasons)


_UNKNOWN = {
    Measure.MARGIN: ("margin_unknown", "The policy limits margin, and the cost behind this price is not known."),
    Measure.PRICE_AGE_DAYS: (
        "price_age_unknown",
        "The policy limits the age of prices, and a price behind this quote is of an unknown day.",
    ),
}


def _tripped(rule: Rule, facts: PolicyFacts) -> ReviewReason | None:
    if rule.measure is Measure.HELD_PRICES:
        if not facts.held_prices:
            return None
        return ReviewReason(
            code="held_prices",
            message="Earlier prices are held: the seller carries the price risk.",
            value="held",
            threshold="never without review",
        )
    if rule.measure is Measure.TOTAL and rule.currency != facts.currency:
        return None
    value = _value(rule.measure, facts)
    bound = rule.above if rule.above is not None else rule.below
    side = "above" if rule.above is not None else "below"
    if value is None:
        return ReviewReason(
            code=_UNKNOWN[rule.measure][0],
            message=_UNKNOWN[rule.measure][1],
            value="unknown",
            threshold=f"{side} {bound:f}",
        )
    if (rule.above is not None and value > rule.above) or (rule.below is not None and value < rule.below):
        return ReviewReason(
            code=f"{rule.measure.value}_{side}_threshold",
            message=f"{rule.measure.value} is {value:f}, {side} the threshold of {bound:f}.",
            value=f"{value:f}",
            threshold=f"{side} {bound:f}",
        )
    return None


def _value(measure: Measure, facts: PolicyFacts) -> Decimal | None:
    values: dict[Measure, Decimal | None] = {
        Measure.DISCOUNT: facts.discount,
        Measure.MARGIN: facts.margin,
        Measure.TOTAL: facts.total,
        Measure.STALE_LINES: Decimal(facts.stale_lines),
        Measure.PRICE_AGE_DAYS: None if facts.oldest_price_days is None else Decimal(facts.oldest_price_days),
    }
    return values[measure]


def policy_from_document(document: Mapping[str, Any], version: int) -> ApprovalPolicy:
    """Read a stored or submitted policy; raises ``ValueError`` with the reason when it is not one."""
    return ApprovalPolicy(
        version=version,
        rules=tuple(_rule(row) for row in document["rules"]),
        longest_validity_days=int(document["longest_validity_days"]),
        default_validity_days=int(document["default_validity_days"]),
        requires_tax=bool(document.get("requires_tax", False)),
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    return Rule(
        measure=Measure(row["measure"]),
        above=_bound(row.get("above")),
        below=_bound(row.get("below")),
        currency=row.get("currency"),
    )


def _bound(text: str | None) -> Decimal | None:
    if text is None:
        return None
    try:
        bound = Decimal(text)
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a decimal number") from error
    if not bound.is_finite():
        raise ValueError(f"{text!r} is not a finite number")
    return bound
