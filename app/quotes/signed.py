"""What an accepted revision stands for: the options its acceptance names, and their total."""

from dataclasses import replace
from datetime import date

from sqlalchemy import Connection

from app.estimates import service as estimates
from app.quotes import repository
from app.quotes.content import canonical_text, open_content
from app.quotes.keeping import selections_of
from app.quotes.lifecycle import Status
from app.quotes.options import money, stale_lines
from app.quotes.records import Acceptance, Revision, RevisionHead


def acceptance_of(connection: Connection, head: RevisionHead) -> Acceptance | None:
    """Read how a revision was accepted; None where it was not."""
    if head.status is not Status.ACCEPTED:
        return None
    return repository.find_acceptance(connection, head.tenant_id, head.id)


def read_signed(connection: Connection, revision: Revision) -> Revision:
    """A revision as it stands, its acceptance read where there is one."""
    return as_signed(revision, acceptance_of(connection, revision.head))


def as_signed(revision: Revision, acceptance: Acceptance | None) -> Revision:
    """A revision with the options that were accepted, where they are not those it was offered with.

    What was hashed stays as it was offered; this is what to draft from, compare with and explain.
    """
    if acceptance is None:
        return revision
    content = open_content(revision.content_text)
    if dict(acceptance.selections) == selections_of(content):
        return revision
    items = [{**item, "selected_option_id": acceptance.selections[item["id"]]} for item in content["items"]]
    totals, completeness = estimates.content_totals(
        items, revision.head.currency or "", content["pins"]["rounding_policy"], acceptance.selections
    )
    # worked out for the options as offered
    changed = {**content, "items": items, "totals": totals, "lifetime": None}
    day = date.fromisoformat(content["pins"]["as_of"])
    changed["completeness"] = {**completeness, "stale_lines": stale_lines(items, day)}
    net = None if totals is None else money(totals["net"]).amount
    return replace(revision, content_text=canonical_text(changed).text, head=replace(revision.head, net_total=net))
