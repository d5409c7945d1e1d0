"""Imports from file to revision: read once, then for each provider plan, report, and commit in one transaction."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import Connection

from app.catalog import repository
from app.catalog.collector import without_collector
from app.catalog.imports.checks import CheckContext
from app.catalog.imports.ecb import CITATION, read_ecb
from app.catalog.imports.formats.aws import read_aws
from app.catalog.imports.formats.azure import read_azure
from app.catalog.imports.formats.gcp import read_gcp, recipes_of
from app.catalog.imports.formats.gpuhunt import read_gpuhunt
from app.catalog.imports.formats.skypilot import read_skypilot
from app.catalog.imports.formats.tokens import read_litellm, read_tokens, token_provider_records
from app.catalog.imports.own_csv import MAX_ROWS, Reading, Shape, read_csv, read_json
from app.catalog.imports.plan import ImportPlan, Standing, plan_provider
from app.catalog.imports.staged import FileError, RejectedRow, StagedRow
from app.catalog.loading import sources_until
from app.catalog.offer_rows import OfferRows, price_rows
from app.catalog.quality import Finding
from app.catalog.rates import FxFixing
from app.catalog.record import Record
from app.catalog.revisions import RevisionContent, publish
from app.catalog.seed.records import read_exact
from app.catalog.seeding import labels_of, new_held, shipped_bands, shipped_regions, shipped_trust
from app.catalog.snapshot import Snapshot
from app.foundation.canonical import sha256_hex
from app.foundation.identifiers import new_id

TOKEN_FORMATS = ("genai-prices", "litellm")
FORMATS = ("csv", "json", "skypilot", "gpuhunt", "azure", "aws", "gcp", "ecb", *TOKEN_FORMATS)
# The provider under which reference rates are reported and kept.
ECB = "ecb"
# Lines of a report that are shown in full; the counts always cover everything.
SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOrder:
    """What to import, and what the file does not say about itself."""

    file_format: str
    content: bytes
    filename: str
    provider: str = ""
    observed_on: date | None = None
    source: str = ""
    complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedImport:
    """A file read and normalised; nothing of it is believed yet.

    ``base`` gave the names, shapes and rates it was read with; the prices it is compared with are read anew in the
    transaction that commits.
    """

    base: Snapshot
    order: ImportOrder
    sha256: str
    rows: Mapping[str, tuple[StagedRow, ...]]
    fixings: tuple[FxFixing, ...] = ()
    records: tuple[Record, ...] = ()

    @property
    def providers(self) -> tuple[str, ...]:
        """Providers in the file, each committed apart."""
        return tuple(sorted(self.rows)) or ((ECB,) if self.fixings else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderReport:
    """What an import did, or would do, for one provider."""

    provider: str
    status: str
    counts: Mapping[str, int]
    detail: str | None = None
    revision: int | None = None
    changes: tuple[Mapping[str, Any], ...] = ()
    quarantined: tuple[Mapping[str, Any], ...] = ()
    vanished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """The whole report of one file."""

    file_sha256: str
    file_format: str
    dry_run: bool
    rows: int
    providers: tuple[ProviderReport, ...] = field(default=())
    quality: tuple[Finding, ...] = ()


def parse_import(snapshot: Snapshot, order: ImportOrder, today: date) -> ParsedImport:
    """Read a file without touching the database."""
    with without_collector():
        return _parse(snapshot, order, today)


def _parse(snapshot: Snapshot, order: ImportOrder, today: date) -> ParsedImport:
    digest = sha256_hex(order.content)
    if order.file_format == "ecb":
        fixings = read_ecb(order.content, order.source or CITATION)
        return ParsedImport(base=snapshot, order=order, sha256=digest, rows={}, fixings=fixings)
    if order.file_format in TOKEN_FORMATS:
        return _parse_tokens(snapshot, order, today, digest)
    reading = Reading(
        labels=labels_of(snapshot),
        trust=shipped_trust(),
        undated_from=order.observed_on or today,
        default_source=order.source,
        provider=order.provider,
        observed_on=order.observed_on,
        shapes=known_shapes(snapshot),
    )
    rows = READERS[order.file_format](order.content, reading)
    return ParsedImport(base=snapshot, order=order, sha256=digest, rows=_by_provider(rows))


def _read_gcp(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    return read_gcp(content, reading, recipes_of(read_exact("gcp_recipes.json")["recipes"]))


READERS: Mapping[str, Callable[[bytes, Reading], Iterator[StagedRow]]] = {
    "csv": read_csv,
    "json": read_json,
    "skypilot": read_skypilot,
    "gpuhunt": read_gpuhunt,
    "azure": read_azure,
    "aws": read_aws,
    "gcp": _read_gcp,
}


def _parse_tokens(snapshot: Snapshot, order: ImportOrder, today: date, digest: str) -> ParsedImport:
    day = order.observed_on or today
    if order.file_format == "litellm":
        rows = _by_provider(read_litellm(order.content, day, order.provider, order.source))
        names = {provider: provider for provider in rows}
    else:
        chosen, version = _token_library(order.provider)
        rows = _by_provider(read_tokens(chosen, version, day))
        names = {provider.id: provider.name for provider in chosen}
    records = tuple(token_provider_records(names, snapshot.providers))
    return ParsedImport(base=snapshot, order=order, sha256=digest, rows=rows, records=records)


def _token_library(provider: str) -> tuple[list[Any], str]:
    try:
        from importlib.metadata import version

        from genai_prices import data
    except ImportError:
        raise FileError(
            "library_missing", "install the optional dependency genai-prices (pip install 'gpuquote[api-prices]')"
        ) from None
    chosen = [known for known in data.providers if provider in ("", known.id)]
    if not chosen:
        raise FileError("missing_provider", f"genai-prices has no provider {provider!r}")
    return chosen, version("genai-prices")


def _by_provider(rows: Iterator[StagedRow]) -> dict[str, tuple[StagedRow, ...]]:
    found: dict[str, list[StagedRow]] = {}
    for count, row in enumerate(rows, start=1):
        if count > MAX_ROWS:
            raise FileError("too_many_rows", f"a file may hold {MAX_ROWS} rows; split it by provider")
        name = (row.provider or "unknown") if isinstance(row, RejectedRow) else row.key.provider
        found.setdefault(name, []).append(row)
    if not found:
        raise FileError("empty_file", "the file holds no price of an accelerator")
    return {name: tuple(rows) for name, rows in found.items()}


def known_shapes(snapshot: Snapshot) -> dict[tuple[str, str], Shape]:
    """Give what each known instance type holds, for feeds that name the type only."""
    return {
        (offer.provider, offer.key.sku): Shape(
            accelerator_label=offer.key.accelerator_label,
            accelerator_count=offer.accelerator_count,
            vcpus=offer.vcpus,
            memory_gib=offer.memory_gib,
        )
        for offer in snapshot.offers.values()
        if offer.scope == "bundle" and offer.sold_unit == "node"
    }


def standing_of(connection: Connection, parsed: ParsedImport, provider: str) -> Standing:
    """Read what the catalog holds of one provider now."""
    revisions = repository.recorded_at(connection)
    prices = price_rows(
        repository.prices_of_provider(connection, provider), sources_until(connection, max(revisions)), revisions
    )
    offers = OfferRows(repository.offers_of_provider(connection, provider))
    return Standing(
        offers=offers,
        priced_regions=offers.regions(prices),
        prices_of=lambda offer_id: prices.get(offer_id, ()),
        node_shape_ids=frozenset(parsed.base.node_shapes),
        previous_rows=repository.last_row_count(connection, provider, parsed.order.file_format),
    )


def plan_import(connection: Connection, parsed: ParsedImport, provider: str) -> ImportPlan:
    """Compare one provider's rows with what the catalog holds now."""
    standing = standing_of(connection, parsed, provider)
    context = CheckContext(
        bands=shipped_bands(),
        fx=parsed.base.fx,
        held=standing.prices_of,
        regions=shipped_regions(provider) | standing.priced_regions,
    )
    return plan_provider(provider, parsed.rows[provider], standing, context, complete=parsed.order.complete)


