"""What a sold unit costs per hour under an offer, and for how long one has to pay it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache

from app.catalog.citations import address_of
from app.catalog.offers import Offer, PriceRow
from app.catalog.pricebooks import PriceBook, contracted_price
from app.catalog.resolve import ObservedRange, Outcome, Resolution, observed_range, resolve_price
from app.catalog.snapshot import Snapshot
from app.estimates.schemas import PurchaseModel
from app.pricing.money import CONTEXT, Money
from app.pricing.outcome import PriceOutcome, Unpriced
from app.pricing.ownership import HOURS_PER_MONTH
from app.pricing.waterfall import PriceBookRule

HOURS_PER_YEAR = Decimal(8760)
_CACHED_DAYS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class HourlyPrice:
    """A resolved price per sold unit and hour.

    Parameters
    ----------
    listed : Money
        List price in its own currency; where only a contracted price is known, that one (``row`` None: from a book).
    contracted : PriceBookRule or None
        The contracted price that beats the list.
    period_hours : Decimal or None
        Hours that are paid whether used or not (a reserved term, a monthly or yearly price); None = by the hour.
    seen : ObservedRange or None
        For a price that moves (spot, marketplace): between what it was seen, and how often.
    """

    offer: Offer
    resolution: Resolution
    row: PriceRow | None
    listed: Money
    contracted: PriceBookRule | None
    period_hours: Decimal | None
    seen: ObservedRange | None = None

    @property
    def net(self) -> Money:
        """What is paid before the seller's own discounts and markup."""
        rule = self.contracted
        return rule.unit_price if rule is not None and rule.unit_price is not None else self.listed

    @property
    def currencies(self) -> tuple[str, ...]:
        """Currencies that must convert into the terms' own."""
        return tuple(sorted({self.listed.currency, self.net.currency}))

    def evidence(self) -> dict[str, object]:
        """The dated row behind the figure, for a line."""
        offer, resolution, row = self.offer, self.resolution, self.row
        shown: dict[str, object] = {
            "offer_id": offer.id,
            "rule": self.contracted.source if self.contracted else resolution.rule,
            "sold_unit": offer.sold_unit,
            "accelerators_per_sold_unit": offer.accelerator_count,
        }
        if row is None:
            return {**shown, "price_id": None, "stale": False, "source": shown["rule"]}
        return {
            **shown,
            "price_id": row.id,
            "price_url": f"/v1/catalog/prices/{row.id}",
            "kind": row.kind,
            "native_price": Money.unit(row.amount, row.currency).as_json(),
            "price_unit": row.price_unit,
            "valid_from": row.valid_from.isoformat(),
            "observed_on": row.observed_on.isoformat() if row.observed_on else None,
            "age_days": resolution.age_days,
            "max_age_days": resolution.max_age_days,
            # a contract holds whatever the age of the list price beside it
            "stale": resolution.stale and self.contracted is None,
            "source": row.source.citation,
            "source_url": address_of(row.source.citation),
            "confidence": row.confidence,
            **self._seen_between(),
            "lost": [{"price_id": x.row.id, "reason": x.reason} for x in resolution.lost[:5]],
        }

    def _seen_between(self) -> dict[str, object]:
        """The range of a price that moves, with how often it was seen; steady prices have none."""
        seen = self.seen
        if seen is None:
            return {}
        ends = {
            name: Money.unit(end, seen.currency).as_json() for name, end in (("low", seen.low), ("high", seen.high))
        }
        days = {"first_on": seen.first_on.isoformat(), "last_on": seen.last_on.isoformat()}
        return {"observed_range": {**ends, "observations": seen.observations, **days}}


# Purchase models whose price moves by the day or the hour: one reading of it is not the price.
MOVING = ("spot", "marketplace")
PriceAnswer = HourlyPrice | Unpriced

_UNPRICED: Mapping[Outcome, PriceOutcome] = {
    Outcome.PRICED: "unknown_price",
    Outcome.NOT_OFFERED: "not_offered",
    Outcome.UNKNOWN_PRICE: "unknown_price",
    Outcome.QUARANTINED: "quarantined",
    Outcome.AMBIGUOUS: "ambiguous",
    Outcome.OBSERVATION_GAP: "observation_gap",
}


@lru_cache(maxsize=_CACHED_DAYS)
def _cache_of(revision_id: str, content_sha256: str, as_of: date) -> dict[str, PriceAnswer]:  # noqa: ARG001
    """One table per catalog revision and day; resolutions are pure functions of both."""
    return {}


def hourly_price(snapshot: Snapshot, offer: Offer, as_of: date) -> PriceAnswer:
    """Price of an offer per sold unit and hour, or why there is none; remembered per revision and day."""
    known = _cache_of(snapshot.revision_id, snapshot.content_sha256, as_of)
    answer = known.get(offer.id)
    if answer is None:
        answer = known[offer.id] = _resolve(snapshot, offer, as_of)
    return answer


