"""Makes a change known in the transaction that makes it: one row of the audit chain, one event in the outbox."""

from sqlalchemy import Connection

from app.access import audit
from app.events import outbox
from app.quotes.acting import Acting, Notice


def announce(connection: Connection, acting: Acting, notice: Notice) -> None:
    """Record who did what, and put the event out where there is one."""
    audit.record(
        connection,
        principal=acting.principal,
        at=notice.at,
        action=f"quote.{notice.action}",
        subject=notice.quote_id,
        before_sha256=notice.before_sha256,
        after_sha256=notice.after_sha256,
        reason=notice.reason,
        details={"revision": notice.n, "status": str(notice.status), **notice.detail},
    )
    if notice.event is None:
        return
    outbox.announce(
        connection,
        tenant_id=acting.tenant_id,
        event_type=notice.event,
        subject=notice.quote_id,
        at=notice.at,
        data={
            "quote_id": notice.quote_id,
            "revision_id": notice.revision_id,
            "revision": notice.n,
            "status": str(notice.status),
            "content_sha256": notice.after_sha256,
        },
    )
