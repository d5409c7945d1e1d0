"""What other rooms may ask of the catalog. Every function takes the connection and leaves the commit to its caller."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection

from app.catalog import errors, repository
from app.catalog.deciding import decide as _decide
from app.catalog.importing import ParsedImport, ProviderReport
from app.catalog.importing import commit as _commit
from app.catalog.importing import preview as _preview
from app.catalog.imports.formats.focus import FocusRates, read_focus
from app.catalog.imports.staged import source_of
from app.catalog.loading import load_snapshot, sources_until
from app.catalog.offer_rows import price_of
from app.catalog.offers import Availability, PriceRow
from app.catalog.pricebook_service import find_price_book, price_books, save_price_book, withdraw_price_book
from app.catalog.repository import RevisionInfo
from app.catalog.revisions import RevisionContent, publish
from app.catalog.seeding import labels_of
from app.catalog.seeding import seed as _seed
from app.catalog.snapshot import AcceleratorEntry, Snapshot, SoftwareMinimum
from app.foundation.clock import Clock, SystemClock

__all__ = [
    "commit_import",
    "current_revision",
    "current_snapshot",
    "decide_quarantined",
    "effective_minima",
    "find_accelerator",
    "find_price",
    "find_price_book",
    "find_revision",
    "focus_rates",
    "list_imports",
    "list_revisions",
    "preview_import",
    "price_books",
    "record_availability",
    "save_price_book",
    "seed",
    "seed_when_empty",
    "snapshot",
    "withdraw_price_book",
]

# Snapshots kept in the process: the current one, and the few that open quotes are pinned to.
CACHED_SNAPSHOTS = 6
# the largest number that the column holds: a signed 32-bit integer
MOST_REVISIONS = 2**31 - 1

_cache: "OrderedDict[tuple[str, datetime], Snapshot]" = OrderedDict()
_lock = threading.Lock()


def current_revision(connection: Connection) -> RevisionInfo:
    """Find the newest published revision."""
    head = repository.find_head(connection)
    if head is None:
        raise errors.empty_catalog()
    return head


def current_snapshot(connection: Connection) -> Snapshot:
    """Give the newest revision as a frozen value that all requests of the process share."""
    return _snapshot_of(connection, current_revision(connection))


def snapshot(connection: Connection, revision: int | str | None = None, *, pointer: str | None = None) -> Snapshot:
    """Give a revision by number or public id, None = the newest; ``pointer`` is where a body names it."""
    if revision is None:
        return current_snapshot(connection)
    found = find_revision(connection, revision)
    if found is None:
        raise errors.unknown_revision(revision, current_revision(connection).number, pointer)
    return _snapshot_of(connection, found)


def find_revision(connection: Connection, revision: int | str) -> RevisionInfo | None:
    """Find a revision by number or public id."""
    if isinstance(revision, str) and revision.isascii() and revision.isdigit() and len(revision) < 10:
        revision = int(revision)
    if isinstance(revision, str):
        return repository.find_revision_by_id(connection, revision)
    # Neither database takes a number that its column cannot hold, so nothing can be there.
    return repository.find_revision(connection, revision) if 0 < revision <= MOST_REVISIONS else None


def _snapshot_of(connection: Connection, revision: RevisionInfo) -> Snapshot:
    # Two databases with the same content differ in the time they recorded it.
    key = (revision.id, revision.recorded_at)
    with _lock:
        found = _cache.get(key)
        if found is not None:
            _cache.move_to_end(key)
            return found
    loaded = load_snapshot(connection, revision)
    with _lock:
        loaded = _cache.setdefault(key, loaded)
        while len(_cache) > CACHED_SNAPSHOTS:
            _cache.popitem(last=False)
    return loaded


def find_price(connection: Connection, price_id: str) -> PriceRow | None:
    """Find a dated price by its id, also one that a later revision replaced: quotes keep naming it."""
    row = repository.find_price(connection, price_id)
    if row is None:
        return None
    times = repository.recorded_at(connection)
    return price_of(row, sources_until(connection, max(times)), times)


def list_revisions(connection: Connection, *, before: int | None = None, limit: int = 50) -> Sequence[RevisionInfo]:
    """List published revisions, newest first."""
    return repository.list_revisions(connection, before=before, limit=limit)


def seed(connection: Connection, *, clock: Clock | None = None, actor: str = "seed") -> RevisionInfo | None:
    """Publish the shipped data that the catalog does not hold yet; None when there is nothing new."""
    now = (clock or SystemClock()).now()
    head = repository.find_head(connection)
    current = None if head is None else _snapshot_of(connection, head)
    return _seed(connection, current, now=now, actor=actor)


def seed_when_empty(connection: Connection) -> RevisionInfo | None:
    """Bring the catalog up to what the package ships, at start; does nothing on every later start."""
    return seed(connection)


def find_accelerator(snapshot: Snapshot, accelerator_id: str) -> AcceleratorEntry:
    """Find an accelerator by id, or refuse with the nearest ids."""
    found = snapshot.accelerators.get(accelerator_id)
    if found is None:
        nearest = get_close_matches(accelerator_id.lower(), list(snapshot.accelerators), n=3, cutoff=0.5)
        raise errors.unknown_accelerator(accelerator_id, nearest)
    return found


def effective_minima(snapshot: Snapshot, entry: AcceleratorEntry) -> list[SoftwareMinimum]:
    """Give the oldest software for a part: its architecture's, with its own CUDA minimum where the part states one."""
    family = entry.architecture.removesuffix(" Ultra").replace("Ada Lovelace", "Ada")
    minima = [minimum for minimum in snapshot.software if minimum.architecture == family]
    if entry.min_cuda_toolkit is None:
        # A later die of the same family (compute capability 10.3) may need newer software than the first.
        return [] if entry.architecture.endswith(" Ultra") else minima
    return [
        replace(minimum, version=entry.min_cuda_toolkit) if minimum.component == "cuda" else minimum
        for minimum in minima
    ]