def preview(connection: Connection, parsed: ParsedImport, provider: str) -> ProviderReport:
    """Report what committing would do; writes nothing."""
    if provider == ECB and not parsed.rows:
        fresh = new_fixings(parsed)
        return ProviderReport(provider=ECB, status="dry_run", counts={"new": len(fresh)})
    plan = plan_import(connection, parsed, provider)
    return report_of(plan, status="refused" if plan.refused else "dry_run")


def commit(connection: Connection, parsed: ParsedImport, provider: str, *, now: datetime, actor: str) -> ProviderReport:
    """Plan against what the catalog holds in this transaction and publish the difference as one revision."""
    with without_collector():
        return _commit(connection, parsed, provider, now=now, actor=actor)


def _commit(
    connection: Connection, parsed: ParsedImport, provider: str, *, now: datetime, actor: str
) -> ProviderReport:
    if provider == ECB and not parsed.rows:
        fresh = new_fixings(parsed)
        report = ProviderReport(provider=ECB, status="unchanged", counts={"new": len(fresh)})
        content = RevisionContent(fixings=fresh, summary={"imported": {ECB: dict(report.counts)}})
    else:
        plan = plan_import(connection, parsed, provider)
        report = report_of(plan, status="refused" if plan.refused else "unchanged")
        if plan.refused:
            return report
        content = RevisionContent(
            records=[record for record in parsed.records if record.key == provider],
            offers=list(plan.offers.values()),
            prices=plan.prices,
            held=new_held(connection, {provider: plan}),
            summary={"imported": {provider: dict(report.counts)}, "file_sha256": parsed.sha256},
        )
    if content.empty:
        return report
    repository.keep_import_file(connection, parsed.sha256, parsed.order.content)
    revision = publish(connection, content, reason="import", actor=actor, now=now)
    committed = ProviderReport(
        provider=provider,
        status="committed",
        counts=report.counts,
        revision=revision.number,
        changes=report.changes,
        quarantined=report.quarantined,
        vanished=report.vanished,
    )
    repository.insert_import(
        connection,
        {
            "id": new_id("imp"),
            "file_sha256": parsed.sha256,
            "format": parsed.order.file_format,
            "provider": provider,
            "filename": parsed.order.filename[:256],
            "row_count": len(parsed.rows.get(provider, ())) or len(parsed.fixings),
            "recorded_at": now,
            "actor": actor,
            "revision_number": revision.number,
            "report": {"counts": dict(committed.counts), "changes": list(committed.changes)},
        },
    )
    return committed


