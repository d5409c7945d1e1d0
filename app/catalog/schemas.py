"""What the catalog says over HTTP. Amounts are decimal strings beside their currency; a missing price has no amount."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from app.catalog.citations import address_of
from app.catalog.offers import Availability, Offer, PriceRow
from app.catalog.repository import RevisionInfo
from app.catalog.resolve import Resolution, per_accelerator
from app.foundation.dates import DateText
from app.foundation.numbers import Count

Item = TypeVar("Item")


def plain(amount: Decimal) -> str:
    """Write an amount without exponent or trailing zeros."""
    text = format(amount, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


class Page(BaseModel, Generic[Item]):
    """One page of a list, with the revision it was read from."""

    items: list[Item]
    next_cursor: str | None
    catalog_revision: str
    catalog_revision_number: int


class Amount(BaseModel):
    """An amount of money."""

    amount: str
    currency: str


class SourceView(BaseModel):
    """Where a figure was read."""

    citation: str
    method: str
    licence: str | None
    url: str | None = Field(description="Where a reader can look; none where the citation names no address.")


class PriceView(BaseModel):
    """One dated price row."""

    id: str
    amount: str
    currency: str
    price_unit: str
    valid_from: date
    valid_to: date | None
    observed_at: date | None
    recorded_revision: int
    kind: str
    confidence: str
    note: str | None
    source: SourceView


class LosingPrice(BaseModel):
    """A row that did not win, and why."""

    price: PriceView
    reason: str


class ResolutionView(BaseModel):
    """The price on a day with how it was chosen, or the reason there is none."""

    outcome: Literal["priced", "not_offered", "unknown_price", "quarantined", "ambiguous", "observation_gap"]
    message: str
    as_of: date
    unit_price: Amount | None = Field(description="Per sold unit and price_unit.")
    accelerator_price: Amount | None = Field(description="Per accelerator and price_unit.")
    price_unit: str | None
    rule: str | None
    stale: bool
    age_days: int | None
    max_age_days: int | None
    winner: PriceView | None
    before: PriceView | None
    after: PriceView | None
    lost: list[LosingPrice]


class AvailabilityBody(BaseModel):
    """What was seen of an offer's supply."""

    model_config = ConfigDict(extra="forbid")

    observed_on: DateText
    status: Literal["available", "limited", "waitlist", "unavailable"]
    lead_time_days: Count | None = Field(default=None, ge=0, le=1_500)
    source: str = Field(min_length=3, max_length=500)


class AvailabilityView(BaseModel):
    """One observation of supply."""

    observed_on: date
    status: str
    lead_time_days: int | None
    source: str


class OfferView(BaseModel):
    """An offer with its resolved price."""

    id: str
    provider: str
    instance_type: str
    accelerator: str | None
    accelerator_label: str
    accelerator_count: int
    region: str
    purchase_model: str
    product: str
    term_months: int
    payment_option: str
    tier: str
    tenancy: str
    os: str
    scope: str
    sold_unit: str
    min_quantity: int
    quantity_step: int
    vcpus: int | None
    memory_gib: str | None
    node_shape: str | None
    indicative: bool
    automatic: bool
    excluded_reason: str | None
    notes: str | None
    price: ResolutionView
    availability: AvailabilityView | None = Field(description="The last observation of supply on or before the day.")


class PriceDetail(BaseModel):
    """A dated row by its own address, with the offer it prices: what stands behind a figure of a quote."""

    price: PriceView
    offer: OfferView
    links: dict[str, str]


class OfferPage(Page[OfferView]):
    """Offers; ``missing`` says why none matches one exact offer that was asked for."""

    as_of: date
    missing: dict[str, str] | None = None


class RevisionView(BaseModel):
    """A published revision of the catalog."""

    number: int
    id: str
    content_sha256: str
    recorded_at: datetime
    reason: str
    actor: str
    summary: dict[str, Any]


class RegionView(BaseModel):
    """A region of a provider, with what is offered there."""

    provider: str
    region: str
    offers: int
    accelerators: list[str]
    purchase_models: list[str]


