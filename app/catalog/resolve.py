"""Price resolution that explains itself: which row holds on a day, which lost and why, or why there is no price.

The rule (catalog design 4): contracted beats list; among list prices a vendor's API beats a verbatim copy, a verbatim
copy beats a hand-entered one, that beats a tracker; market statistics, generated figures and estimates come last.
Within one rank the newest observation wins. Nothing is ever taken from another purchase model, and nothing is
interpolated between two observations.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, localcontext
from enum import StrEnum

from app.catalog.offers import Offer, PriceRow
from app.catalog.snapshot import Snapshot

# Money scale of a unit price (API contract 2.4: unit prices carry up to 12 decimals).
UNIT_PRICE_STEP = Decimal("0.000000000001")
_CONFIDENCE_ORDER = {"high": 0, "medium": 1, "low": 2}
_LIST_ORDER = {"api": 1, "verbatim": 2, "manual": 3, "tracker": 4, "generated": 6}


class Outcome(StrEnum):
    """The one vocabulary of price outcomes."""

    PRICED = "priced"
    NOT_OFFERED = "not_offered"
    UNKNOWN_PRICE = "unknown_price"
    QUARANTINED = "quarantined"
    AMBIGUOUS = "ambiguous"
    OBSERVATION_GAP = "observation_gap"


@dataclass(frozen=True, slots=True, kw_only=True)
class LosingRow:
    """A row that was looked at and not used, with the reason as a stable code."""

    row: PriceRow
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """The answer for one offer on one day.

    Parameters
    ----------
    row : PriceRow or None
        The winner; None unless ``outcome`` is ``priced``.
    rule : str or None
        Which step of the selection rule decided (``contracted``, ``list_api``, ``list_verbatim`` ...).
    age_days : int or None [day]
        From the last observation to ``as_of``; None = unknown, which counts as stale.
    before, after : PriceRow or None
        The neighbours of an ``observation_gap``.
    """

    offer_id: str
    as_of: date
    outcome: Outcome
    message: str
    row: PriceRow | None = None
    rule: str | None = None
    age_days: int | None = None
    max_age_days: int | None = None
    stale: bool = False
    before: PriceRow | None = None
    after: PriceRow | None = None
    lost: tuple[LosingRow, ...] = ()

    @property
    def amount(self) -> Decimal | None:
        """Price per sold unit and price unit; None when there is none, never zero."""
        return None if self.row is None else self.row.amount


def rank(row: PriceRow) -> tuple[int, str]:
    """Place a row in the selection order; lower wins."""
    if row.kind == "contracted":
        return 0, "contracted"
    if row.kind == "estimate":
        return 7, "estimate"
    if row.kind == "marketplace_stat":
        return 5, "marketplace_stat"
    return _LIST_ORDER[row.method], f"list_{row.method}"


def per_accelerator(amount: Decimal, offer: Offer) -> Decimal:
    """Split a sold unit's price over its accelerators, at the scale of a unit price."""
    with localcontext() as context:
        context.prec = 40
        return (amount / offer.accelerator_count).quantize(UNIT_PRICE_STEP)


def _freshness(row: PriceRow, as_of: date) -> tuple[int, int]:
    """Sort key: newest observation not after ``as_of`` first, then confidence."""
    seen = row.observed_on
    newest = -min(seen, as_of).toordinal() if seen is not None else 0
    return newest, _CONFIDENCE_ORDER.get(row.confidence, 3)


def _age_days(row: PriceRow, as_of: date) -> int | None:
    if row.observed_on is None:
        return None
    return max(0, (as_of - row.observed_on).days)


def _next_step(winner: PriceRow, rivals: Iterable[PriceRow], as_of: date) -> PriceRow | None:
    """Find the first later observation of a different price, when ``as_of`` is past the winner's own observations."""
    if winner.valid_to is not None or winner.observed_on is None or winner.observed_on >= as_of:
        return None
    later = [row for row in rivals if row.observed_on is not None and row.valid_from > as_of]
    if not later:
        return None
    step = min(later, key=lambda row: (row.valid_from, row.id))
    return step if (step.amount, step.currency) != (winner.amount, winner.currency) else None