def booked(answer: PriceAnswer, snapshot: Snapshot, offer: Offer, book: PriceBook | None, as_of: date) -> PriceAnswer:
    """The answer with a price book applied: a fixed contract stands even where no list price is known."""
    if book is None:
        return answer
    listed = answer.listed if isinstance(answer, HourlyPrice) else None
    amount, currency = (listed.amount, listed.currency) if listed else (None, None)
    found = contracted_price([book], offer, amount, currency, as_of)
    if found is None:
        return answer
    source = found.source if found.rule.contract is None else f"{found.source} ({found.rule.contract})"
    contracted = Money.unit(found.contracted_unit_price, found.currency)
    rule = PriceBookRule(source=source, unit_price=contracted)
    if isinstance(answer, HourlyPrice):
        return replace(answer, contracted=rule)
    months = Decimal(offer.key.term_months)
    return HourlyPrice(
        offer=offer,
        resolution=resolve_price(snapshot, offer, as_of),
        row=None,
        listed=contracted,
        contracted=rule,
        period_hours=months * HOURS_PER_MONTH if months else None,
    )


def _resolve(snapshot: Snapshot, offer: Offer, as_of: date) -> PriceAnswer:
    resolution = resolve_price(snapshot, offer, as_of)
    row = resolution.row
    if row is None:
        return Unpriced(outcome=_UNPRICED[resolution.outcome], reason=resolution.message)
    per_hour = _per_hour(row, offer)
    if per_hour is None:
        return Unpriced(outcome="unknown_price", reason=f"a price per {row.price_unit} is not a price of machine time")
    hours, period = per_hour
    net = Money.unit(CONTEXT.divide(row.amount, hours), row.currency)
    listed, contracted = net, None
    if row.kind == "contracted":
        contracted = PriceBookRule(source=f"contracted: {row.source.citation}", unit_price=net)
        listed = _list_beside(resolution, offer, row) or net
    return HourlyPrice(
        offer=offer,
        resolution=resolution,
        row=row,
        listed=listed,
        contracted=contracted,
        period_hours=period,
        seen=observed_range(snapshot, offer, as_of) if offer.purchase_model in MOVING else None,
    )


def _list_beside(resolution: Resolution, offer: Offer, winner: PriceRow) -> Money | None:
    for loser in resolution.lost:
        row = loser.row
        if row.kind == "list" and row.currency == winner.currency and loser.reason.startswith("lower_rank"):
            per_hour = _per_hour(row, offer)
            if per_hour is not None:
                return Money.unit(CONTEXT.divide(row.amount, per_hour[0]), row.currency)
    return None


def _per_hour(row: PriceRow, offer: Offer) -> tuple[Decimal, Decimal | None] | None:
    """Hours the amount pays for, and the period that is paid as a whole."""
    term = Decimal(offer.key.term_months)
    committed = term * HOURS_PER_MONTH if term else None
    if row.price_unit == "hour":
        return Decimal(1), committed
    if row.price_unit == "month":
        return HOURS_PER_MONTH, committed or HOURS_PER_MONTH
    if row.price_unit == "year":
        return HOURS_PER_YEAR, committed or HOURS_PER_YEAR
    if row.price_unit == "upfront" and committed:
        return committed, committed
    return None


def paid_hours(price: HourlyPrice, hours: Decimal, bought: PurchaseModel | None) -> Decimal:
    """Hours billed for a job of ``hours``: whole periods where the offer is a commitment billed for its term."""
    period = price.period_hours
    if period is None or (bought is not None and bought.bill == "hours"):
        return hours
    # decimals divide towards zero, so that a period begun is counted by its remainder
    whole, rest = divmod(hours, period)
    return period * max(1, int(whole) + (rest > 0))


def sold_units(offer: Offer, accelerators: int) -> tuple[Decimal, int]:
    """Sold units that hold so many accelerators: exactly, and as they are sold (minimum quantity and step)."""
    return _sold_units(accelerators, offer.accelerator_count, offer.min_quantity, offer.quantity_step)


@lru_cache(maxsize=4096)
def _sold_units(accelerators: int, each: int, minimum: int, step: int) -> tuple[Decimal, int]:
    exact = CONTEXT.divide(Decimal(accelerators), Decimal(each))
    whole = -(-accelerators // each)
    return exact, max(minimum, -(-whole // step) * step)


def unit_name(offer: Offer) -> str:
    """Unit of a line that bills sold units by the hour."""
    return f"{offer.sold_unit}_hour"


def rounding_text(price: HourlyPrice, sold: int) -> str:
    """Why more is billed than the plan needs."""
    offer = price.offer
    return (
        f"Rounding to {sold} {offer.sold_unit}(s) of {offer.accelerator_count} accelerators "
        f"(minimum {offer.min_quantity}, step {offer.quantity_step})"
    )


def offer_json(offer: Offer | None) -> Mapping[str, object]:
    """How an option names what it buys."""
    if offer is None:
        return {"id": None, "provider": None, "purchase_model": "owned"}
    key = offer.key
    return {
        "id": offer.id,
        "provider": key.provider,
        "instance_type": key.sku,
        "region": key.region,
        "purchase_model": key.purchase_model,
        "product": key.product,
        "term_months": key.term_months or None,
        "payment": key.payment_option,
        "tier": key.tier,
        "sold_unit": offer.sold_unit,
        "accelerators_per_sold_unit": offer.accelerator_count,
        "min_quantity": offer.min_quantity,
        "quantity_step": offer.quantity_step,
        "indicative": offer.indicative,
    }
