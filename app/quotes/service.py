"""What routes, commands and other rooms may ask of quotes. Every function takes the connection and never commits."""

from app.quotes.acting import Acting
from app.quotes.affected import answer as affected_answer
from app.quotes.affected import read_affected
from app.quotes.calculation import Calculation, Calculator, calculator_for
from app.quotes.comparing import compare
from app.quotes.content import open_content
from app.quotes.drafting import (
    HeaderFields,
    Prepared,
    add_revision,
    create_quote,
    edit_draft,
)
from app.quotes.errors import revision_path
from app.quotes.explaining import explain
from app.quotes.heading import edit_header
from app.quotes.issuing import AcceptanceTerms, accept, decline, expire_overdue, issue, withdraw
from app.quotes.lifecycle import Status
from app.quotes.numbering import display_number
from app.quotes.policies import current_policy, set_policy
from app.quotes.policy import ApprovalPolicy
from app.quotes.preparing import Plan, plan_edit, plan_new, plan_revision
from app.quotes.reading import (
    Filters,
    Shown,
    find_base,
    find_quote,
    list_quotes,
    list_revisions,
    page_quotes,
    pinned_calculator,
    show,
    show_by_id,
)
from app.quotes.records import Quote, Revision
from app.quotes.reviewing import approve, cancel, reject, submit
from app.quotes.separating import Sides, between_draft, compare_sides, read_sides
from app.quotes.verifying import Verdict, verify

__all__ = [
    "AcceptanceTerms",
    "Acting",
    "ApprovalPolicy",
    "Calculation",
    "Calculator",
    "Filters",
    "HeaderFields",
    "Plan",
    "Prepared",
    "Quote",
    "Revision",
    "Shown",
    "Sides",
    "Status",
    "Verdict",
    "accept",
    "add_revision",
    "affected_answer",
    "approve",
    "between_draft",
    "calculator_for",
    "cancel",
    "compare",
    "compare_sides",
    "create_quote",
    "current_policy",
    "decline",
    "display_number",
    "edit_draft",
    "edit_header",
    "expire_overdue",
    "explain",
    "find_base",
    "find_quote",
    "issue",
    "list_quotes",
    "list_revisions",
    "open_content",
    "page_quotes",
    "pinned_calculator",
    "plan_edit",
    "plan_new",
    "plan_revision",
    "read_affected",
    "read_sides",
    "reject",
    "revision_path",
    "set_policy",
    "show",
    "show_by_id",
    "submit",
    "verify",
    "withdraw",
]
