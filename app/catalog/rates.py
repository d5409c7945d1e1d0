"""Frozen dated rates: currencies, power, colocation, egress and other reference facts, each with its source."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_EVEN, Context, Decimal

# A European bank holiday weekend (Good Friday to Easter Monday) leaves five days between two ECB fixings.
FX_MAX_AGE_DAYS = 5
# Cross rates carry 15 significant digits: more than any published rate, enough that re-multiplying cannot show.
FX_CONTEXT = Context(prec=15, rounding=ROUND_HALF_EVEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class FxRate:
    """One exchange rate as applied: ``amount_in_base * rate = amount_in_quote``.

    Parameters
    ----------
    requested_on, rate_on : date
        The day asked for and the business day whose fixing applies (a Saturday takes Friday's).
    via : str or None
        Pivot currency of a cross rate.
    """

    base: str
    quote: str
    rate: Decimal
    requested_on: date
    rate_on: date
    source: str
    via: str | None

    @property
    def age_days(self) -> int:
        """Days from the fixing to the day asked for [day]."""
        return (self.requested_on - self.rate_on).days

    @property
    def stale(self) -> bool:
        """Whether the fixing is older than a long weekend explains."""
        return self.age_days > FX_MAX_AGE_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class FxFixing:
    """The reference rates of one business day: quote currency units for one euro."""

    fixed_on: date
    per_euro: Mapping[str, Decimal]
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FxTable:
    """Dated euro reference rates and the rules to read them.

    The last fixing on or before the day asked for applies, and its date is part of the answer; before the first
    fixing, or for a currency the source does not carry, there is no rate and None is returned, never 1.
    """

    fixings: tuple[FxFixing, ...]

    def __post_init__(self) -> None:
        days = [fixing.fixed_on for fixing in self.fixings]
        if days != sorted(set(days)):
            raise ValueError("fixings must be in date order, one for each day")

    def rate(self, base: str, quote: str, on: date) -> FxRate | None:
        """Find the rate from ``base`` to ``quote`` on a day, crossing through the euro where needed."""
        position = bisect_right([fixing.fixed_on for fixing in self.fixings], on)
        if position == 0:
            return None
        fixing = self.fixings[position - 1]
        base_rate = Decimal(1) if base == "EUR" else fixing.per_euro.get(base)
        quote_rate = Decimal(1) if quote == "EUR" else fixing.per_euro.get(quote)
        if base_rate is None or quote_rate is None:
            return None
        rate = quote_rate if base == "EUR" else FX_CONTEXT.divide(quote_rate, base_rate)
        return FxRate(
            base=base,
            quote=quote,
            rate=Decimal(1) if base == quote else rate,
            requested_on=on,
            rate_on=fixing.fixed_on,
            source=fixing.source,
            via=None if "EUR" in (base, quote) or base == quote else "EUR",
        )

    def currencies(self) -> tuple[str, ...]:
        """Name every currency with at least one fixing."""
        return tuple(sorted({"EUR"} | {code for fixing in self.fixings for code in fixing.per_euro}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricityTariff:
    """Price of electricity in a place [currency/kWh]; ``amount`` None where no source was found."""

    region: str
    country: str
    sector: str
    amount: Decimal | None
    currency: str
    as_of: str | None
    source: str | None
    confidence: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PueFact:
    """Power usage effectiveness: facility power over IT power [1]."""

    scope: str
    value: Decimal
    year: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColocationRate:
    """Colocation asking price [currency/(kW month)]."""

    scope: str
    amount: Decimal
    currency: str
    as_of: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressTier:
    """One step of a provider's egress price [currency/GB]; tiers keep the source's order and wording."""

    provider: str
    tier: str
    amount: Decimal
    currency: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRange:
    """A low and a high figure for something without a list price: press, reseller or street estimates."""

    subject_id: str
    kind: str
    amount_low: Decimal
    amount_high: Decimal
    currency: str
    as_of: str | None
    source: str
    confidence: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCostReference:
    """A published own-cost and power figure per accelerator, to check an ownership calculation against.

    Placeholders (derived in the source from an earlier part) must not be shown as evidence.
    """

    accelerator_id: str
    all_in_kw_per_accelerator: Decimal
    usd_per_accelerator_hour_own_hyperscaler: Decimal
    usd_per_accelerator_hour_own_neocloud: Decimal
    usd_per_accelerator_hour_rental_3y: Decimal
    placeholder: bool
    source: str
    note: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaxRule:
    """A dated indirect-tax rate of a jurisdiction; an estimate for a quote, not tax advice."""

    jurisdiction: str
    name: str
    category: str
    rate: Decimal
    valid_from: date
    valid_to: date | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareMinimum:
    """Oldest version of a software layer that supports an architecture; ``version`` None where not found."""

    architecture: str
    component: str
    version: str | None
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFact:
    """A cited fact kept as its source states it (reliability, campus capex, network rules)."""

    id: str
    kind: str
    fields: Mapping[str, object]
    source: str | None