def _without_cover(snapshot: Snapshot, offer: Offer, rows: tuple[PriceRow, ...], as_of: date) -> Resolution:
    """Say why no row holds on ``as_of``: quarantined, between two observations, before the first, or none at all."""
    held = [entry for entry in snapshot.quarantined_of(offer.id) if entry.row is None or entry.row.valid_from <= as_of]
    earlier = [row for row in rows if row.valid_to is not None and row.valid_to <= as_of]
    later = [row for row in rows if row.valid_from > as_of]
    before = max(earlier, key=lambda row: (row.valid_to or as_of, row.id), default=None)
    after = min(later, key=lambda row: (row.valid_from, row.id), default=None)
    if held:
        return Resolution(
            offer_id=offer.id,
            as_of=as_of,
            outcome=Outcome.QUARANTINED,
            message=f"the price is held back by a check: {held[0].reason} ({held[0].detail})",
            before=before,
            after=after,
        )
    if before is not None and after is not None:
        return _gap(offer, before, after, as_of, ())
    if before is not None:
        message = f"the last known price ended on {before.valid_to}; nothing newer has been observed"
    elif after is not None:
        message = f"the first observation of this price is of {after.valid_from}; earlier prices are not known"
    else:
        message = "the offer is known but no price has been observed for it"
    return Resolution(
        offer_id=offer.id, as_of=as_of, outcome=Outcome.UNKNOWN_PRICE, message=message, before=before, after=after
    )


def _gap(offer: Offer, before: PriceRow, after: PriceRow, as_of: date, lost: tuple[LosingRow, ...]) -> Resolution:
    return Resolution(
        offer_id=offer.id,
        as_of=as_of,
        outcome=Outcome.OBSERVATION_GAP,
        message=(
            f"between the observation of {before.observed_on} ({before.amount} {before.currency}) and that of "
            f"{after.valid_from} ({after.amount} {after.currency}) the day of the change is not known; "
            "nothing is interpolated"
        ),
        before=before,
        after=after,
        lost=lost,
    )


def _lost(rows: Iterable[PriceRow], winner: PriceRow, as_of: date) -> tuple[LosingRow, ...]:
    losers = []
    for row in rows:
        if row is winner:
            continue
        if not row.covers(as_of):
            reason = "starts_later" if row.valid_from > as_of else "ended_before"
        elif rank(row)[0] > rank(winner)[0]:
            reason = f"lower_rank:{rank(row)[1]}"
        elif _freshness(row, as_of) > _freshness(winner, as_of):
            reason = "older_observation" if row.observed_on != winner.observed_on else "lower_confidence"
        else:
            reason = "same_price"
        losers.append(LosingRow(row=row, reason=reason))
    return tuple(losers)


def resolve_price(snapshot: Snapshot, offer: Offer, as_of: date) -> Resolution:
    """Find the price of an offer on a day, or the reason there is none.

    Parameters
    ----------
    as_of : date
        The day whose price is asked for; what the catalog believed is the snapshot's revision.
    """
    rows = snapshot.prices_of(offer.id)
    standing = [row for row in rows if row.covers(as_of)]
    if not standing:
        return _without_cover(snapshot, offer, rows, as_of)
    best = min(rank(row)[0] for row in standing)
    ranked = sorted(
        (row for row in standing if rank(row)[0] == best),
        key=lambda row: (*_freshness(row, as_of), -row.recorded_revision, row.id),
    )
    winner = ranked[0]
    lost = _lost(rows, winner, as_of)
    ties = [row for row in ranked if _freshness(row, as_of) == _freshness(winner, as_of)]
    if len({(row.amount, row.currency, row.price_unit) for row in ties}) > 1:
        return Resolution(
            offer_id=offer.id,
            as_of=as_of,
            outcome=Outcome.AMBIGUOUS,
            message="equally good sources of the same day state different prices: "
            + ", ".join(f"{row.amount} {row.currency} ({row.source.citation})" for row in ties),
            lost=tuple(LosingRow(row=row, reason="tie") for row in ties),
        )
    step = _next_step(winner, (row for row in rows if rank(row)[0] == best), as_of)
    if step is not None:
        return _gap(offer, winner, step, as_of, lost)
    return _priced(offer, winner, as_of, lost)


