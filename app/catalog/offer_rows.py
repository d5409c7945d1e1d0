"""Offers and prices of a revision as the database driver gave them, made into frozen values when first asked for.

A catalog of 50,000 offers is read at once, but a request looks at a few of them: making every offer and price on
loading took four fifths of its time. A value once made is kept, so all requests share it.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

from app.catalog.offers import Offer, OfferKey, PriceRow, Source
from app.foundation.columns import plain_decimal

V = TypeVar("V")
DriverRow = tuple[Any, ...]

# Places of the columns that the indexes need, in the order of ``repository.OFFER_COLUMNS``.
ID, PROVIDER, SKU, REGION, ACCELERATOR_ID = 0, 1, 2, 4, 14


class MadeWhenAsked(Mapping[str, V], Generic[V]):
    """A read-only mapping whose values are made from their rows on first use."""

    __slots__ = ("_made", "_make", "_rows")

    def __init__(self, rows: Mapping[str, Any], make: Callable[[Any], V]) -> None:
        self._rows = rows
        self._make = make
        self._made: dict[str, V] = {}

    def __getitem__(self, key: str) -> V:
        found = self._made.get(key)
        if found is None:
            # Two threads may make one value at once; the first to store it wins and both get that one.
            found = self._made.setdefault(key, self._make(self._rows[key]))
        return found

    def __contains__(self, key: object) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


class OfferRows(MadeWhenAsked[Offer]):
    """The offers of a revision in id order, with the indexes a snapshot keeps, read off the rows."""

    __slots__ = ("by_accelerator", "by_sku")

    def __init__(self, rows: Iterable[DriverRow]) -> None:
        ordered = {row[ID]: row for row in sorted(rows, key=lambda row: row[ID])}
        super().__init__(ordered, offer_of)
        self.by_accelerator: dict[str, list[str]] = defaultdict(list)
        self.by_sku: dict[tuple[str, str], list[str]] = defaultdict(list)
        for offer_id, row in ordered.items():
            self.by_sku[row[PROVIDER], row[SKU]].append(offer_id)
            if row[ACCELERATOR_ID] is not None:
                self.by_accelerator[row[ACCELERATOR_ID]].append(offer_id)

    def regions(self, priced: Container[str]) -> frozenset[str]:
        """Regions of the offers that have a price, read off the rows."""
        return frozenset(row[REGION] for offer_id, row in self._rows.items() if offer_id in priced)


def price_rows(
    rows: Iterable[DriverRow], sources: Mapping[str, Source], recorded_at: Mapping[int, datetime]
) -> MadeWhenAsked[tuple[PriceRow, ...]]:
    """Group price beliefs by offer; each offer keeps the latest belief about each of its steps, oldest start first."""
    by_offer: dict[str, list[DriverRow]] = {}
    for row in rows:
        known = by_offer.get(row[1])
        if known is None:
            by_offer[row[1]] = [row]
        else:
            known.append(row)
    return MadeWhenAsked(by_offer, lambda beliefs: _steps(beliefs, sources, recorded_at))


def _steps(
    beliefs: list[DriverRow], sources: Mapping[str, Source], recorded_at: Mapping[int, datetime]
) -> tuple[PriceRow, ...]:
    made = sorted((price_of(row, sources, recorded_at) for row in beliefs), key=lambda price: price.recorded_revision)
    latest = {(price.source.id, price.kind, price.valid_from): price for price in made}
    return tuple(sorted(latest.values(), key=lambda price: (price.valid_from, price.id)))


def offer_of(row: DriverRow) -> Offer:
    """Make an offer of a row with ``repository.OFFER_COLUMNS``."""
    offer_id, provider, sku, label, region, model, product, months, payment, tier, tenancy, os, *rest = row
    scope, unit, accelerator, count, vcpus, memory, shape, least, step, indicative, excluded, notes = rest
    return Offer(
        id=offer_id,
        key=OfferKey(
            provider=provider,
            sku=sku,
            accelerator_label=label,
            region=region,
            purchase_model=model,
            product=product,
            term_months=months,
            payment_option=payment,
            tier=tier,
            tenancy=tenancy,
            os=os,
        ),
        scope=scope,
        sold_unit=unit,
        accelerator_id=accelerator,
        accelerator_count=count,
        vcpus=vcpus,
        memory_gib=None if memory is None else _decimal(memory),
        node_shape_id=shape,
        min_quantity=least,
        quantity_step=step,
        indicative=bool(indicative),
        excluded_reason=excluded,
        notes=notes,
    )


def price_of(row: DriverRow, sources: Mapping[str, Source], recorded_at: Mapping[int, datetime]) -> PriceRow:
    """Make a price of a row with ``repository.PRICE_COLUMNS``."""
    price_id, offer_id, source_id, kind, amount, currency, unit, start, end, seen, revision, confidence, note = row
    first = _day(start)
    assert first is not None
    return PriceRow(
        id=price_id,
        offer_id=offer_id,
        amount=_decimal(amount),
        currency=currency,
        price_unit=unit,
        valid_from=first,
        valid_to=_day(end),
        observed_on=_day(seen),
        recorded_at=recorded_at[revision],
        recorded_revision=revision,
        source=sources[source_id],
        kind=kind,
        confidence=confidence,
        note=note,
    )


def _decimal(value: Decimal | str) -> Decimal:
    """An exact decimal as SQLite (text) or PostgreSQL (with trailing zeros) gives it."""
    return Decimal(plain_decimal(Decimal(value)))


def _day(value: date | str | None) -> date | None:
    return date.fromisoformat(value) if isinstance(value, str) else value