def preview_import(connection: Connection, parsed: ParsedImport, provider: str) -> ProviderReport:
    """Report what importing one provider of a file would change."""
    return _preview(connection, parsed, provider)


def commit_import(
    connection: Connection, parsed: ParsedImport, provider: str, *, now: datetime, actor: str
) -> ProviderReport:
    """Import one provider of a file as one revision."""
    return _commit(connection, parsed, provider, now=now, actor=actor)


def decide_quarantined(
    connection: Connection, quarantine_id: str, *, decision: str, reason: str, actor: str, now: datetime
) -> RevisionInfo:
    """Accept or reject a held row, with a reason."""
    return _decide(connection, quarantine_id, decision=decision, reason=reason, actor=actor, now=now)


def record_availability(
    connection: Connection,
    offer_id: str,
    *,
    observed_on: date,
    status: str,
    lead_time_days: int | None,
    source: str,
    now: datetime,
    actor: str,
) -> RevisionInfo:
    """Publish what was seen of an offer's supply: a status and a lead time, apart from its price."""
    if offer_id not in current_snapshot(connection).offers:
        raise errors.no_offer()
    seen = Availability(
        offer_id=offer_id,
        observed_on=observed_on,
        status=status,
        lead_time_days=lead_time_days,
        source=source_of(source, "manual", observed_on),
    )
    summary = {"availability": offer_id, "status": status}
    content = RevisionContent(availability=[seen], summary=summary)
    return publish(connection, content, reason="availability", actor=actor, now=now)


def list_imports(connection: Connection, *, before: str | None, limit: int) -> list[dict[str, Any]]:
    """List committed imports, newest first."""
    return [dict(row._mapping) for row in repository.list_imports(connection, before=before, limit=limit)]


def focus_rates(current: Snapshot, content: bytes) -> FocusRates:
    """Read the contracted rates of a FOCUS file for machines the catalog knows."""
    skus = frozenset((offer.provider, offer.key.sku) for offer in current.offers.values())
    return read_focus(content, labels_of(current), skus)
