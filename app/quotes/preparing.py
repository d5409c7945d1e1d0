"""The calculation behind a draft, made before the transaction that stores it because the engine may take long."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import orjson
from sqlalchemy import Connection

from app.estimates import service as estimates
from app.foundation.problem_handlers import validated
from app.quotes.calculation import Calculator, calculator_for
from app.quotes.composing import check_selections
from app.quotes.content import Pins, open_content
from app.quotes.drafting import Prepared
from app.quotes.keeping import own_choices, report, select, supply_of
from app.quotes.mergepatch import merge_patch
from app.quotes.options import Json, selected_options
from app.quotes.records import Revision
from app.quotes.schemas import DraftSpec

# Fields of a spec that say when it is priced: repricing means today, so it drops them.
_PRICING_DAY = ("as_of", "catalog_revision")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be calculated, and with what: everything a calculation reads from the database.

    Parameters
    ----------
    chosen : mapping
        Selections the caller asks for; an unknown one is refused.
    before : mapping
        Options of the earlier revision whose supply is kept, by item.
    known : mapping
        Every option of the earlier revision by its id: one that the caller chooses again is kept as well.
    as_of : date
        Pricing day of a spec that names none.
    held : Revision or None
        Revision whose engine outputs are kept: only the money is worked out again.
    """

    spec: Mapping[str, Any]
    chosen: Mapping[str, str]
    calculator: Calculator
    as_of: date
    today: date
    before: Mapping[str, Json | None] = field(default_factory=dict)
    known: Mapping[str, Json] = field(default_factory=dict)
    held: Revision | None = None

    def run(self) -> Prepared:
        """Ask the engine and price; slow, touches no database."""
        engine = None
        again = {item: self.known.get(option) for item, option in self.chosen.items()}
        keep = supply_of({**self.before, **again})
        if self.held is None:
            calculation = self.calculator.calculate(self.spec, as_of=self.as_of, today=self.today, keep=keep)
        else:
            outputs = orjson.loads(self.held.engine_outputs_text)
            calculation = self.calculator.price_again(self.spec, outputs, as_of=self.as_of, keep=keep)
            pins = Pins.from_content(open_content(self.held.content_text)["pins"])
            engine = (pins.engine_version, pins.engine_build)
        check_selections(calculation.items, self.chosen)
        selections = select(calculation.items, self.before, self.chosen)
        return Prepared(
            spec=self.spec,
            calculation=calculation,
            selections=selections,
            engine=engine,
            supply=report(calculation.items, self.before, selections, self.chosen),
        )


def plan_new(connection: Connection, tenant_id: str, body: DraftSpec, *, currency: str, today: date) -> Plan:
    """Plan the first draft of a quote."""
    spec = estimates.with_tenant_defaults(body.estimate_request(), currency).model_dump(mode="json")
    return Plan(
        spec=spec,
        chosen=body.selections,
        calculator=calculator_for(connection, tenant_id, spec),
        as_of=today,
        today=today,
    )


def plan_edit(connection: Connection, base: Revision, patch: Mapping[str, Any], *, today: date) -> Plan:
    """Plan a change of a draft: it stays at the day and catalog revision it was priced at, until it is repriced.

    Options that somebody chose stay; so does what a reprice or a hold kept.
    """
    return _plan_at_pins(connection, base, patch, today=today, hold=base.head.pricing == "hold")


def plan_revision(
    connection: Connection,
    base: Revision,
    changes: Mapping[str, Any],
    *,
    pricing: str,
    today: date,
    catalog_revision: str | None = None,
) -> Plan | None:
    """Plan a new draft from an earlier revision, on the supply it selected; None where all but the period is held.

    ``catalog_revision`` is the one to reprice at where the changes name none; None = the newest.
    """
    if pricing == "hold":
        return _plan_at_pins(connection, base, changes, today=today, hold=True) if changes else None
    content = open_content(base.content_text)
    fresh = {name: value for name, value in content["spec"].items() if name not in _PRICING_DAY}
    terms = {name: value for name, value in (fresh.get("terms") or {}).items() if name != "valid_through"}
    spec, chosen = _patched({**fresh, "terms": terms}, changes)
    return Plan(
        spec=spec,
        chosen=chosen,
        before=selected_options(content["items"]),
        known=_options(content),
        calculator=calculator_for(connection, base.head.tenant_id, spec, catalog_revision=catalog_revision),
        as_of=today,
        today=today,
    )


def _plan_at_pins(connection: Connection, base: Revision, patch: Mapping[str, Any], *, today: date, hold: bool) -> Plan:
    content = open_content(base.content_text)
    pins = Pins.from_content(content["pins"])
    spec, chosen = _patched(content["spec"], patch)
    same_day = all(spec[name] == content["spec"][name] for name in _PRICING_DAY)
    same_book = spec["terms"]["price_book"] == content["spec"]["terms"]["price_book"]
    calculator = calculator_for(
        connection,
        base.head.tenant_id,
        spec,
        catalog_revision=pins.catalog_revision if same_day else None,
        price_book_version=pins.price_book_version if same_book else None,
    )
    keeps_outputs = hold and same_day and spec["items"] == content["spec"]["items"]
    return Plan(
        spec=spec,
        chosen=chosen,
        before=own_choices(content) if base.head.pricing == "new" and not hold else selected_options(content["items"]),
        known=_options(content),
        calculator=calculator,
        as_of=date.fromisoformat(pins.as_of) if same_day else today,
        today=today,
        held=base if keeps_outputs else None,
    )


def _patched(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Apply a merge patch and read the result as strictly as a body that was sent whole."""
    merged = merge_patch(spec, patch)
    body = validated(DraftSpec, merged)
    return body.estimate_request().model_dump(mode="json"), body.selections


def _options(content: Json) -> dict[str, Json]:
    return {option["id"]: option for item in content["items"] for option in item["options"]}