def _priced(offer: Offer, winner: PriceRow, as_of: date, lost: tuple[LosingRow, ...]) -> Resolution:
    age = _age_days(winner, as_of)
    limit = offer.max_age_days
    stale = age is None or age > limit
    seen = "on an unknown day" if age is None else f"on {winner.observed_on}"
    message = f"{winner.amount} {winner.currency} per {offer.sold_unit} and {winner.price_unit}, observed {seen}"
    return Resolution(
        offer_id=offer.id,
        as_of=as_of,
        outcome=Outcome.PRICED,
        message=message + ("; older than its limit, confirm before signing" if stale else ""),
        row=winner,
        rule=rank(winner)[1],
        age_days=age,
        max_age_days=limit,
        stale=stale,
        lost=lost,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingOffer:
    """Why no offer matches what was asked for."""

    outcome: Outcome
    message: str


def explain_missing(
    snapshot: Snapshot,
    provider: str,
    instance_type: str,
    region: str,
    purchase_model: str,
    *,
    term_months: int | None = None,
) -> MissingOffer:
    """Separate "not sold there" from "price not known" when no offer matches (infracost#3359)."""
    provider = snapshot.provider_id(provider)
    known = snapshot.offers_of_sku(provider, instance_type)
    regions = sorted(
        {
            offer.region
            for offer in known
            if offer.purchase_model == purchase_model and term_months in (None, offer.key.term_months)
        }
    )
    if regions:
        message = f"{provider} sells {instance_type} ({purchase_model}) in {', '.join(regions)}, not in {region}"
        return MissingOffer(outcome=Outcome.NOT_OFFERED, message=message)
    if known:
        models = sorted({offer.purchase_model for offer in known})
        message = (
            f"no {purchase_model} price of {instance_type} has been observed; known: {', '.join(models)}. "
            "Prices of another purchase model are not used instead"
        )
        return MissingOffer(outcome=Outcome.UNKNOWN_PRICE, message=message)
    return MissingOffer(
        outcome=Outcome.UNKNOWN_PRICE, message=f"the catalog holds no offer {instance_type!r} of provider {provider!r}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRange:
    """Between which amounts a price was seen; one observation is a range of one point, which says little.

    Parameters
    ----------
    low, high : Decimal
        Per sold unit and price unit of the newest observation, in its currency.
    """

    low: Decimal
    high: Decimal
    currency: str
    observations: int
    first_on: date
    last_on: date


def observed_range(snapshot: Snapshot, offer: Offer, as_of: date) -> ObservedRange | None:
    """Find the range of an offer's own price up to a day: spot and market prices move, so one figure is not the price.

    Rows that a check holds back are not in it, nor those of another currency or unit than the newest.
    """
    rows = [row for row in snapshot.prices_of(offer.id) if row.valid_from <= as_of]
    if not rows:
        return None
    newest = max(rows, key=lambda row: (row.observed_on or row.valid_from, row.id))
    same = [row for row in rows if (row.currency, row.price_unit) == (newest.currency, newest.price_unit)]
    return ObservedRange(
        low=min(row.amount for row in same),
        high=max(row.amount for row in same),
        currency=newest.currency,
        observations=len(same),
        first_on=min(row.valid_from for row in same),
        last_on=max(row.observed_on or row.valid_from for row in same),
    )
