"""``gpuquote proposal``: a stored revision as a file in another system's format."""

from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Connection

from app.access.principal import LOOPBACK_TENANT
from app.cli.printing import print_json
from app.cli.quoting import AsJson, Ref, Tenant, find_revision
from app.cli.session import open_session
from app.proposals import service
from app.proposals.routes import view
from app.proposals.schemas import FORMATS, ProposalCreate


def proposal(
    ref: Ref,
    file_format: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File; standard output without it.")] = None,
    locale: Annotated[str | None, typer.Option(help="Language of descriptions: en or zh-CN.")] = None,
    buyer_cookie: Annotated[str | None, typer.Option(help="cxml: BuyerCookie to give back.")] = None,
    mode: Annotated[str | None, typer.Option(help="oci: lenient or strict.")] = None,
    encoding: Annotated[str | None, typer.Option(help="oci: html, json or urlencoded.")] = None,
    hook_url: Annotated[str | None, typer.Option(help="oci: HOOK_URL of the procurement system.")] = None,
    tenant: Tenant = LOOPBACK_TENANT,
    as_json: AsJson = False,
) -> None:
    """Write a revision as UBL, FOCUS CSV, JSON, cXML or OCI; kept like one made over HTTP."""
    given: dict[str, Any] = {
        "locale": locale, "buyer_cookie": buyer_cookie, "mode": mode, "encoding": encoding, "hook_url": hook_url,
    }  # fmt: skip
    with open_session(tenant) as session:
        order = ProposalCreate.model_validate({"format": file_format, **given})
        shown = find_revision(session, ref)

        def work(connection: Connection) -> tuple[service.Proposal, bytes]:
            head = shown.revision.head
            return service.create_proposal(connection, session.acting, head.quote_id, head.n, order)

        made, content = session.transact(work)
    if output is not None:
        output.write_bytes(content)
    if as_json:
        print_json(view(made))
    elif output is None:
        typer.echo(content, nl=False)
    else:
        typer.echo(f"{output}: {made.format} of revision {made.n} ({made.standing}), {made.size_bytes} bytes")
        typer.echo(f"sha256 {made.sha256}")
        for row in made.adaptations:
            typer.echo(f"changed to fit {row['limit']}: {row['field']} at {row['pointer']}, was {row['value']}")
