"""Price books: a tenant's own contracted prices, dated and prioritised, applied over the list price that stays visible.

The first matching rule of the book with the highest priority decides; among rules of one book the order of the book
does. Names follow FOCUS: the list unit price goes in, the contracted unit price comes out, both are kept in a quote.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal, localcontext

from app.catalog.offers import Offer
from app.catalog.resolve import UNIT_PRICE_STEP

ACTIONS = ("fixed", "percent_off", "floor", "cap")
BASES = ("sold_unit", "accelerator")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRule:
    """One contracted rule; a selector that is None matches everything.

    Parameters
    ----------
    amount : Decimal
        Currency of the book per ``basis`` and hour for ``fixed``, ``floor`` and ``cap``; a fraction of the list price
        for ``percent_off`` ("0.15" is 15 % off).
    contract : str or None
        The contract or order form the rule comes from.
    """

    action: str
    amount: Decimal
    basis: str = "sold_unit"
    provider: str | None = None
    sku: str | None = None
    accelerator_id: str | None = None
    region: str | None = None
    purchase_model: str | None = None
    term_months: int | None = None
    contract: str | None = None

    def __post_init__(self) -> None:
        if self.action not in ACTIONS or self.basis not in BASES:
            raise ValueError(f"action is one of {', '.join(ACTIONS)} and basis one of {', '.join(BASES)}")
        if not self.amount.is_finite() or self.amount < 0:
            raise ValueError("amount must not be negative")
        if self.action == "percent_off" and self.amount >= 1:
            raise ValueError('percent_off is a fraction below 1, "0.15" for 15 %')
        if self.action == "fixed" and self.amount == 0:
            raise ValueError("a fixed price of zero is not a price; leave the rule out")

    def matches(self, offer: Offer) -> bool:
        """Whether the rule is about this offer."""
        key = offer.key
        return all(
            wanted is None or wanted == found
            for wanted, found in (
                (self.provider, key.provider),
                (self.sku, key.sku),
                (self.accelerator_id, offer.accelerator_id),
                (self.region, key.region),
                (self.purchase_model, key.purchase_model),
                (self.term_months, key.term_months),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBook:
    """One version of a tenant's book; a change is a new version, earlier ones stay for the quotes that used them."""

    id: str
    version: int
    name: str
    currency: str
    valid_from: date
    valid_to: date | None
    priority: int
    rules: tuple[PriceRule, ...]
    recorded_at: datetime
    actor: str
    withdrawn: bool = False

    def covers(self, day: date) -> bool:
        """Whether the book holds on a day."""
        return not self.withdrawn and self.valid_from <= day and (self.valid_to is None or day < self.valid_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContractedPrice:
    """What a price book makes of an offer's price, with the rule that did it; ``list_unit_price`` None = not known."""

    contracted_unit_price: Decimal
    list_unit_price: Decimal | None
    currency: str
    rule: PriceRule
    source: str


def contracted_price(
    books: Iterable[PriceBook], offer: Offer, list_unit_price: Decimal | None, currency: str | None, day: date
) -> ContractedPrice | None:
    """Apply the first matching rule of the highest-priority book that holds on the day.

    A rule relative to list (percent off, floor, cap) needs a list price in the book's currency; without one it says
    nothing, and the next rule is asked. A fixed price needs none.
    """
    standing = sorted((book for book in books if book.covers(day)), key=lambda book: (-book.priority, book.id))
    for book in standing:
        for rule in book.rules:
            if not rule.matches(offer):
                continue
            comparable = list_unit_price if currency == book.currency else None
            amount = _applied(rule, offer, comparable)
            if amount is not None:
                return ContractedPrice(
                    contracted_unit_price=amount,
                    list_unit_price=comparable,
                    currency=book.currency,
                    rule=rule,
                    source=f"{book.id}@v{book.version}",
                )
    return None


def _applied(rule: PriceRule, offer: Offer, list_unit_price: Decimal | None) -> Decimal | None:
    with localcontext() as context:
        context.prec = 40
        context.rounding = ROUND_HALF_UP
        unit = rule.amount * offer.accelerator_count if rule.basis == "accelerator" else rule.amount
        if rule.action == "fixed":
            return unit.quantize(UNIT_PRICE_STEP)
        if list_unit_price is None:
            return None
        if rule.action == "percent_off":
            return (list_unit_price * (1 - rule.amount)).quantize(UNIT_PRICE_STEP)
        bounded = max(list_unit_price, unit) if rule.action == "floor" else min(list_unit_price, unit)
        return bounded.quantize(UNIT_PRICE_STEP)


def newest_versions(books: Sequence[PriceBook]) -> list[PriceBook]:
    """Keep the newest version of each book."""
    newest: dict[str, PriceBook] = {}
    for book in sorted(books, key=lambda book: book.version):
        newest[book.id] = book
    return [newest[key] for key in sorted(newest)]
