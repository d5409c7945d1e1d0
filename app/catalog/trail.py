"""Entries of the audit chain for what moves prices: price books, and changes of the shared catalog by a caller."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.access import audit
from app.access.principal import Principal
from app.catalog.codec import encode
from app.catalog.pricebooks import PriceBook
from app.catalog.repository import RevisionInfo
from app.foundation.canonical import canonical_sha256


def record_book(connection: Connection, principal: Principal, before: PriceBook | None, after: PriceBook) -> None:
    """Record a version of a price book; the hashes cover its rules, which the entry itself does not show."""
    action = "withdraw" if after.withdrawn else "create" if before is None else "replace"
    audit.record(
        connection,
        principal=principal,
        at=after.recorded_at,
        action=f"price-book.{action}",
        subject=after.id,
        before_sha256=None if before is None else canonical_sha256(encode(before)),
        after_sha256=canonical_sha256(encode(after)),
        details={"name": after.name, "version": after.version},
    )


def record_revision(
    connection: Connection,
    principal: Principal,
    before: RevisionInfo,
    after: RevisionInfo,
    *,
    action: str,
    subject: str,
    at: datetime,
    reason: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record that the caller published a catalog revision, with the content hashes of the one before and of this."""
    audit.record(
        connection,
        principal=principal,
        at=at,
        action=f"catalog.{action}",
        subject=subject,
        before_sha256=before.content_sha256,
        after_sha256=after.content_sha256,
        reason=reason,
        details={"catalog_revision": after.id, **(details or {})},
    )
