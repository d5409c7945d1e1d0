"""Makes a change known in the transaction that makes it: the audit chain and the outbox."""

from sqlalchemy import Connection

from app.quotes.acting import Acting, Notice


def announce(connection: Connection, acting: Acting, notice: Notice) -> None:
    """Record one notice."""
