"""``gpuquote quote``: the life of a quote from the command line."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from app.access.principal import LOOPBACK_TENANT
from app.cli.printing import amount, options_table, print_json, supply_lines, table, total_line
from app.cli.request_file import read_body
from app.cli.session import MISMATCH, Session, fail, open_session
from app.foundation.problem_handlers import validated
from app.quotes import service
from app.quotes.lifecycle import Status
from app.quotes.numbering import split_display_number
from app.quotes.schemas import QuoteCreate
from app.quotes.validity import local_today
from app.quotes.views import quote_view, revision_view

AsJson = Annotated[bool, typer.Option("--json", help="JSON instead of a table.")]
Tenant = Annotated[str, typer.Option(help="Tenant to act for.", envvar="GPUQUOTE_TENANT")]
Ref = Annotated[str, typer.Argument(help="Quote id, number (Q-2026-000001), or number with revision.")]
Reason = Annotated[str | None, typer.Option(help="Recorded in the audit.")]

app = typer.Typer(no_args_is_help=True, help="Create, show, issue, accept, reprice, compare and verify quotes.")


@app.command()
def create(
    file: Annotated[Path, typer.Argument(help="YAML or JSON: a body, an item or a job; - for standard input.")],
    customer: Annotated[str | None, typer.Option(help="Your reference of the customer.")] = None,
    external_ref: Annotated[str | None, typer.Option(help="Your reference of the quote.")] = None,
    currency: Annotated[str | None, typer.Option(help="ISO 4217 code of the totals.")] = None,
    tenant: Tenant = LOOPBACK_TENANT,
    as_json: AsJson = False,
) -> None:
    """Keep an estimate as a quote with draft revision 1."""
    body = read_body(file)
    if customer is not None:
        body["customer"] = {**(body.get("customer") or {}), "external_ref": customer}
    if currency is not None:
        body["terms"] = {**(body.get("terms") or {}), "currency": currency}
    if external_ref is not None:
        body["external_ref"] = external_ref
    with open_session(tenant) as session:
        asked = validated(QuoteCreate, body)
        today, currency_of = session.clock.now().date(), session.principal.default_currency
        plan = session.read(lambda c: service.plan_new(c, tenant, asked, currency=currency_of, today=today))
        prepared = plan.run()
        header = service.HeaderFields(
            title=asked.title, external_ref=asked.external_ref, owner=asked.owner, tags=tuple(asked.tags)
        )
        quote, revision = session.transact(lambda c: service.create_quote(c, session.acting, prepared, header))
        _tell(session, quote, revision, as_json=as_json)


@app.command()
def show(ref: Ref, tenant: Tenant = LOOPBACK_TENANT, as_json: AsJson = False) -> None:
    """Show a quote with one revision: the current one unless the number names another."""
    with open_session(tenant) as session:
        shown = find_revision(session, ref)
        revision = shown.revision if as_json else shown.signed
        view = _view(session, shown.quote, revision, shown.acceptance)
        if as_json:
            print_json(view)
            return
        _headline(view)
        options_table(view["current_revision"]["items"])
        total_line(view["current_revision"]["totals"], view["current_revision"]["pins"])


@app.command()
def issue(
    ref: Ref,
    valid_through: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Last local day.")] = None,
    tz: Annotated[str | None, typer.Option("--tz", help="IANA time zone of that day.")] = None,
    reason: Reason = None,
    tenant: Tenant = LOOPBACK_TENANT,
    as_json: AsJson = False,
) -> None:
    """Submit, approve where this caller may, and issue: number, period, and the end of the offer before it."""
    with open_session(tenant) as session:
        shown = find_revision(session, ref, latest=True)
        through = None if valid_through is None else valid_through.date()

        def work(connection: Connection) -> tuple[service.Quote, service.Revision]:
            acting, quote_id, n = session.acting, shown.quote.id, shown.revision.head.n
            status = shown.revision.head.status
            if status is Status.DRAFT:
                status = service.submit(connection, acting, quote_id, n, reason=reason)[1].head.status
            if status is Status.IN_REVIEW:
                waivers = ["accept_stale"] if acting.principal.may_self_approve else []
                service.approve(connection, acting, quote_id, n, reason=reason, waivers=waivers)
            return service.issue(connection, acting, quote_id, n, valid_through=through, timezone=tz, reason=reason)

        quote, revision = session.transact(work)
        _tell(session, quote, revision, as_json=as_json)


@app.command()
def accept(
    ref: Ref,
    sha256: Annotated[str | None, typer.Option(help="Hash of what was read; the shown revision's without it.")] = None,
    option: Annotated[list[str] | None, typer.Option(help="item=option id, for each other choice.")] = None,
    signatory: Annotated[str | None, typer.Option(help="Who signed.")] = None,
    tenant: Tenant = LOOPBACK_TENANT,
    as_json: AsJson = False,
) -> None:
    """Accept an issued revision."""
    with open_session(tenant) as session:
        shown = find_revision(session, ref)
        terms = service.AcceptanceTerms(
            content_sha256=sha256 or shown.revision.head.content_sha256,
            selections=dict(_pair(text) for text in option or ()),
            signatory=None if signatory is None else {"name": signatory, "title": None, "email": None},
        )
        quote, revision, acceptance = session.transact(
            lambda c: service.accept(c, session.acting, shown.quote.id, shown.revision.head.n, terms)
        )
        _tell(session, quote, revision, as_json=as_json, acceptance=acceptance)


@app.command()
def reprice(ref: Ref, tenant: Tenant = LOOPBACK_TENANT, as_json: AsJson = False) -> None:
    """Draft a new revision at today's prices, and say why the total moved."""
    with open_session(tenant) as session:
        shown = find_revision(session, ref)
        base, today = shown.signed, session.clock.now().date()
        plan = session.read(lambda c: service.plan_revision(c, base, {}, pricing="reprice", today=today))
        assert plan is not None
        prepared = plan.run()
        between = service.between_draft(base, prepared, plan.calculator)
        quote, revision = session.transact(
            lambda c: service.add_revision(
                c, session.acting, shown.quote.id, base.head.n, pricing="reprice", prepared=prepared
            )
        )
        sides = [(base, quote.number), (revision, quote.number)]
        compared = service.compare(sides, between=[between])
        if as_json:
            changed, supply = compared["changes"][0], list(prepared.supply)
            print_json({**_view(session, quote, revision), "changed": changed, "supply": supply})
            return
        _tell(session, quote, revision, as_json=False)
        _drift(compared)
        supply_lines(prepared.supply)


