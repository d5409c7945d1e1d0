"""What other rooms may ask of estimates: run a request through engine and pricing, or replay its money."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from app.catalog.snapshot import Snapshot
from app.engine.version import ENGINE_VERSION
from app.estimates.errors import infeasible, infeasible_everywhere, refused_field
from app.estimates.options import price_item
from app.estimates.schemas import EstimateRequest, Item
from app.estimates.serving_runs import serving_runs
from app.estimates.supply import Selection, select
from app.estimates.terms import PricedTerms, priced_terms
from app.estimates.totals import content_totals
from app.estimates.training_runs import training_runs
from app.foundation.problems import Problem

SCHEMA_VERSION = "1"
# A caller ahead of UTC may already be in tomorrow.
TIME_ZONES = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An answered request.

    Parameters
    ----------
    spec : mapping
        The request with every default written out.
    engine_outputs : mapping
        What can run, at six significant digits: all that pricing needs to replay the money.
    content : mapping
        ``items`` (options, refusals, unpriced offers), ``totals`` of the recommended options, ``completeness``, ``fx``.
    pins : mapping
        Catalog revision, engine version, day, rounding policy.
    """

    spec: Mapping[str, Any]
    engine_outputs: Mapping[str, Any]
    content: Mapping[str, Any]
    pins: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        """The body of ``POST /v1/estimates``."""
        return {"spec": self.spec, **self.content, "pins": self.pins}


def estimate(snapshot: Snapshot, request: EstimateRequest, today: date) -> Estimate:
    """Run every item and price its options.

    Parameters
    ----------
    snapshot : Snapshot
        The catalog revision the request asked for.
    today : date
        The day prices are taken at when the request names none.

    Raises
    ------
    Problem
        ``validation-failed``, ``infeasible-spec``, ``fx-unavailable``, ``as-of-out-of-range``.
    """
    as_of = price_day(request, today)
    terms = priced_terms(snapshot, request.terms, as_of)
    outputs: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for i, item in enumerate(request.items):
        at = f"/items/{i}"
        selection = _selected(snapshot, item, at)
        output = _run_item(snapshot, item, selection, at)
        priced = price_item(snapshot, item, output, selection, terms, at)
        items.append(priced)
        outputs.append(_kept(output, priced))
    return Estimate(
        spec=request.model_dump(mode="json"),
        engine_outputs={"engine_version": ENGINE_VERSION, "items": outputs},
        content=_content(items, terms),
        pins=_pins(snapshot, request, as_of),
    )


def price(
    snapshot: Snapshot, request: EstimateRequest, engine_outputs: Mapping[str, Any], today: date
) -> Mapping[str, Any]:
    """Price stored engine outputs again, without the engine; the same inputs give the same bytes.

    Parameters
    ----------
    engine_outputs : mapping
        ``Estimate.engine_outputs`` as stored.
    """
    terms = priced_terms(snapshot, request.terms, price_day(request, today))
    stored = {output["id"]: output for output in engine_outputs["items"]}
    items = []
    for i, item in enumerate(request.items):
        at = f"/items/{i}"
        items.append(price_item(snapshot, item, stored[item.id], _selected(snapshot, item, at), terms, at))
    return _content(items, terms)


def with_tenant_defaults(request: EstimateRequest, default_currency: str) -> EstimateRequest:
    """The request with the tenant's currency where it names none."""
    if "currency" in request.terms.model_fields_set or request.terms.currency == default_currency:
        return request
    terms = request.terms.model_copy(update={"currency": default_currency})
    return request.model_copy(update={"terms": terms})


def price_day(request: EstimateRequest, today: date) -> date:
    """The day whose prices apply; prices of later days are not known."""
    as_of = request.as_of or today
    if as_of > today + TIME_ZONES:
        raise Problem(
            "as-of-out-of-range",
            f"as_of {as_of} lies in the future; prices are known up to {today}. Leave it out for today's prices.",
            nearest={"/as_of": today.isoformat()},
        )
    return as_of


def _selected(snapshot: Snapshot, item: Item, at: str) -> Selection:
    selection = select(snapshot, item.supply, f"{at}/supply")
    if not selection.candidates:
        raise _nothing_to_run_on(selection, at)
    return selection


def _nothing_to_run_on(selection: Selection, at: str) -> Problem:
    if selection.skipped:
        first = selection.skipped[0]
        return infeasible(
            f"{at}/supply",
            first.code,
            f"Nothing in the supply can be quoted: {first.subject}: {first.reason}.",
            {},
            skipped=[s.as_json() for s in selection.skipped],
        )
    return refused_field(
        f"{at}/supply",
        "not_offered",
        "The catalog holds no offer that matches accelerators, providers, regions and purchase models together; "
        "leave one of them out, or look at GET /v1/catalog/offers.",
    )


def _run_item(snapshot: Snapshot, item: Item, selection: Selection, at: str) -> dict[str, Any]:
    run = training_runs if item.job.kind == "training" else serving_runs
    runs, refused = run(snapshot, item, selection, at)
    if not runs:
        raise infeasible_everywhere(f"{at}/job", refused)
    _check_deadline(item, runs, at)
    return {
        "id": item.id,
        "runs": runs,
        "refused": [
            {"hardware": key, "rule": r.rule, "message": r.message, "nearest": dict(r.nearest)}
            for key, r in sorted(refused.items())
        ],
        "considered": len(runs),
    }


def _check_deadline(item: Item, runs: list[dict[str, Any]], at: str) -> None:
    deadline = item.constraints.deadline_hours
    if deadline is None or item.job.kind != "training":
        return
    fastest = min(runs, key=lambda r: (r["duration_hours"]["p50"], r["key"]))
    hours = fastest["duration_hours"]["p50"]
    if hours > deadline:
        raise infeasible(
            f"{at}/constraints/deadline_hours",
            "deadline_hours",
            f"the fastest option found takes {hours:g} h ({fastest['accelerators']} x {fastest['accelerator']}), "
            f"more than the {deadline:g} h allowed",
            {f"{at}/constraints/deadline_hours": hours},
        )


def _kept(output: dict[str, Any], priced: Mapping[str, Any]) -> dict[str, Any]:
    """Only the runs behind the options that are shown: a replay ranks the same ones the same way."""
    shown = {option["run_key"] for option in priced["options"]}
    return {**output, "runs": [run for run in output["runs"] if run["key"] in shown]}


def _content(items: list[dict[str, Any]], terms: PricedTerms) -> dict[str, Any]:
    totals, completeness = content_totals(items, terms)
    return {
        "items": items,
        "totals": totals,
        "completeness": completeness,
        "currency": terms.currency,
        "as_of": terms.as_of.isoformat(),
        "fx": terms.fx_json(
            c for item in items for option in item["options"] for c in option["cost"]["converted_from"]
        ),
        "tax_note": "an estimate, not tax advice",
    }


def _pins(snapshot: Snapshot, request: EstimateRequest, as_of: date) -> dict[str, Any]:
    return {
        "catalog_revision": snapshot.revision_id,
        "catalog_revision_number": snapshot.number,
        "catalog_content_sha256": snapshot.content_sha256,
        "engine_version": ENGINE_VERSION,
        "as_of": as_of.isoformat(),
        "rounding_policy": request.terms.rounding_policy,
        "schema_version": SCHEMA_VERSION,
    }