class FxView(BaseModel):
    """An exchange rate as applied."""

    base: str
    quote: str
    rate: str
    requested_on: date
    rate_on: date
    age_days: int
    stale: bool
    via: str | None
    source: str


class QuarantineView(BaseModel):
    """A row held back by a check."""

    id: str
    provider: str
    offer_id: str | None
    reason: str
    detail: str
    price: PriceView | None
    raw: dict[str, str]
    recorded_revision: int
    status: Literal["held", "accepted", "rejected"]


class DecisionBody(BaseModel):
    """Why a held row is accepted or rejected."""

    model_config = ConfigDict(extra="forbid")

    reason: str = Field(min_length=3, max_length=2_000)


def price_view(row: PriceRow) -> PriceView:
    """Show a price row."""
    return PriceView(
        id=row.id,
        amount=plain(row.amount),
        currency=row.currency,
        price_unit=row.price_unit,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        observed_at=row.observed_on,
        recorded_revision=row.recorded_revision,
        kind=row.kind,
        confidence=row.confidence,
        note=row.note,
        source=SourceView(
            citation=row.source.citation,
            method=row.source.method,
            licence=row.source.licence,
            url=address_of(row.source.citation),
        ),
    )


def resolution_view(resolution: Resolution, offer: Offer) -> ResolutionView:
    """Show how a price was chosen."""
    row = resolution.row
    return ResolutionView(
        outcome=resolution.outcome.value,
        message=resolution.message,
        as_of=resolution.as_of,
        unit_price=None if row is None else Amount(amount=plain(row.amount), currency=row.currency),
        accelerator_price=None
        if row is None
        else Amount(amount=plain(per_accelerator(row.amount, offer)), currency=row.currency),
        price_unit=None if row is None else row.price_unit,
        rule=resolution.rule,
        stale=resolution.stale,
        age_days=resolution.age_days,
        max_age_days=resolution.max_age_days,
        winner=None if row is None else price_view(row),
        before=None if resolution.before is None else price_view(resolution.before),
        after=None if resolution.after is None else price_view(resolution.after),
        lost=[LosingPrice(price=price_view(lost.row), reason=lost.reason) for lost in resolution.lost],
    )


def offer_view(offer: Offer, resolution: Resolution, seen: Sequence[Availability] = ()) -> OfferView:
    """Show an offer."""
    key = offer.key
    past = [found for found in seen if found.observed_on <= resolution.as_of]
    return OfferView(
        id=offer.id,
        provider=key.provider,
        instance_type=key.sku,
        accelerator=offer.accelerator_id,
        accelerator_label=key.accelerator_label,
        accelerator_count=offer.accelerator_count,
        region=key.region,
        purchase_model=key.purchase_model,
        product=key.product,
        term_months=key.term_months,
        payment_option=key.payment_option,
        tier=key.tier,
        tenancy=key.tenancy,
        os=key.os,
        scope=offer.scope,
        sold_unit=offer.sold_unit,
        min_quantity=offer.min_quantity,
        quantity_step=offer.quantity_step,
        vcpus=offer.vcpus,
        memory_gib=None if offer.memory_gib is None else plain(offer.memory_gib),
        node_shape=offer.node_shape_id,
        indicative=offer.indicative,
        automatic=offer.automatic,
        excluded_reason=offer.excluded_reason,
        notes=offer.notes,
        price=resolution_view(resolution, offer),
        availability=None
        if not past
        else AvailabilityView(
            observed_on=past[-1].observed_on,
            status=past[-1].status,
            lead_time_days=past[-1].lead_time_days,
            source=past[-1].source.citation,
        ),
    )


def revision_view(info: RevisionInfo) -> RevisionView:
    """Show a revision."""
    return RevisionView(
        number=info.number,
        id=info.id,
        content_sha256=info.content_sha256,
        recorded_at=info.recorded_at,
        reason=info.reason,
        actor=info.actor,
        summary=dict(info.summary),
    )
