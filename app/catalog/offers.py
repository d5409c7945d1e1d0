"""Frozen values of the commercial side of the catalog: offers, dated price rows, sources, quarantine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

PURCHASE_MODELS = ("on_demand", "reserved", "capacity_block", "spot", "marketplace", "owned")
PAYMENT_OPTIONS = ("none", "partial", "all_upfront", "unstated")
SCOPES = ("bundle", "component")
SOLD_UNITS = ("gpu", "chip", "superchip", "node", "rack", "token", "unit")
PRICE_UNITS = (
    "hour",
    "month",
    "year",
    "upfront",
    "per_mtok",
    "per_gb_month",
    "per_kwh",
    "per_kw_month",
)
PRICE_KINDS = ("list", "contracted", "estimate", "marketplace_stat")
METHODS = ("api", "verbatim", "manual", "tracker", "generated")
CONFIDENCES = ("high", "medium", "low")

# Freshness limits [day]: catalog design 4, "stale limit: spot/marketplace 24 h, on-demand 30 d, reserved 90 d".
MAX_AGE_DAYS: Mapping[str, int] = {
    "on_demand": 30,
    "reserved": 90,
    "capacity_block": 90,
    "spot": 1,
    "marketplace": 1,
    "owned": 90,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a figure was read: address or ``repository@commit:path``, how it was read, and under which licence."""

    id: str
    citation: str
    method: str
    retrieved_on: date | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferKey:
    """What makes two offers different things to buy; the unique key of the offer table.

    Leaving a part out is how a community price gets billed as a secure one (dstack#1886), so none may be missing:
    a source that does not state one says ``unstated``.
    """

    provider: str
    sku: str
    accelerator_label: str
    region: str
    purchase_model: str
    product: str = "standard"
    term_months: int = 0
    payment_option: str = "none"
    tier: str = "standard"
    tenancy: str = "shared"
    os: str = "linux"

    def __post_init__(self) -> None:
        if self.purchase_model not in PURCHASE_MODELS:
            raise ValueError(f"purchase_model must be one of {', '.join(PURCHASE_MODELS)}, got {self.purchase_model!r}")
        if self.payment_option not in PAYMENT_OPTIONS:
            raise ValueError(f"payment_option must be one of {', '.join(PAYMENT_OPTIONS)}, got {self.payment_option!r}")
        if self.term_months < 0 or (self.purchase_model == "reserved") != (self.term_months > 0):
            raise ValueError(f"a reserved offer, and only that, has term_months > 0; got {self.term_months}")

    def parts(self) -> tuple[str, ...]:
        """Give the key as text, in a fixed order, for identity and hashing."""
        return (
            self.provider,
            self.sku,
            self.accelerator_label,
            self.region,
            self.purchase_model,
            self.product,
            str(self.term_months),
            self.payment_option,
            self.tier,
            self.tenancy,
            self.os,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Something a provider sells, apart from what it costs on a given day.

    Parameters
    ----------
    accelerator_id : str or None
        None where the label does not say which part it is ("H100-80GB" without form factor).
    accelerator_count : int
        Accelerators in one sold unit, so that per-accelerator and per-unit prices are never confused (dstack#1890).
    scope : str
        ``component`` (accelerator without host) or ``bundle`` (a whole machine); the two are never compared or mixed.
    min_quantity, quantity_step : int
        In sold units (CoreWeave sells GB200 nodes by the rack of 18).
    indicative : bool
        Market indication, not something the provider signs: medians, aggregator rows, marketplaces.
    excluded_reason : str or None
        Why automatic quotes leave it out; None when they may use it.
    """

    id: str
    key: OfferKey
    scope: str
    sold_unit: str
    accelerator_id: str | None
    accelerator_count: int
    vcpus: int | None = None
    memory_gib: Decimal | None = None
    node_shape_id: str | None = None
    min_quantity: int = 1
    quantity_step: int = 1
    indicative: bool = False
    excluded_reason: str | None = None
    notes: str | None = None

    def __post_init__(self) -> None:
        if self.scope not in SCOPES or self.sold_unit not in SOLD_UNITS:
            raise ValueError(f"{self.id}: unknown scope {self.scope!r} or sold_unit {self.sold_unit!r}")
        if min(self.accelerator_count, self.min_quantity, self.quantity_step) < 1:
            raise ValueError(f"{self.id}: accelerator_count, min_quantity and quantity_step count from 1")

    @property
    def provider(self) -> str:
        """Provider id, aliases already folded."""
        return self.key.provider

    @property
    def region(self) -> str:
        """Region code as the provider writes it; ``global`` where one price holds worldwide."""
        return self.key.region

    @property
    def purchase_model(self) -> str:
        """How it is bought; one of ``PURCHASE_MODELS``."""
        return self.key.purchase_model

    @property
    def max_age_days(self) -> int:
        """Age past which a price of this purchase model is stale [day]."""
        return MAX_AGE_DAYS[self.key.purchase_model]

    @property
    def automatic(self) -> bool:
        """Whether a quote may pick this offer without being told to."""
        return self.excluded_reason is None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """One dated observation of a price, immutable; a correction is a new row with a later ``recorded_revision``.

    Parameters
    ----------
    amount : Decimal
        Per sold unit and ``price_unit``; always positive, a missing price has no row.
    valid_from, valid_to : date
        Half open; ``valid_to`` None = open. ``valid_from`` is the first observation where no start is published.
    observed_on : date or None
        Last day the source showed it; None = unknown, which counts as stale.
    """

    id: str
    offer_id: str
    amount: Decimal
    currency: str
    price_unit: str
    valid_from: date
    valid_to: date | None
    observed_on: date | None
    recorded_at: datetime | None
    recorded_revision: int
    source: Source
    kind: str
    confidence: str
    note: str | None = None

    def __post_init__(self) -> None:
        if not self.amount.is_finite() or self.amount <= 0:
            raise ValueError(f"{self.id}: a price must be positive and finite, got {self.amount}")
        if len(self.currency) != 3 or not self.currency.isascii() or not self.currency.isupper():
            raise ValueError(f"{self.id}: currency must be an ISO 4217 code, got {self.currency!r}")
        if self.price_unit not in PRICE_UNITS or self.kind not in PRICE_KINDS:
            raise ValueError(f"{self.id}: unknown price_unit {self.price_unit!r} or kind {self.kind!r}")
        if self.valid_to is not None and self.valid_to <= self.valid_from:
            raise ValueError(f"{self.id}: valid_to {self.valid_to} must be after valid_from {self.valid_from}")

    @property
    def method(self) -> str:
        """How the figure was read."""
        return self.source.method

    def covers(self, day: date) -> bool:
        """Whether ``day`` lies in the half-open valid range."""
        return self.valid_from <= day and (self.valid_to is None or day < self.valid_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantinedRow:
    """A price row held back, with the check that caught it; it prices nothing until someone accepts it by hand."""

    id: str
    provider: str
    offer_id: str | None
    reason: str
    detail: str
    row: PriceRow | None
    raw: Mapping[str, str] = field(default_factory=dict)
    recorded_revision: int = 1
    accepted_revision: int | None = None
    rejected: bool = False

    @property
    def holds(self) -> bool:
        """Whether the row is still held: nobody has accepted or rejected it."""
        return self.accepted_revision is None and not self.rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """What was seen of supply, apart from price: status and lead time."""

    offer_id: str
    observed_on: date
    status: str
    lead_time_days: int | None
    source: Source
