"""What is asked of drafts, as work that can be answered at once or run as a job: a new quote, a new revision."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from sqlalchemy import Connection

from app.access.principal import COSTS, Principal
from app.foundation.clock import Clock
from app.foundation.idempotency import Answer
from app.jobs.job import Kinds
from app.quotes.acting import Acting
from app.quotes.calculation import Calculation
from app.quotes.calling import revision_answer
from app.quotes.comparing import compare
from app.quotes.drafting import HeaderFields, Prepared, add_revision, create_quote
from app.quotes.errors import quote_path
from app.quotes.preparing import plan_new, plan_revision
from app.quotes.reading import find_base
from app.quotes.records import Revision
from app.quotes.schemas import QuoteCreate
from app.quotes.separating import between_draft
from app.quotes.views import quote_view, revision_view


@dataclass(frozen=True, slots=True, kw_only=True)
class NewQuote:
    """A quote with its first draft. ``sent`` is the body as it came, so that a job reads what the request read."""

    kind: ClassVar[str] = "quote.create"
    acting: Acting
    today: date
    sent: Mapping[str, Any]
    body: QuoteCreate

    def arguments(self) -> Mapping[str, Any]:
        """What a job keeps."""
        return {"today": self.today.isoformat(), "body": self.sent}

    @classmethod
    def made_again(cls, principal: Principal, clock: Clock, arguments: Mapping[str, Any]) -> "NewQuote":
        """From what a job kept."""
        return cls(
            acting=Acting(principal=principal, clock=clock),
            today=date.fromisoformat(arguments["today"]),
            sent=arguments["body"],
            body=QuoteCreate.model_validate(arguments["body"]),
        )

    def look_up(self, connection: Connection) -> Callable[[], Prepared]:
        """Read catalog and price book."""
        currency = self.acting.principal.default_currency
        return plan_new(connection, self.acting.tenant_id, self.body, currency=currency, today=self.today).run

    def store(self, connection: Connection, result: Prepared) -> Answer:
        """Keep the quote and show it with its draft."""
        header = HeaderFields(
            title=self.body.title,
            external_ref=self.body.external_ref,
            owner=self.body.owner,
            tags=tuple(self.body.tags),
        )
        quote, revision = create_quote(connection, self.acting, result, header)
        now = self.acting.now(connection)
        view = revision_view(revision, None, now, with_costs=self.acting.principal.has(COSTS))
        return Answer(
            status=201,
            body={**quote_view(quote, now), "current_revision": view},
            headers={"Location": quote_path(quote.id), "ETag": quote.etag_at(now), "Cache-Control": "no-store"},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FromBase:
    """A draft with the revision it was made from, which need not be the current one any more.

    ``prepared`` is None where the earlier prices are held; ``between`` is the earlier job on the engine of the draft.
    """

    base: Revision
    prepared: Prepared | None = None
    between: Calculation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRevision:
    """The next draft of a quote, from an earlier revision."""

    kind: ClassVar[str] = "quote.draft_revision"
    acting: Acting
    today: date
    quote_id: str
    source: str | int | None
    pricing: str
    changes: Mapping[str, Any]

    def arguments(self) -> Mapping[str, Any]:
        """What a job keeps."""
        kept = {name: getattr(self, name) for name in ("quote_id", "source", "pricing", "changes")}
        return {"today": self.today.isoformat(), **kept}

    @classmethod
    def made_again(cls, principal: Principal, clock: Clock, arguments: Mapping[str, Any]) -> "NewRevision":
        """From what a job kept."""
        today = date.fromisoformat(arguments["today"])
        return cls(acting=Acting(principal=principal, clock=clock), **{**arguments, "today": today})

    def look_up(self, connection: Connection) -> Callable[[], "FromBase"]:
        """Read the earlier revision, catalog and price book; holding everything calculates nothing."""
        base = find_base(connection, self.acting.tenant_id, self.quote_id, self.source)
        plan = plan_revision(connection, base, self.changes, pricing=self.pricing, today=self.today)

        def calculate() -> FromBase:
            if plan is None:
                return FromBase(base=base)
            prepared = plan.run()
            between = between_draft(base, prepared, plan.calculator)
            return FromBase(base=base, prepared=prepared, between=between)

        return calculate

    def store(self, connection: Connection, result: "FromBase") -> Answer:
        """Keep the draft and say why the total moved."""
        base = result.base
        quote, revision = add_revision(
            connection, self.acting, self.quote_id, base.head.n, pricing=self.pricing, prepared=result.prepared
        )
        answer = revision_answer(quote, revision, self.acting, connection, status=201)
        sides = [(base, quote.number), (revision, quote.number)]
        compared = compare(sides, with_costs=self.acting.principal.has(COSTS), between=[result.between])["changes"][0]
        supply = list(result.prepared.supply) if result.prepared else []
        return Answer(status=201, headers=answer.headers, body={**answer.body, "changed": compared, "supply": supply})


KINDS: Kinds = {NewQuote.kind: NewQuote.made_again, NewRevision.kind: NewRevision.made_again}
