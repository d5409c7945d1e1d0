"""Publishing: one immutable, numbered revision with a content hash chained to all before it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import orjson
from sqlalchemy import Connection

from app.catalog import repository, tables
from app.catalog.codec import encode
from app.catalog.imports.plan import Held, NewPrice
from app.catalog.imports.staged import RejectedRow, StagedPrice
from app.catalog.offers import Availability, Offer, Source
from app.catalog.rates import FxFixing
from app.catalog.record import Record
from app.catalog.repository import RevisionInfo

Values = dict[str, Any]
# Rows of one table, made anew each time they are asked for: once to hash them, once to insert them.
Section = Callable[[], Iterator[Values]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a person decided about a held row."""

    quarantine_id: str
    decision: str
    reason: str
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionContent:
    """Everything one revision adds."""

    records: Sequence[Record] = ()
    offers: Sequence[Offer] = ()
    prices: Sequence[NewPrice] = ()
    held: Sequence[tuple[str, Held]] = ()
    fixings: Sequence[FxFixing] = ()
    availability: Sequence[Availability] = ()
    decisions: Sequence[Decision] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to publish."""
        parts = (self.records, self.offers, self.prices, self.held, self.fixings, self.availability, self.decisions)
        return not any(parts)


def publish(
    connection: Connection, content: RevisionContent, *, reason: str, actor: str, now: datetime
) -> RevisionInfo:
    """Insert a revision and everything it adds, in the caller's transaction."""
    head = repository.find_head(connection)
    number = 1 if head is None else head.number + 1
    sections = _sections(content, number)
    digest = content_hash(head.content_sha256 if head else "", sections)
    values: Values = {
        "number": number,
        "id": f"cat_{digest[:32]}",
        "parent_number": head.number if head else None,
        "content_sha256": digest,
        "recorded_at": now,
        "reason": reason,
        "actor": actor,
        "summary": dict(content.summary),
    }
    repository.insert_revision(connection, values)
    repository.insert_rows(connection, tables.record, sections["record"]())
    repository.insert_new(connection, tables.source, sections["source"]())
    repository.insert_new(connection, tables.offer, sections["offer"]())
    repository.insert_rows(connection, tables.price, ({**row, "recorded_at": now} for row in sections["price"]()))
    repository.insert_rows(connection, tables.fx_rate, sections["fx_rate"]())
    repository.insert_new(connection, tables.quarantine, sections["quarantine"]())
    repository.insert_rows(connection, tables.quarantine_decision, sections["quarantine_decision"]())
    repository.insert_rows(connection, tables.availability, sections["availability"]())
    del values["parent_number"]
    return RevisionInfo(**values)


def content_hash(parent_sha256: str, sections: Mapping[str, Section]) -> str:
    """Hash a revision's rows in a fixed order, after the hash of the revision before; the clock has no part in it.

    Rows are sorted by their own hashes, so that a large import need not stand in memory as text.
    """
    digest = hashlib.sha256(parent_sha256.encode())
    for name in sorted(sections):
        lines = sorted(
            hashlib.sha256(orjson.dumps(_plain(row), option=orjson.OPT_SORT_KEYS)).digest() for row in sections[name]()
        )
        digest.update(f"\n{name} {len(lines)}\n".encode())
        for line in lines:
            digest.update(line)
    return digest.hexdigest()


def _plain(row: Values) -> Values:
    return {name: _text(value) for name, value in row.items()}


def _text(value: Any) -> Any:
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    return value.isoformat() if isinstance(value, date) else value


def _sections(content: RevisionContent, number: int) -> dict[str, Section]:
    sources = {price.source.id: price.source for price in content.prices}
    sources.update({seen.source.id: seen.source for seen in content.availability})
    return {
        "record": lambda: (_record_values(record, number) for record in content.records),
        "source": lambda: (_source_values(source, number) for source in sources.values()),
        "offer": lambda: (_offer_values(offer, number) for offer in content.offers),
        "price": lambda: (_price_values(price, number) for price in content.prices),
        "fx_rate": lambda: _fx_values(content.fixings, number),
        "quarantine": lambda: (_held_values(key, held, number) for key, held in content.held),
        "quarantine_decision": lambda: (_decision_values(made, number) for made in content.decisions),
        "availability": lambda: (_availability_values(seen, number) for seen in content.availability),
    }


