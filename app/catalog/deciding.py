"""A person's decision about a held row: accepted with a reason, it becomes a price; rejected, it stays out for good."""

from datetime import datetime

from sqlalchemy import Connection

from app.catalog import errors, repository
from app.catalog.codec import decode
from app.catalog.imports.plan import NewPrice
from app.catalog.imports.staged import StagedPrice
from app.catalog.repository import RevisionInfo
from app.catalog.revisions import Decision, RevisionContent, publish


def decide(
    connection: Connection, quarantine_id: str, *, decision: str, reason: str, actor: str, now: datetime
) -> RevisionInfo:
    """Record the decision as a revision of its own."""
    row = repository.find_quarantined(connection, quarantine_id)
    if row is None:
        raise errors.no_quarantined_row()
    earlier = repository.find_decision(connection, quarantine_id)
    if earlier is not None:
        raise errors.decided_already(earlier.decision, earlier.reason)
    prices = []
    if decision == "accepted":
        if row.staged is None:
            raise errors.not_a_price(row.reason, row.detail)
        staged: StagedPrice = decode(StagedPrice, row.staged)
        prices = [
            NewPrice(
                offer_id=staged.offer_id,
                amount=staged.amount,
                currency=staged.currency,
                price_unit=staged.price_unit,
                valid_from=staged.valid_from,
                valid_to=staged.valid_to,
                observed_on=staged.observed_on,
                source=staged.source,
                kind=staged.kind,
                confidence=staged.confidence,
                note=f"accepted by {actor}: {reason}",
            )
        ]
    made = Decision(quarantine_id=quarantine_id, decision=decision, reason=reason, actor=actor)
    summary = {"quarantine": quarantine_id, "decision": decision, "reason": reason}
    content = RevisionContent(prices=prices, decisions=[made], summary=summary)
    return publish(connection, content, reason=decision, actor=actor, now=now)