@app.command()
def diff(ref: Ref, before: int, after: int, tenant: Tenant = LOOPBACK_TENANT, as_json: AsJson = False) -> None:
    """Split the change of the total between two revisions into its causes."""
    with open_session(tenant) as session:
        quote_id = find_revision(session, ref).quote.id
        now = session.clock.now()

        def work(connection: Connection) -> service.Sides:
            shown = [service.show(connection, tenant, quote_id, n, now=now) for n in (before, after)]
            return service.read_sides(connection, [(side.signed, side.quote.number) for side in shown])

        compared = service.compare_sides(session.read(work), with_costs=True)
        if as_json:
            print_json(compared)
        else:
            _drift(compared)


@app.command()
def verify(
    ref: Ref,
    engine: Annotated[bool, typer.Option("--engine", help="Refuse where the pinned engine is not running.")] = False,
    tenant: Tenant = LOOPBACK_TENANT,
    as_json: AsJson = False,
) -> None:
    """Recompute a revision from its pins; exit code 3 where a byte differs."""
    with open_session(tenant) as session:
        shown = find_revision(session, ref)
        calculator = session.read(lambda c: service.pinned_calculator(c, shown.revision))
        verdict = service.verify(shown.revision, calculator, engine_required=engine)
    if as_json:
        print_json(verdict.as_json())
    else:
        typer.echo("match" if verdict.match else "MISMATCH")
        table(["part", "result"], [["content", verdict.content], ["money", verdict.money], ["engine", verdict.engine]])
        typer.echo(f"sha256 {verdict.recomputed_sha256}")
    if not verdict.match:
        raise typer.Exit(MISMATCH)


def find_revision(session: Session, ref: str, *, latest: bool = False) -> service.Shown:
    """Find what a reference means: an id, a number, or a number with a revision."""
    number, n = (None, None) if ref.startswith("quo_") else split_display_number(ref)
    now = session.clock.now()
    tenant = session.principal.tenant_id

    def work(connection: Connection) -> service.Shown:
        quote_id = ref
        if number is not None:
            filters = service.Filters(number=number)
            found = service.list_quotes(connection, tenant, filters, now=now, before_id=None, limit=1)
            quote_id = found[0].id if found else ref
        quote = service.find_quote(connection, tenant, quote_id)
        return service.show(connection, tenant, quote_id, n or (quote.latest_n if latest else None), now=now)

    return session.read(work)


def _pair(text: str) -> tuple[str, str]:
    item, separator, chosen = text.partition("=")
    if not separator:
        fail(f"--option {text} is not of the form item=option id")
    return item, chosen


def _view(session: Session, quote: service.Quote, revision: service.Revision, acceptance: Any = None) -> dict[str, Any]:
    now = session.clock.now()
    shown = revision_view(revision, quote.number, now, with_costs=True, acceptance=acceptance)
    return {**quote_view(quote, now), "current_revision": shown}


def _tell(
    session: Session,
    quote: service.Quote,
    revision: service.Revision,
    *,
    as_json: bool,
    acceptance: Any = None,
) -> None:
    view = _view(session, quote, revision, acceptance)
    if as_json:
        print_json(view)
        return
    _headline(view)
    shown = view["current_revision"]
    if shown["status"] == "issued":
        head = revision.head
        last = local_today(head.expires_at, head.timezone)
        typer.echo(f"expires {last} 00:00 {head.timezone} ({shown['expires_at']})")
        typer.echo(f"sha256 {head.content_sha256}")
    elif shown["status"] == "accepted" and acceptance is not None:
        typer.echo(f"accepted {amount(acceptance.totals['net'])} net by {acceptance.accepted_by}")


def _headline(view: dict[str, Any]) -> None:
    shown = view["current_revision"]
    complete = "complete" if shown["complete"] else "incomplete"
    name = shown["display_number"] or view["id"]
    pins = shown["pins"]
    totals = shown["totals"]
    spread = "" if totals is None else f" (P10 {amount(totals['net_p10'])}  P90 {amount(totals['net_p90'])})"
    typer.echo(
        f"{name}  r{shown['revision']} {shown['status']}  {complete}  {amount(shown['net_total'])} net{spread}  "
        f"catalog {pins['as_of']}#{pins['catalog_content_sha256'][:4]}  engine {pins['engine_version']}"
    )


def _drift(compared: dict[str, Any]) -> None:
    for change in compared["changes"]:
        drift = change["drift"]
        if not drift["available"]:
            typer.echo(f"no difference to state: {drift['reason']}")
            continue
        rows = [["net", amount(drift["change"]), f"{drift['change_percent']} %"]]
        rows += [
            [name.replace("_", " "), amount(part["amount"]), f"{part['percent']} %"]
            for name, part in drift["effects"].items()
        ]
        table(["cause", "change", "of before"], rows, right=(1, 2))
