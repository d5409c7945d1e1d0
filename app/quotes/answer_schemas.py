"""The shape of quotes, revisions and what is said about them, for the API document."""

from typing import Any, Literal

from pydantic import Field

from app.access.schemas import AuditPage
from app.estimates.answer_schemas import CompletenessAnswer, ItemAnswer, Label, MoneyAnswer, TotalsAnswer
from app.foundation.answers import Shown
from app.quotes.lifecycle import Action, Status

__all__ = ["AuditPage"]


class CustomerAnswer(Shown):
    """For whom the quote is."""

    external_ref: str | None
    name: str | None


class QuoteLinks(Shown):
    """Where the quote and its current revision are read."""

    self: str
    current: str


class QuoteHeader(Shown):
    """A quote without content. ``net_total`` is null where a line has no price: a missing price is never zero."""

    id: str
    number: str | None = Field(description="Given when a revision is first issued.")
    title: str | None
    customer: CustomerAnswer
    external_ref: str | None
    owner: str
    tags: list[str]
    status: Status
    revision: int = Field(description="Number of the current revision.")
    latest_revision: int
    expires_at: str | None
    net_total: MoneyAnswer | None
    created_by: str
    created_at: str
    updated_at: str
    links: QuoteLinks


class RevisionHeadAnswer(Shown):
    """A revision without its content."""

    id: str
    quote_id: str
    revision: int
    etag: str = Field(description="What If-Match has to say to change it.")
    status: Status
    number: str | None
    display_number: str | None
    pricing: Literal["new", "hold", "reprice"]
    based_on: int | None
    amends: int | None
    content_sha256: str
    complete: bool
    net_total: MoneyAnswer | None
    valid_through: str
    timezone: str
    expires_at: str
    catalog_revision: str
    engine_version: str
    authors: list[str]
    review: dict[str, Any] | None
    approval: dict[str, Any] | None
    approved_by: str | None
    created_by: str
    created_at: str
    updated_at: str
    issued_by: str | None
    issued_at: str | None
    closed_by: str | None
    closed_at: str | None
    closed_reason: str | None
    allowed_actions: list[Action]


class ValidityAnswer(Shown):
    """How long the offer stands: the last local day is inclusive, ``expires_at`` is exclusive."""

    from_: str = Field(alias="from")
    through: str
    timezone: str
    expires_at: str


class AcceptanceAnswer(Shown):
    """What was accepted, by whom."""

    id: str
    content_sha256: str
    selections: dict[str, str]
    totals: TotalsAnswer
    accepted_by: str
    accepted_at: str


class RevisionAnswer(RevisionHeadAnswer):
    """A revision in full: the hashed content as it is stored, and what is said about it."""

    spec: dict[str, Any]
    items: list[ItemAnswer]
    totals: TotalsAnswer | None
    fx: list[dict[str, Any]]
    lifetime: dict[str, Any] | None
    pins: dict[str, str | None]
    validity: ValidityAnswer
    parties: dict[str, Any]
    completeness: CompletenessAnswer
    acceptance: AcceptanceAnswer | None


class QuoteAnswer(QuoteHeader):
    """A quote with its current revision."""

    current_revision: RevisionAnswer


class DriftAnswer(Shown):
    """Why a total moved; ``effects`` with ``costs:read`` only, nothing but a reason where a side has no total."""

    available: bool
    reason: str | None = None
    before: MoneyAnswer | None = None
    after: MoneyAnswer | None = None
    change: MoneyAnswer | None = None
    effects: dict[str, Any] | None = None


class ChangeAnswer(Shown):
    """From one revision to the next."""

    from_: str = Field(alias="from")
    to: str
    spec_changes: list[str]
    pin_changes: list[str]
    drift: DriftAnswer


class DraftedRevision(RevisionAnswer):
    """A new draft, and what changed since the revision it was made from."""

    changed: ChangeAnswer


class QuotePage(Shown):
    """A page of quotes."""

    items: list[QuoteHeader]
    next_cursor: str | None


class RevisionPage(Shown):
    """The revisions of a quote."""

    items: list[RevisionHeadAnswer]
    next_cursor: str | None


class ComparisonAnswer(Shown):
    """Revisions side by side, with the way from each to the next."""

    revisions: list[dict[str, Any]]
    changes: list[ChangeAnswer]


class AffectedRow(Shown):
    """One open revision, repriced at another catalog revision; ``moved`` is null where it cannot be."""

    quote_id: str
    number: str | None
    revision: int
    revision_id: str
    status: Status
    catalog_revision: str
    catalog_diff: str
    moved: bool | None
    drift: DriftAnswer
    supply: list[dict[str, Any]]


class AffectedPage(Shown):
    """A page of open revisions that were repriced."""

    items: list[AffectedRow]
    next_cursor: str | None


class VerdictParts(Shown):
    """What was replayed."""

    content: str
    money: str
    engine: str


class VerdictEngine(Shown):
    """The engine that made the revision, and the one that runs here."""

    pinned: str
    running: str


class VerdictAnswer(Shown):
    """What verification found."""

    match: bool
    stored_sha256: str
    recomputed_sha256: str | None
    parts: VerdictParts
    differences: list[Any]
    engine: VerdictEngine


class ExplainedItem(Shown):
    """Why one item costs what it costs."""

    id: str
    option_id: str | None
    label: Label | None = None


class ExplanationAnswer(Shown):
    """Waterfall, assumptions, evidence and sensitivity of the selected options."""

    revision: int
    content_sha256: str
    totals: TotalsAnswer | None
    pins: dict[str, Any]
    items: list[ExplainedItem]


class PolicyRuleAnswer(Shown):
    """One threshold."""

    measure: str
    above: str | None = None
    below: str | None = None
    currency: str | None = None


class PolicyAnswer(Shown):
    """The approval policy in force."""

    version: int
    rules: list[PolicyRuleAnswer]
    longest_validity_days: int
    default_validity_days: int
    requires_tax: bool


class ShareLinkAnswer(Shown):
    """A link to one issued revision; the token is told once, and null in the replay of a retry."""

    id: str
    opens: str
    may_accept: bool
    expires_at: str
    token: str | None
