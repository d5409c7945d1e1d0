import pytest

from app.quotes.lifecycle import (
    IMMUTABLE,
    TERMINAL,
    TRANSITIONS,
    Action,
    Party,
    Precondition,
    Status,
    allowed_actions,
    transitions_for,
)


def test_there_are_ten_states() -> None:
    assert len(Status) == 10


def test_every_state_is_reached_from_draft() -> None:
    reached = {Status.DRAFT}
    for _ in Status:
        reached |= {row.target for row in TRANSITIONS if row.source in reached}
    assert reached == set(Status)


def test_nothing_leaves_a_terminal_state() -> None:
    assert not [row for row in TRANSITIONS if row.source in TERMINAL]
    assert all(not allowed_actions(status) for status in TERMINAL)


def test_every_other_state_can_be_left() -> None:
    assert {row.source for row in TRANSITIONS if row.target is not row.source} == set(Status) - TERMINAL


def test_nothing_returns_from_immutable_to_editable() -> None:
    assert not [row for row in TRANSITIONS if row.source in IMMUTABLE and row.target not in IMMUTABLE]


def test_only_the_system_acts_without_a_scope() -> None:
    for row in TRANSITIONS:
        assert (row.party is Party.SYSTEM) == (not row.scopes), row


def test_approval_is_not_for_authors_and_never_of_changed_content() -> None:
    (row,) = transitions_for(Status.IN_REVIEW, Action.APPROVE)
    assert row.scopes == ("quotes:approve",)
    assert {Precondition.NOT_AN_AUTHOR, Precondition.CONTENT_UNCHANGED} <= set(row.preconditions)


def test_accept_is_guarded_by_clock_and_content() -> None:
    (row,) = transitions_for(Status.ISSUED, Action.ACCEPT)
    assert {Precondition.NOT_EXPIRED, Precondition.CONTENT_MATCHES} <= set(row.preconditions)


@pytest.mark.parametrize("status", [Status.ISSUED, *sorted(TERMINAL)])
def test_no_edit_from_issued_on(status: Status) -> None:
    assert not transitions_for(status, Action.EDIT)


def test_allowed_actions_name_what_a_caller_may_ask() -> None:
    assert allowed_actions(Status.ISSUED) == (Action.ACCEPT, Action.DECLINE, Action.WITHDRAW)
    assert allowed_actions(Status.DRAFT) == (Action.EDIT, Action.SUBMIT, Action.CANCEL)
