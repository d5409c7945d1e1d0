"""Catalog work from a command line: seed, import a file, fetch a feed. Returns values; printing is the caller's."""

from datetime import date
from pathlib import Path

import httpx

from app.catalog import errors, service
from app.catalog.feeds import Feed, fetch_feed
from app.catalog.importing import ImportOrder, ImportReport, ProviderReport, parse_import
from app.catalog.imports.staged import FileError
from app.catalog.quality import audit
from app.catalog.repository import RevisionInfo
from app.foundation.clock import Clock, SystemClock
from app.foundation.database import SYSTEM, Database


def seed_catalog(database: Database, clock: Clock | None = None) -> RevisionInfo | None:
    """Publish shipped data the catalog does not hold yet; None when there is nothing new."""
    return database.transact_now(lambda connection: service.seed(connection, clock=clock), SYSTEM)


def import_path(
    database: Database,
    path: Path,
    *,
    file_format: str,
    provider: str = "",
    observed_on: date | None = None,
    source: str = "",
    complete: bool = False,
    dry_run: bool = True,
    clock: Clock | None = None,
) -> ImportReport:
    """Import a price file; a dry run unless told otherwise. Raises ``FileError`` for a file that cannot be read."""
    order = ImportOrder(
        file_format=file_format,
        content=path.read_bytes(),
        filename=path.name,
        provider=provider,
        observed_on=observed_on,
        source=source,
        complete=complete,
    )
    return import_order(database, order, dry_run=dry_run, clock=clock)


def import_feed(
    database: Database,
    feed: Feed,
    *,
    client: httpx.Client,
    live_feeds: bool,
    dry_run: bool = True,
    clock: Clock | None = None,
) -> ImportReport:
    """Fetch a feed and import it; the only network access of the catalog, on demand and only where it is allowed.

    A feed that cannot be fetched or read is a problem and changes nothing: the last good prices stay.
    """
    if not live_feeds:
        raise errors.live_feeds_off(feed.name)
    now = clock or SystemClock()
    content = fetch_feed(client, feed)
    order = ImportOrder(
        file_format=feed.file_format,
        content=content,
        filename=feed.name,
        provider=feed.provider,
        observed_on=now.now().date(),
    )
    try:
        return import_order(database, order, dry_run=dry_run, clock=now)
    except FileError as error:
        raise errors.unreadable_file(error) from error


def import_order(
    database: Database, order: ImportOrder, *, dry_run: bool, clock: Clock | None = None, actor: str = "command line"
) -> ImportReport:
    """Import provider by provider, each in a transaction of its own."""
    now = clock or SystemClock()
    current = database.read_now(service.current_snapshot)
    parsed = parse_import(current, order, now.now().date())
    reports: list[ProviderReport] = []
    for provider in parsed.providers:
        if dry_run:
            report = database.read_now(lambda c, p=provider: service.preview_import(c, parsed, p))  # type: ignore[misc]
        else:
            report = database.transact_now(
                lambda c, p=provider: service.commit_import(c, parsed, p, now=now.now(), actor=actor)  # type: ignore[misc]
            )
        reports.append(report)
    return ImportReport(
        file_sha256=parsed.sha256,
        file_format=order.file_format,
        dry_run=dry_run,
        rows=sum(len(rows) for rows in parsed.rows.values()) or len(parsed.fixings),
        providers=tuple(reports),
        quality=audit(database.read_now(service.current_snapshot)),
    )
