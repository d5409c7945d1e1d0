"""What changed between two revisions: offers that came or went, and price beliefs that moved."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from app.catalog.offers import Offer, PriceRow
from app.catalog.snapshot import Snapshot

# The parts of a snapshot that are compared by key, and those compared as a whole.
KEYED = ("accelerators", "models", "node_shapes", "servers", "storages", "own_cost", "reliability", "calibration")
LISTED = ("tariffs", "pue", "colocation", "egress", "street_prices", "taxes", "software", "switches", "reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceChange:
    """One price step that the two revisions believe differently; ``before`` or ``after`` None = not believed there."""

    offer_id: str
    provider: str
    instance_type: str
    region: str
    purchase_model: str
    currency: str
    valid_from: date
    valid_to: date | None
    before: Decimal | None
    after: Decimal | None
    relative: Decimal | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionDiff:
    """The difference between two revisions, as counts and lines."""

    older: str
    newer: str
    offers_added: tuple[str, ...]
    prices: tuple[PriceChange, ...]
    observed_again: int
    records: tuple[str, ...]
    fixings_added: tuple[date, ...]
    quarantined: tuple[str, ...]
    released: tuple[str, ...]


Step = tuple[str, str, str, date]


def _steps(snapshot: Snapshot) -> dict[Step, PriceRow]:
    return {
        (row.offer_id, row.source.id, row.kind, row.valid_from): row
        for rows in snapshot.prices.values()
        for row in rows
    }


def _change(offer: Offer, old: PriceRow | None, new: PriceRow | None) -> PriceChange:
    row = new or old
    if row is None:
        raise ValueError("a change has at least one side")
    relative = None
    if old is not None and new is not None and old.currency == new.currency and old.amount != new.amount:
        relative = ((new.amount / old.amount) - 1).quantize(Decimal("0.000001"))
    return PriceChange(
        offer_id=offer.id,
        provider=offer.provider,
        instance_type=offer.key.sku,
        region=offer.region,
        purchase_model=offer.purchase_model,
        currency=row.currency,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        before=None if old is None else old.amount,
        after=None if new is None else new.amount,
        relative=relative,
        source=row.source.citation,
    )


def diff_snapshots(older: Snapshot, newer: Snapshot) -> RevisionDiff:
    """Compare two revisions, in either order of publishing."""
    before, after = _steps(older), _steps(newer)
    changes: list[PriceChange] = []
    seen_again = 0
    for step in sorted(before.keys() | after.keys()):
        old, new = before.get(step), after.get(step)
        if old is not None and new is not None:
            same = (old.amount, old.currency, old.valid_to) == (new.amount, new.currency, new.valid_to)
            seen_again += same and old.observed_on != new.observed_on
            if same:
                continue
        offer = newer.offers.get(step[0]) or older.offers[step[0]]
        changes.append(_change(offer, old, new))
    held_before = {entry.id for entry in older.quarantine if entry.holds}
    held_after = {entry.id for entry in newer.quarantine if entry.holds}
    fixed = {day.fixed_on for day in older.fx.fixings}
    return RevisionDiff(
        older=older.revision_id,
        newer=newer.revision_id,
        offers_added=tuple(sorted(newer.offers.keys() - older.offers.keys())),
        prices=tuple(changes),
        observed_again=seen_again,
        records=_changed_records(older, newer),
        fixings_added=tuple(day.fixed_on for day in newer.fx.fixings if day.fixed_on not in fixed),
        quarantined=tuple(sorted(held_after - held_before)),
        released=tuple(sorted(held_before - held_after)),
    )


def _changed_records(older: Snapshot, newer: Snapshot) -> tuple[str, ...]:
    found: list[str] = []
    for name in KEYED:
        old, new = getattr(older, name), getattr(newer, name)
        found.extend(f"{name}/{key}" for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))
    found.extend(name for name in LISTED if getattr(older, name) != getattr(newer, name))
    return tuple(found)
