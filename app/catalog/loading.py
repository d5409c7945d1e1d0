"""A revision's rows assembled into one frozen snapshot."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, Row

from app.catalog import repository, tables
from app.catalog.codec import decode
from app.catalog.collector import without_collector
from app.catalog.imports.staged import StagedPrice
from app.catalog.offer_rows import OfferRows, price_rows
from app.catalog.offers import Availability, PriceRow, QuarantinedRow, Source
from app.catalog.repository import RevisionInfo
from app.catalog.snapshot import (
    AcceleratorEntry,
    ColocationRate,
    EgressTier,
    ElectricityTariff,
    FxFixing,
    FxTable,
    ModelEntry,
    NetworkSwitch,
    NodeShape,
    OwnCostReference,
    PriceRange,
    PueFact,
    ReferenceFact,
    Server,
    Snapshot,
    SoftwareMinimum,
    StorageSystem,
    TaxRule,
)

RECORD_TYPES: Mapping[str, type] = {
    "accelerator": AcceleratorEntry,
    "model": ModelEntry,
    "node_shape": NodeShape,
    "server": Server,
    "switch": NetworkSwitch,
    "storage": StorageSystem,
    "tariff": ElectricityTariff,
    "pue": PueFact,
    "colocation": ColocationRate,
    "egress": EgressTier,
    "street_price": PriceRange,
    "own_cost": OwnCostReference,
    "tax_rule": TaxRule,
    "software": SoftwareMinimum,
    "reliability": ReferenceFact,
    "reference": ReferenceFact,
}


def load_snapshot(connection: Connection, revision: RevisionInfo) -> Snapshot:
    """Read everything a revision believed."""
    with without_collector():
        return _load(connection, revision)


def _load(connection: Connection, revision: RevisionInfo) -> Snapshot:
    number = revision.number
    records: dict[str, dict[str, Any]] = defaultdict(dict)
    plain: dict[str, dict[str, Any]] = defaultdict(dict)
    for (kind, key), payload in sorted(repository.latest_records(connection, number).items()):
        if kind in RECORD_TYPES:
            records[kind][key] = decode(RECORD_TYPES[kind], payload)
        else:
            plain[kind][key] = payload
    sources = sources_until(connection, number)
    documents = plain["document"]
    return Snapshot(
        number=number,
        revision_id=revision.id,
        content_sha256=revision.content_sha256,
        recorded_at=revision.recorded_at,
        accelerators=records["accelerator"],
        models=records["model"],
        node_shapes=records["node_shape"],
        servers=records["server"],
        switches=tuple(records["switch"].values()),
        storages=records["storage"],
        offers=OfferRows(repository.offers_until(connection, number)),
        prices=price_rows(repository.prices_until(connection, number), sources, repository.recorded_at(connection)),
        quarantine=_quarantine(connection, number),
        fx=_fx(connection, number),
        tariffs=tuple(records["tariff"].values()),
        pue=tuple(sorted(records["pue"].values(), key=lambda fact: -fact.year)),
        colocation=tuple(records["colocation"].values()),
        egress=tuple(records["egress"].values()),
        street_prices=tuple(records["street_price"].values()),
        own_cost=records["own_cost"],
        taxes=tuple(records["tax_rule"].values()),
        software=tuple(records["software"].values()),
        reliability=records["reliability"],
        reference=tuple(records["reference"].values()),
        availability=_availability(connection, number, sources),
        provider_aliases={
            alias.lower(): key for key, payload in plain["provider"].items() for alias in payload["aliases"]
        },
        providers=dict(plain["provider"]),
        accelerator_aliases={key: payload["accelerator_id"] for key, payload in plain["accelerator_alias"].items()},
        calibration={
            key.removeprefix("calibration/"): payload
            for key, payload in documents.items()
            if key.startswith("calibration/")
        },
        evidence={
            key.removeprefix("evidence/"): tuple(payload)
            for key, payload in documents.items()
            if key.startswith("evidence/")
        },
    )


def sources_until(connection: Connection, number: int) -> dict[str, Source]:
    """Read every source a revision knows, by id."""
    return {row.id: _source(row) for row in repository.rows_until(connection, tables.source, number)}


def _source(row: Row[Any]) -> Source:
    return Source(
        id=row.id, citation=row.citation, method=row.method, retrieved_on=row.retrieved_on, licence=row.licence
    )


def _quarantine(connection: Connection, number: int) -> tuple[QuarantinedRow, ...]:
    decided = {row.quarantine_id: row for row in repository.rows_until(connection, tables.quarantine_decision, number)}
    found = []
    for row in repository.rows_until(connection, tables.quarantine, number):
        decision = decided.get(row.id)
        staged = None if row.staged is None else decode(StagedPrice, row.staged)
        found.append(
            QuarantinedRow(
                id=row.id,
                provider=row.provider,
                offer_id=row.offer_id,
                reason=row.reason,
                detail=row.detail,
                row=None if staged is None else held_price(row.id, staged, row.recorded_revision),
                raw=row.raw,
                recorded_revision=row.recorded_revision,
                accepted_revision=decision.recorded_revision
                if decision is not None and decision.decision == "accepted"
                else None,
                rejected=decision is not None and decision.decision == "rejected",
            )
        )
    return tuple(sorted(found, key=lambda entry: entry.id))


def held_price(quarantine_id: str, staged: StagedPrice, number: int) -> PriceRow:
    """Show a held price in the form of the price row it would become."""
    return PriceRow(
        id=quarantine_id,
        offer_id=staged.offer_id,
        amount=staged.amount,
        currency=staged.currency,
        price_unit=staged.price_unit,
        valid_from=staged.valid_from,
        valid_to=staged.valid_to,
        observed_on=staged.observed_on,
        recorded_at=None,
        recorded_revision=number,
        source=staged.source,
        kind=staged.kind,
        confidence=staged.confidence,
        note=staged.note,
    )


def _fx(connection: Connection, number: int) -> FxTable:
    days: dict[date, dict[str, Decimal]] = defaultdict(dict)
    cited: dict[date, str] = {}
    rows = sorted(repository.rows_until(connection, tables.fx_rate, number), key=lambda row: row.recorded_revision)
    for row in rows:
        days[row.fixed_on].update({code: Decimal(rate) for code, rate in row.per_euro.items()})
        cited[row.fixed_on] = row.source
    return FxTable(fixings=tuple(FxFixing(fixed_on=day, per_euro=days[day], source=cited[day]) for day in sorted(days)))


def _availability(
    connection: Connection, number: int, sources: Mapping[str, Source]
) -> dict[str, tuple[Availability, ...]]:
    seen: dict[tuple[str, Any], Availability] = {}
    rows = repository.rows_until(connection, tables.availability, number)
    for row in sorted(rows, key=lambda row: row.recorded_revision):
        seen[row.offer_id, row.observed_on] = Availability(
            offer_id=row.offer_id,
            observed_on=row.observed_on,
            status=row.status,
            lead_time_days=row.lead_time_days,
            source=sources[row.source_id],
        )
    found: dict[str, list[Availability]] = defaultdict(list)
    for key in sorted(seen):
        found[key[0]].append(seen[key])
    return {offer_id: tuple(entries) for offer_id, entries in found.items()}
