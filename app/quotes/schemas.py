"""What clients send about quotes. Answers are documents (see ``views``): content is stored and hashed as it is."""

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from app.estimates.fields import Name, Schema, Text
from app.estimates.schemas import EstimateRequest
from app.foundation.dates import DateText
from app.foundation.numbers import Count, Flag
from app.foundation.texts import Visible

MOST_TAGS = 50
MOST_COMPARED = 20

Reason = Annotated[Visible, Field(min_length=1, max_length=2000)]
OptionId = Annotated[str, Strict(), Field(min_length=1, max_length=64)]
Selections = Annotated[dict[str, OptionId], Field(description="Option chosen for an item, by item id.")]
Tag = Annotated[Visible, Field(min_length=1, max_length=64)]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS)]
RevisionCount = Annotated[Count, Field(ge=1, le=2**31 - 1)]
Sha256 = Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{64}$")]


class DraftSpec(EstimateRequest):
    """What a draft is calculated from: the body of an estimate, and which option is offered for each item."""

    selections: Selections = Field(default_factory=dict)

    def estimate_request(self) -> EstimateRequest:
        """The part that estimates know."""
        return EstimateRequest.model_validate({name: getattr(self, name) for name in EstimateRequest.model_fields})


class QuoteCreate(DraftSpec):
    """The body of ``POST /v1/quotes``: that of an estimate, and what belongs to the header."""

    external_ref: Name | None = Field(default=None, description="Your own reference, unique within your tenant.")
    owner: Name | None = None
    tags: Tags = Field(default_factory=list)


class HeaderPatch(Schema):
    """Header fields; those left out stay, null removes."""

    title: Text | None = None
    external_ref: Name | None = None
    owner: Name | None = None
    tags: Tags | None = None


class RevisionCreate(Schema):
    """A new draft from an earlier revision: at its prices (``hold``) or at today's (``reprice``)."""

    from_: Annotated[
        Name | RevisionCount | None, Field(alias="from", description="Revision id or number; the current one.")
    ] = None
    pricing: Literal["hold", "reprice"] = "reprice"
    changes: dict[str, Any] = Field(default_factory=dict, description="Merge patch (RFC 7396) onto the earlier spec.")


class Reprice(Schema):
    """What to reprice; without a body the current revision."""

    from_: Annotated[Name | RevisionCount | None, Field(alias="from")] = None
    changes: dict[str, Any] = Field(default_factory=dict)


class WithReason(Schema):
    """An action that may say why."""

    reason: Reason | None = None


class MustHaveReason(Schema):
    """An action that has to say why."""

    reason: Reason


class Approve(WithReason):
    """An approval; ``accept_stale`` lets prices older than allowed be issued."""

    waivers: list[Literal["accept_stale"]] = Field(default_factory=list, max_length=1)


class Issue(WithReason):
    """The offer's period; what is left out stays as drafted."""

    valid_through: DateText | None = None
    timezone: Name | None = None


class Signatory(Schema):
    """Who signed."""

    name: Text
    title: Text | None = None
    email: Text | None = None


class AcceptanceEvidence(Schema):
    """The signed document a seller files when a customer accepted on paper."""

    file_name: Text
    sha256: Sha256
    note: Text | None = None


class Accept(Schema):
    """What is accepted: content by its hash, and the options chosen."""

    content_sha256: Sha256
    selections: Selections = Field(default_factory=dict)
    signatory: Signatory | None = None
    evidence: AcceptanceEvidence | None = None


class ShareLinkCreate(Schema):
    """What whoever has the link may do beside reading."""

    may_accept: Flag = True


class Verify(Schema):
    """``engine: required`` refuses where the pinned engine is not the running one."""

    engine: Literal["if_available", "required"] = "if_available"


class RevisionRef(Schema):
    """One side of a comparison across quotes."""

    quote_id: Name
    revision: RevisionCount


class Compare(Schema):
    """Two or more revisions, by id or by quote and number, in the order they are compared."""

    revisions: Annotated[list[Name | RevisionRef], Field(min_length=2, max_length=MOST_COMPARED)]


class PolicyRule(Schema):
    """One threshold."""

    measure: Literal["discount", "margin", "total", "stale_lines", "price_age_days", "held_prices"]
    above: Annotated[str, Field(max_length=40)] | None = None
    below: Annotated[str, Field(max_length=40)] | None = None
    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] | None = None


class Policy(Schema):
    """An approval policy as data."""

    rules: Annotated[list[PolicyRule], Field(max_length=50)]
    longest_validity_days: Annotated[Count, Field(ge=1, le=3660)] = 366
    default_validity_days: Annotated[Count, Field(ge=1, le=3660)] = 30
    requires_tax: Annotated[Flag, Field(description="Refuse to issue an offer whose tax is not determined.")] = False
