"""Statements on proposals. Every function takes the tenant; nothing here decides anything."""

from sqlalchemy import Connection, select

from app.proposals.records import Proposal
from app.proposals.tables import proposals

_COLUMNS = [proposals.c[name] for name in Proposal.__slots__]


def insert_proposal(connection: Connection, proposal: Proposal, content: bytes) -> None:
    values = {name: getattr(proposal, name) for name in Proposal.__slots__}
    connection.execute(proposals.insert().values(**values, content=content))


def find_proposal(connection: Connection, tenant_id: str, proposal_id: str) -> Proposal | None:
    row = connection.execute(
        select(*_COLUMNS).where(proposals.c.tenant_id == tenant_id, proposals.c.id == proposal_id)
    ).one_or_none()
    return None if row is None else Proposal(**row._mapping)


def find_content(connection: Connection, tenant_id: str, proposal_id: str) -> bytes | None:
    content: bytes | None = connection.execute(
        select(proposals.c.content).where(proposals.c.tenant_id == tenant_id, proposals.c.id == proposal_id)
    ).scalar_one_or_none()
    return content
