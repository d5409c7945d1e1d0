"""The commands of ``gpuquote``.

Exit codes: 0 done, 1 refused (standard error says why), 2 wrong usage, 3 a verification found a mismatch.
"""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import httpx
import typer

from app.catalog import service as catalog
from app.catalog.commands import import_feed
from app.catalog.feeds import FEEDS
from app.catalog.importing import FORMATS, ImportOrder, ParsedImport, ProviderReport, parse_import
from app.catalog.imports.staged import FileError
from app.cli.printing import estimate_table, print_json, table
from app.cli.proposing import proposal
from app.cli.quoting import app as quoting
from app.cli.request_file import read_body
from app.cli.session import ERROR, Session, fail, open_session
from app.estimates import service as estimates
from app.estimates.schemas import EstimateRequest
from app.foundation.problem_handlers import validated
from app.foundation.settings import Settings

__all__ = ["run"]

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Quotes for LLM training and inference. Exit codes: 0 done, 1 refused, 2 wrong usage, 3 mismatch.",
)
catalog_app = typer.Typer(no_args_is_help=True, help="The catalog of hardware and prices.")
app.add_typer(quoting, name="quote")
app.command()(proposal)
app.add_typer(catalog_app, name="catalog")


@app.command()
def estimate(
    file: Annotated[Path, typer.Argument(help="YAML or JSON: a body, an item or a job; - for standard input.")],
    currency: Annotated[str | None, typer.Option(help="ISO 4217 code of the totals.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute options without keeping anything."""
    body = read_body(file)
    if currency is not None:
        body["terms"] = {**body.get("terms", {}), "currency": currency}
    with open_session() as session:
        asked = validated(EstimateRequest, body)
        snapshot = session.read(lambda c: catalog.snapshot(c, asked.catalog_revision))
        book = session.read(lambda c: estimates.price_book_of(c, session.principal.tenant_id, asked))
        answer = estimates.estimate(snapshot, asked, session.clock.now().date(), book)
    if as_json:
        print_json(answer.as_json())
    else:
        estimate_table(answer)


@catalog_app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False)],
    file_format: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")],
    provider: Annotated[str, typer.Option(help="Whose prices, where the file does not say.")] = "",
    observed_on: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Day the file was taken.")] = None,
    source: Annotated[str, typer.Option(help="Where the file is from.")] = "",
    complete: Annotated[bool, typer.Option(help="The file lists everything the provider sells.")] = False,
    commit: Annotated[bool, typer.Option("--commit", help="Import; without it only the report.")] = False,
    as_json: AsJson = False,
) -> None:
    """Import prices, provider by provider; a dry run unless --commit is given."""
    if file_format not in FORMATS:
        raise typer.BadParameter(f"{file_format} is not one of {', '.join(FORMATS)}", param_hint="--format")
    order = ImportOrder(
        file_format=file_format,
        content=file.read_bytes(),
        filename=file.name,
        provider=provider,
        observed_on=_day(observed_on),
        source=source,
        complete=complete,
    )
    with open_session() as session:
        now = datetime.now(UTC)
        try:
            parsed = parse_import(session.read(catalog.current_snapshot), order, now.date())
        except FileError as error:
            fail(f"{file} was not imported: {error}")
        reports = [_import(session, parsed, name, now, commit=commit) for name in parsed.providers]
    if as_json:
        rows = [
            {"provider": r.provider, "status": r.status, "counts": dict(r.counts), "detail": r.detail} for r in reports
        ]
        print_json({"dry_run": not commit, "providers": rows})
    else:
        _show(reports)
    if any(report.status == "failed" for report in reports):
        raise typer.Exit(ERROR)


@catalog_app.command("fetch")
def fetch_feed(
    name: Annotated[str, typer.Argument(help="Name of a feed; an unknown one lists them.")],
    commit: Annotated[bool, typer.Option("--commit", help="Import; without it only the report.")] = False,
) -> None:
    """Fetch a price feed and import it (needs GPUQUOTE_LIVE_FEEDS=true); a dry run unless --commit is given."""
    if name not in FEEDS:
        raise typer.BadParameter(f"{name} is not one of {', '.join(FEEDS)}", param_hint="NAME")
    with open_session() as session, httpx.Client() as client:
        allowed = Settings().live_feeds
        report = import_feed(session.database, FEEDS[name], client=client, live_feeds=allowed, dry_run=not commit)
    _show(report.providers)


def _show(reports: Sequence[ProviderReport]) -> None:
    shown = [[r.provider, r.status, ", ".join(f"{k} {v}" for k, v in r.counts.items())] for r in reports]
    table(["provider", "status", "rows"], shown)


def _import(session: Session, parsed: ParsedImport, provider: str, now: datetime, *, commit: bool) -> ProviderReport:
    if not commit:
        return session.read(lambda c: catalog.preview_import(c, parsed, provider))
    actor = session.principal.actor
    return session.transact(lambda c: catalog.commit_import(c, parsed, provider, now=now, actor=actor))


def _day(moment: datetime | None) -> date | None:
    return None if moment is None else moment.date()


def run() -> None:
    """Run the command line."""
    app()
