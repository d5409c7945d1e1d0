"""Rows of the room as frozen values, as the service and other rooms see them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from app.quotes.lifecycle import IMMUTABLE, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """The header: what does not change with a revision, and where the current one stands."""

    tenant_id: str
    id: str
    number: str | None
    title: str | None
    customer_ref: str | None
    customer_name: str | None
    external_ref: str | None
    owner: str
    tags: tuple[str, ...]
    status: Status
    current_n: int
    latest_n: int
    expires_at: datetime | None
    currency: str | None
    net_total: Decimal | None
    version: int
    created_by: str
    created_at: datetime
    updated_at: datetime

    @property
    def etag(self) -> str:
        """Strong tag of the header."""
        return f'"q{self.version}"'

    def etag_at(self, now: datetime) -> str:
        """Tag with the status it is shown in: an offer that ended by itself looks different without a write."""
        status = self.status_at(now)
        return self.etag if status is self.status else f'"q{self.version}-{status}"'

    def status_at(self, now: datetime) -> Status:
        """Status as it is at ``now``: an offer past its end is expired, whether or not somebody wrote that down."""
        return effective_status(self.status, self.expires_at, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionHead:
    """A revision without its content."""

    tenant_id: str
    id: str
    quote_id: str
    n: int
    edit: int
    status: Status
    pricing: str
    based_on_n: int | None
    amends_n: int | None
    content_sha256: str
    complete: bool
    currency: str | None
    net_total: Decimal | None
    valid_from_on: date
    valid_through_on: date
    timezone: str
    expires_at: datetime
    catalog_revision: str
    engine_version: str
    authors: tuple[str, ...]
    edits: tuple[Mapping[str, Any], ...]
    submitted_sha256: str | None
    review: Mapping[str, Any] | None
    approval: Mapping[str, Any] | None
    created_by: str
    created_at: datetime
    updated_at: datetime
    issued_by: str | None
    issued_at: datetime | None
    closed_by: str | None
    closed_at: datetime | None
    closed_reason: str | None

    @property
    def etag(self) -> str:
        """Strong tag: edition of a draft, content hash of an issued revision, hash and state after that."""
        return self.etag_as(self.status)

    def etag_as(self, status: Status) -> str:
        """Give the tag with the state it is shown in."""
        if status is Status.ISSUED:
            return f'"{self.content_sha256}"'
        if status in IMMUTABLE:
            return f'"{self.content_sha256}-{status}"'
        return f'"r{self.n}.{self.edit}"'

    def changed_since(self, edit: int) -> list[str]:
        """List the places that editions after ``edit`` changed."""
        later = (place for entry in self.edits if entry["edit"] > edit for place in entry["changed"])
        return list(dict.fromkeys(later))

    def status_at(self, now: datetime) -> Status:
        """Status as it is at ``now``."""
        return effective_status(self.status, self.expires_at, now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revision with its stored bytes."""

    head: RevisionHead
    content_text: str
    engine_outputs_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """Who accepted which content and which options."""

    id: str
    quote_id: str
    revision_id: str
    content_sha256: str
    selections: Mapping[str, str]
    totals: Mapping[str, Any]
    signatory: Mapping[str, Any] | None
    evidence: Mapping[str, Any] | None
    accepted_by: str
    on_behalf_of: str | None
    accepted_at: datetime


def effective_status(status: Status, expires_at: datetime | None, now: datetime) -> Status:
    """Read ``issued`` as ``expired`` from the instant of its end on; reading never writes."""
    if status is Status.ISSUED and expires_at is not None and now >= expires_at:
        return Status.EXPIRED
    return status