def new_fixings(parsed: ParsedImport) -> list[FxFixing]:
    """Give the fixings whose day is new, or whose rates differ from those held."""
    held = {day.fixed_on: day.per_euro for day in parsed.base.fx.fixings}
    fresh = []
    for day in parsed.fixings:
        known = held.get(day.fixed_on, {})
        changed = {code: rate for code, rate in day.per_euro.items() if known.get(code) != rate}
        if changed:
            fresh.append(FxFixing(fixed_on=day.fixed_on, per_euro=changed, source=day.source))
    return fresh


def report_of(plan: ImportPlan, *, status: str) -> ProviderReport:
    """Show a plan: counts of everything, and the first lines of each kind."""
    return ProviderReport(
        provider=plan.provider,
        status=status,
        counts=plan.counts(),
        detail=plan.refused,
        changes=tuple(
            {
                "status": change.status,
                "offer_id": change.offer_id,
                "instance_type": change.sku,
                "region": change.region,
                "purchase_model": change.purchase_model,
                "before": None if change.before is None else format(change.before, "f"),
                "after": format(change.amount, "f"),
                "currency": change.currency,
                "line": change.line,
            }
            for change in plan.changes[:SHOWN]
        ),
        quarantined=tuple(
            {"reason": held.reason, "detail": held.detail, "line": held.row.line} for held in plan.held[:SHOWN]
        ),
        vanished=tuple(plan.vanished[:SHOWN]),
    )
