"""What other rooms may ask of the catalog. Every function takes the connection and leaves the commit to its caller."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from app.catalog import errors, repository
from app.catalog.loading import load_snapshot
from app.catalog.repository import RevisionInfo
from app.catalog.seeding import seed as _seed
from app.catalog.snapshot import Snapshot
from app.foundation.clock import Clock, SystemClock

# Snapshots kept in the process: the current one, and the few that open quotes are pinned to.
CACHED_SNAPSHOTS = 6

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


def snapshot(connection: Connection, revision: int | str | None = None) -> Snapshot:
    """Give a revision by number or public id; None = the newest."""
    if revision is None:
        return current_snapshot(connection)
    if isinstance(revision, str) and revision.isascii() and revision.isdigit() and len(revision) < 10:
        revision = int(revision)
    found = (
        repository.find_revision(connection, revision)
        if isinstance(revision, int)
        else repository.find_revision_by_id(connection, revision)
    )
    if found is None:
        raise errors.unknown_revision(revision, current_revision(connection).number)
    return _snapshot_of(connection, found)


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