def _record_values(record: Record, number: int) -> Values:
    return {"kind": record.kind, "key": record.key, "recorded_revision": number, "payload": encode(record.payload)}


def _decision_values(made: Decision, number: int) -> Values:
    return {
        "quarantine_id": made.quarantine_id,
        "decision": made.decision,
        "reason": made.reason,
        "actor": made.actor,
        "recorded_revision": number,
    }


def _availability_values(seen: Availability, number: int) -> Values:
    return {
        "offer_id": seen.offer_id,
        "observed_on": seen.observed_on,
        "recorded_revision": number,
        "status": seen.status,
        "lead_time_days": seen.lead_time_days,
        "source_id": seen.source.id,
    }


def _source_values(source: Source, number: int) -> Values:
    return {
        "id": source.id,
        "citation": source.citation,
        "method": source.method,
        "retrieved_on": source.retrieved_on,
        "licence": source.licence,
        "recorded_revision": number,
    }


def _offer_values(offer: Offer, number: int) -> Values:
    key = offer.key
    return {
        "id": offer.id,
        "recorded_revision": number,
        "provider": key.provider,
        "sku": key.sku,
        "accelerator_label": key.accelerator_label,
        "region": key.region,
        "purchase_model": key.purchase_model,
        "product": key.product,
        "term_months": key.term_months,
        "payment_option": key.payment_option,
        "tier": key.tier,
        "tenancy": key.tenancy,
        "os": key.os,
        "scope": offer.scope,
        "sold_unit": offer.sold_unit,
        "accelerator_id": offer.accelerator_id,
        "accelerator_count": offer.accelerator_count,
        "vcpus": offer.vcpus,
        "memory_gib": offer.memory_gib,
        "node_shape_id": offer.node_shape_id,
        "min_quantity": offer.min_quantity,
        "quantity_step": offer.quantity_step,
        "indicative": offer.indicative,
        "excluded_reason": offer.excluded_reason,
        "notes": offer.notes,
    }


def _price_values(price: NewPrice, number: int) -> Values:
    identity = f"{price.offer_id}|{price.source.id}|{price.kind}|{price.valid_from}|{number}"
    return {
        "id": "prc_" + hashlib.sha256(identity.encode()).hexdigest()[:32],
        "offer_id": price.offer_id,
        "source_id": price.source.id,
        "kind": price.kind,
        "amount": price.amount,
        "currency": price.currency,
        "price_unit": price.price_unit,
        "valid_from": price.valid_from,
        "valid_to": price.valid_to,
        "observed_on": price.observed_on,
        "recorded_revision": number,
        "confidence": price.confidence,
        "note": price.note,
    }


def _fx_values(fixings: Iterable[FxFixing], number: int) -> Iterator[Values]:
    for fixing in fixings:
        yield {
            "fixed_on": fixing.fixed_on,
            "recorded_revision": number,
            "per_euro": {code: format(rate, "f") for code, rate in fixing.per_euro.items()},
            "source": fixing.source,
        }


def quarantine_id(held: Held) -> str:
    """Derive the id of a held row from what it says, so that importing the same file again adds nothing."""
    row = held.row
    body = encode(row) if isinstance(row, StagedPrice) else {"raw": dict(row.raw), "provider": row.provider}
    body.pop("line", None)
    body.pop("doubts", None)
    text = orjson.dumps([held.reason, body], option=orjson.OPT_SORT_KEYS)
    return "qrn_" + hashlib.sha256(text).hexdigest()[:32]


def _held_values(key: str, held: Held, number: int) -> Values:
    row = held.row
    rejected = isinstance(row, RejectedRow)
    return {
        "id": key,
        "provider": (row.provider or "unknown") if isinstance(row, RejectedRow) else row.key.provider,
        "offer_id": None if isinstance(row, RejectedRow) else row.offer_id,
        "reason": held.reason,
        "detail": held.detail,
        "staged": None if rejected else encode(row),
        "raw": dict(row.raw) if isinstance(row, RejectedRow) else {},
        "recorded_revision": number,
    }
