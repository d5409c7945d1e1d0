"""Commercial terms of one estimate, ready for pricing: conversions with their dates, taxes, the waterfall's shares."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from app.catalog.pricebooks import PriceBook
from app.catalog.rates import FX_MAX_AGE_DAYS
from app.catalog.snapshot import Snapshot
from app.estimates.errors import refused_field
from app.estimates.schemas import Terms
from app.foundation.problems import FieldError, Problem
from app.pricing.currency import exponent
from app.pricing.line_items import STANDARD_TAX
from app.pricing.money import Money
from app.pricing.rates import Conversion
from app.pricing.rounding import POLICIES, RoundingPolicy, TaxRule
from app.pricing.waterfall import Adjustments, PriceBookRule, Waterfall, waterfall

# renting and running computers is a service; owned hardware is not resold here
SERVICES = "services"


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedTerms:
    """Terms with everything looked up; conversions are found once per currency and remembered."""

    snapshot: Snapshot
    currency: str
    as_of: date
    markup: Decimal
    discount: Decimal
    contingency: Decimal
    policy: RoundingPolicy
    taxes: tuple[TaxRule, ...]
    tax_region: str | None
    book: PriceBook | None = None
    _conversions: dict[str, Conversion] = field(default_factory=dict)

    def conversion(self, currency: str) -> Conversion:
        """The dated rate into the terms' currency.

        Raises
        ------
        Problem
            ``fx-unavailable``: the catalog has no rate; the price is not guessed.
        """
        known = self._conversions.get(currency)
        if known is None:
            known = self._conversions[currency] = self._find(currency)
        return known

    def factor(self, currency: str) -> Decimal:
        """The applied rate from a currency, for coarse comparisons."""
        return self.conversion(currency).rate

    def converted(self, price: Money) -> Money:
        """A unit price in the terms' currency, before discounts and markup."""
        return self.conversion(price.currency).convert_unit(price)

    def settled(self, amount: Decimal) -> Money:
        """An amount in the terms' currency at its minor unit."""
        return Money.settled(amount, self.currency)

    def enough(self, amount: Decimal) -> Money:
        """The least amount in minor units that is not below another one."""
        whole = self.settled(amount)
        if whole.amount >= amount:
            return whole
        return Money(amount=whole.amount + Decimal(1).scaleb(-exponent(self.currency)), currency=self.currency)

    def has_rate(self, currency: str) -> bool:
        """Whether amounts in that currency can be shown in the terms' currency."""
        if currency not in self._conversions:
            try:
                self.conversion(currency)
            except Problem:
                return False
        return True

    def no_rate(self, currency: str) -> Problem:
        """The refusal for a currency that cannot be shown in the terms' own."""
        return Problem(
            "fx-unavailable",
            f"The catalog has no exchange rate {currency}/{self.currency} on or before {self.as_of}. "
            f"Ask for {currency}, or for one of {', '.join(self.snapshot.fx.currencies())}.",
            errors=[
                FieldError(code="no_rate", message=f"no rate from {currency} to it", pointer="/terms/currency"),
            ],
            pair=f"{currency}/{self.currency}",
        )

    def _find(self, currency: str) -> Conversion:
        rate = self.snapshot.fx.rate(currency, self.currency, self.as_of) if currency != self.currency else None
        if currency == self.currency:
            return Conversion.identity(currency, self.as_of)
        if rate is None:
            raise self.no_rate(currency)
        return Conversion(
            base=currency,
            quote=self.currency,
            rate=rate.rate,
            observed_on=rate.rate_on,
            source=rate.source,
            method=f"cross via {rate.via}" if rate.via else "direct",
        )

    def price(self, listed: Money, quantity: Decimal, rule: PriceBookRule | None) -> tuple[Waterfall, Money | None]:
        """The waterfall of a list price in the terms' currency, and the native net unit price if that differs.

        A contract in another currency than the list price is what is paid, so the native price is the contract's.
        """
        own = rule.unit_price if rule is not None else None
        in_terms = waterfall(self.converted(listed), quantity, self._adjustments(self._in_terms(rule)))
        paid = listed if own is None else own
        if paid.currency == self.currency:
            return in_terms, None
        if own is not None and own.currency != listed.currency:
            return in_terms, waterfall(own, quantity, self._adjustments(None)).net_unit_price
        return in_terms, waterfall(listed, quantity, self._adjustments(rule)).net_unit_price

    def _in_terms(self, rule: PriceBookRule | None) -> PriceBookRule | None:
        if rule is None or rule.unit_price is None:
            return rule
        return PriceBookRule(source=rule.source, unit_price=self.converted(rule.unit_price))

    def _adjustments(self, book: PriceBookRule | None) -> Adjustments:
        return Adjustments(
            price_book=book,
            negotiated_off=self.discount,
            negotiated_source="terms.discount",
            markup=self.markup,
            markup_source="terms.markup",
        )

    def fx_json(self, currencies: Iterable[str]) -> list[dict[str, object]]:
        """The conversions of these currencies, by pair, with the age of the fixing on the day of the prices."""
        rows: list[dict[str, object]] = []
        for currency in sorted(set(currencies) - {self.currency}):
            conversion = self.conversion(currency)
            age = (self.as_of - conversion.observed_on).days
            rows.append({**conversion.as_json(), "age_days": age, "stale": age > FX_MAX_AGE_DAYS})
        return rows


def priced_terms(snapshot: Snapshot, terms: Terms, as_of: date, book: PriceBook | None = None) -> PricedTerms:
    """Look up what the terms name; the price book, which is a tenant's own, comes as a value.

    Raises
    ------
    Problem
        ``validation-failed`` where the named book was not found or does not hold on the day.
    """
    if terms.price_book is not None and (book is None or not book.covers(as_of)):
        raise refused_field(
            "/terms/price_book",
            "unknown_price_book",
            f"There is no price book {terms.price_book!r} for you on {as_of}. Leave the field out for list prices.",
        )
    return PricedTerms(
        snapshot=snapshot,
        currency=terms.currency,
        as_of=as_of,
        markup=terms.markup,
        discount=terms.discount,
        contingency=terms.contingency,
        policy=POLICIES[terms.rounding_policy],
        taxes=_taxes(snapshot, terms.tax_region, as_of),
        tax_region=terms.tax_region,
        book=book if terms.price_book is not None else None,
    )


def _taxes(snapshot: Snapshot, region: str | None, as_of: date) -> tuple[TaxRule, ...]:
    """The tax on services of a region: without a region or a dated rule it is not determined, never zero."""
    if region is None:
        return ()
    found = [
        rule
        for rule in snapshot.taxes
        if rule.jurisdiction == region and rule.valid_from <= as_of and (rule.valid_to is None or as_of < rule.valid_to)
    ]
    if not found:
        return ()
    rule = min(found, key=lambda r: (r.category != SERVICES, r.category, r.name))
    return (
        TaxRule(
            jurisdiction=rule.jurisdiction,
            category=STANDARD_TAX,
            rate=rule.rate,
            inclusive=False,
            valid_from=rule.valid_from,
            valid_to=rule.valid_to,
            source=f"{rule.name}: {rule.source}",
        ),
    )
