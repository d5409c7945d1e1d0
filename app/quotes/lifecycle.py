"""The ten states of a revision and the transitions between them, as data.

The table below is the only place that knows what may follow what, who may do it and what must hold before. The
service evaluates preconditions; it never decides order.
"""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """State of one revision."""

    DRAFT = "draft"
    IN_REVIEW = "in_review"
    APPROVED = "approved"
    ISSUED = "issued"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"
    CANCELLED = "cancelled"


class Action(StrEnum):
    """What moves a revision from one state to another (or, for ``edit``, changes a draft)."""

    EDIT = "edit"
    SUBMIT = "submit"
    APPROVE = "approve"
    REJECT = "reject"
    ISSUE = "issue"
    ACCEPT = "accept"
    DECLINE = "decline"
    WITHDRAW = "withdraw"
    CANCEL = "cancel"
    EXPIRE = "expire"
    SUPERSEDE = "supersede"


class Party(StrEnum):
    """Who acts, in the words of a sale."""

    AUTHOR = "author"
    APPROVER = "approver"
    SELLER = "seller"
    BUYER = "buyer"
    SYSTEM = "system"


class Precondition(StrEnum):
    """What must hold before a transition; the service knows how to check each."""

    IF_MATCH = "if_match"
    COMPLETE = "complete"
    REVIEW_NEEDED = "review_needed"
    INSIDE_POLICY = "inside_policy"
    NOT_AN_AUTHOR = "not_an_author"
    CONTENT_UNCHANGED = "content_unchanged"
    REASON_GIVEN = "reason_given"
    PRICES_FRESH_OR_WAIVED = "prices_fresh_or_waived"
    VALID_TODAY = "valid_today"
    NOT_EXPIRED = "not_expired"
    CONTENT_MATCHES = "content_matches"


WRITE = "quotes:write"
APPROVE = "quotes:approve"
ISSUE = "quotes:issue"
ACCEPT = "quotes:accept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """One row of the table.

    ``scopes`` lists alternatives: any one of them is enough; empty means only the system acts.
    """

    source: Status
    action: Action
    target: Status
    party: Party
    scopes: tuple[str, ...] = ()
    preconditions: tuple[Precondition, ...] = ()


def _closing(action: Action, target: Status, *sources: Status) -> tuple[Transition, ...]:
    return tuple(Transition(source=source, action=action, target=target, party=Party.SYSTEM) for source in sources)


def _cancelling(*sources: Status) -> tuple[Transition, ...]:
    return tuple(
        Transition(
            source=source,
            action=Action.CANCEL,
            target=Status.CANCELLED,
            party=Party.AUTHOR,
            scopes=(WRITE, APPROVE),
        )
        for source in sources
    )


TRANSITIONS: tuple[Transition, ...] = (
    Transition(
        source=Status.DRAFT,
        action=Action.EDIT,
        target=Status.DRAFT,
        party=Party.AUTHOR,
        scopes=(WRITE,),
        preconditions=(Precondition.IF_MATCH,),
    ),
    Transition(
        source=Status.DRAFT,
        action=Action.SUBMIT,
        target=Status.IN_REVIEW,
        party=Party.AUTHOR,
        scopes=(WRITE,),
        preconditions=(Precondition.COMPLETE, Precondition.REVIEW_NEEDED),
    ),
    Transition(
        source=Status.DRAFT,
        action=Action.SUBMIT,
        target=Status.APPROVED,
        party=Party.AUTHOR,
        scopes=(WRITE,),
        preconditions=(Precondition.COMPLETE, Precondition.INSIDE_POLICY),
    ),
    Transition(
        source=Status.IN_REVIEW,
        action=Action.APPROVE,
        target=Status.APPROVED,
        party=Party.APPROVER,
        scopes=(APPROVE,),
        preconditions=(Precondition.NOT_AN_AUTHOR, Precondition.CONTENT_UNCHANGED),
    ),
    Transition(
        source=Status.IN_REVIEW,
        action=Action.REJECT,
        target=Status.DRAFT,
        party=Party.APPROVER,
        scopes=(APPROVE,),
        preconditions=(Precondition.REASON_GIVEN,),
    ),
    Transition(
        source=Status.APPROVED,
        action=Action.ISSUE,
        target=Status.ISSUED,
        party=Party.SELLER,
        scopes=(ISSUE,),
        preconditions=(Precondition.COMPLETE, Precondition.PRICES_FRESH_OR_WAIVED, Precondition.VALID_TODAY),
    ),
    Transition(
        source=Status.ISSUED,
        action=Action.ACCEPT,
        target=Status.ACCEPTED,
        party=Party.BUYER,
        scopes=(ACCEPT, ISSUE),
        preconditions=(Precondition.NOT_EXPIRED, Precondition.CONTENT_MATCHES),
    ),
    Transition(
        source=Status.ISSUED,
        action=Action.DECLINE,
        target=Status.DECLINED,
        party=Party.BUYER,
        scopes=(ACCEPT,),
        preconditions=(Precondition.NOT_EXPIRED,),
    ),
    Transition(
        source=Status.ISSUED,
        action=Action.WITHDRAW,
        target=Status.WITHDRAWN,
        party=Party.SELLER,
        scopes=(ISSUE,),
        preconditions=(Precondition.REASON_GIVEN, Precondition.NOT_EXPIRED),
    ),
    *_cancelling(Status.DRAFT, Status.IN_REVIEW, Status.APPROVED),
    *_closing(Action.EXPIRE, Status.EXPIRED, Status.ISSUED),
    *_closing(Action.SUPERSEDE, Status.SUPERSEDED, Status.ISSUED, Status.APPROVED, Status.IN_REVIEW),
)

TERMINAL: frozenset[Status] = frozenset(
    {
        Status.ACCEPTED,
        Status.DECLINED,
        Status.WITHDRAWN,
        Status.EXPIRED,
        Status.SUPERSEDED,
        Status.CANCELLED,
    }
)

# From issued on the content never changes again; the database refuses it as well (see migrations).
IMMUTABLE: frozenset[Status] = TERMINAL | {Status.ISSUED}

PAST_TENSE: dict[Action, str] = {
    Action.SUBMIT: "submitted",
    Action.APPROVE: "approved",
    Action.REJECT: "rejected",
    Action.ISSUE: "issued",
    Action.ACCEPT: "accepted",
    Action.DECLINE: "declined",
    Action.WITHDRAW: "withdrawn",
    Action.CANCEL: "cancelled",
    Action.EXPIRE: "expired",
    Action.SUPERSEDE: "superseded",
    Action.EDIT: "edited",
}


def transitions_for(status: Status, action: Action) -> tuple[Transition, ...]:
    """Give every row that starts from this state with this action; more than one when policy decides the target."""
    return tuple(row for row in TRANSITIONS if row.source is status and row.action is action)


def allowed_actions(status: Status) -> tuple[Action, ...]:
    """Give the actions a caller may ask for in this state, in the order of the table."""
    seen: dict[Action, None] = {}
    for row in TRANSITIONS:
        if row.source is status and row.party is not Party.SYSTEM:
            seen[row.action] = None
    return tuple(seen)
