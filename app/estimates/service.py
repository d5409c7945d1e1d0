"""What other rooms may ask of estimates: run a request through engine and pricing, or replay its money."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import Connection

from app.catalog import service as catalog
from app.catalog.days import check_day
from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.engine.version import ENGINE_VERSION
from app.estimates.bill import Run
from app.estimates.comparisons import lifetime
from app.estimates.disclosure import without_costs, without_list_prices
from app.estimates.errors import infeasible, refused_field
from app.estimates.evidence import nearest_measurements
from app.estimates.item_runs import run_item
from app.estimates.keeping import Kept, nearest_option
from app.estimates.options import price_item
from app.estimates.physical import Physical, machines, model_parallel_minimum, physical
from app.estimates.scaling import ScalingPoint, curve, sizes
from app.estimates.schemas import EstimateRequest, Item
from app.estimates.sensitivity import Limits, sensitivity
from app.estimates.supply import NOT_ASKED, Selection, select
from app.estimates.terms import PricedTerms, priced_terms
from app.estimates.totals import content_totals
from app.foundation.problems import Problem

__all__ = [
    "Estimate",
    "Kept",
    "Limits",
    "Physical",
    "ScalingPoint",
    "content_totals",
    "curve",
    "estimate",
    "machines",
    "model_parallel_minimum",
    "nearest_measurements",
    "nearest_option",
    "physical",
    "pins",
    "price",
    "price_book_of",
    "price_day",
    "replay",
    "sensitivity",
    "sizes",
    "with_tenant_defaults",
    "without_costs",
    "without_list_prices",
]

SCHEMA_VERSION = "1"
NOTHING_KEPT: Mapping[str, Kept] = {}


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


def estimate(
    snapshot: Snapshot,
    request: EstimateRequest,
    today: date,
    book: PriceBook | None = None,
    keep: Mapping[str, Kept] = NOTHING_KEPT,
) -> Estimate:
    """Run every item and price its options.

    Parameters
    ----------
    snapshot : Snapshot
        The catalog revision the request asked for.
    today : date
        The day prices are taken at when the request names none.
    book : PriceBook or None
        What ``terms.price_book`` names, from :func:`price_book_of`.
    keep : mapping of str to Kept
        By item, the supply that is to be among the options whatever its rank.

    Raises
    ------
    Problem
        ``validation-failed``, ``infeasible-spec``, ``fx-unavailable``, ``as-of-out-of-range``.
    """
    as_of = price_day(request, today)
    terms = priced_terms(snapshot, request.terms, as_of, book)
    outputs: list[dict[str, Any]] = []
    items: list[dict[str, Any]] = []
    for i, item in enumerate(request.items):
        at = f"/items/{i}"
        _check_carbon(item, at)
        selection = _selected(snapshot, item, at)
        found = run_item(snapshot, item, selection, at)
        priced = price_item(snapshot, item, found.outputs(), selection, terms, at, found.complete, keep.get(item.id))
        items.append(priced.content)
        outputs.append(found.kept(priced.ranked_runs))
    return Estimate(
        spec=request.model_dump(mode="json"),
        engine_outputs={"engine_version": ENGINE_VERSION, "items": outputs},
        content=_content(items, terms),
        pins=_pins(snapshot, request, terms),
    )


def price(
    snapshot: Snapshot,
    request: EstimateRequest,
    engine_outputs: Mapping[str, Any],
    today: date,
    book: PriceBook | None = None,
    keep: Mapping[str, Kept] = NOTHING_KEPT,
) -> Mapping[str, Any]:
    """Price stored engine outputs again, without the engine; the same inputs give the same bytes.

    Parameters
    ----------
    engine_outputs : mapping
        ``Estimate.engine_outputs`` as stored.
    keep : mapping of str to Kept
        As for :func:`estimate`; a stored quote keeps what it selects.
    """
    terms = priced_terms(snapshot, request.terms, price_day(request, today), book)
    stored = {output["id"]: output for output in engine_outputs["items"]}
    items = []
    for i, item in enumerate(request.items):
        at = f"/items/{i}"
        selection = _selected(snapshot, item, at)
        kept = keep.get(item.id)
        items.append(price_item(snapshot, item, stored[item.id], selection, terms, at, _whole, kept).content)
    return _content(items, terms)


def replay(snapshot: Snapshot, request: EstimateRequest, engine_outputs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Run the engine again and give what it says now of the stored runs, in the form they are stored in.

    Which runs were stored depends on prices, terms and selections; what the engine says of a run does not.
    """
    stored = {output["id"]: {run["key"] for run in output["runs"]} for output in engine_outputs["items"]}
    items = []
    for i, item in enumerate(request.items):
        at = f"/items/{i}"
        found = run_item(snapshot, item, _selected(snapshot, item, at), at)
        items.append(found.kept(stored[item.id]))
    return {"engine_version": ENGINE_VERSION, "items": items}


def pins(snapshot: Snapshot, request: EstimateRequest, today: date, book: PriceBook | None = None) -> Mapping[str, Any]:
    """What a pricing of this request depends on, as :func:`estimate` states it; for a replay with :func:`price`."""
    return _pins(snapshot, request, priced_terms(snapshot, request.terms, price_day(request, today), book))


def price_book_of(
    connection: Connection, tenant_id: str, request: EstimateRequest, version: int | None = None
) -> PriceBook | None:
    """The tenant's price book that the terms name, in its newest version or a pinned one; None where they name none."""
    name = request.terms.price_book
    if name is None:
        return None
    try:
        return catalog.find_price_book(connection, tenant_id, name, version)
    except Problem:
        return None


def with_tenant_defaults(request: EstimateRequest, default_currency: str) -> EstimateRequest:
    """The request with the tenant's currency where it names none."""
    if "currency" in request.terms.model_fields_set or request.terms.currency == default_currency:
        return request
    terms = request.terms.model_copy(update={"currency": default_currency})
    return request.model_copy(update={"terms": terms})


def price_day(request: EstimateRequest, today: date) -> date:
    """The day whose prices apply; prices of later days are not known."""
    return check_day(request.as_of or today, today, pointer="/as_of")


def _check_carbon(item: Item, at: str) -> None:
    """Ranking by carbon needs the grid's intensity; no source in the catalog states one for a region."""
    if item.objective == "carbon" and item.supply.grid_kg_co2e_per_kwh is None:
        raise refused_field(
            f"{at}/supply/grid_kg_co2e_per_kwh",
            "missing",
            "Objective carbon needs supply.grid_kg_co2e_per_kwh, the carbon intensity of the grid in kg CO2e per kWh; "
            "without it emissions are unknown. State it, or rank by another objective.",
        )


def _selected(snapshot: Snapshot, item: Item, at: str) -> Selection:
    selection = select(snapshot, item.supply, f"{at}/supply")
    if not selection.candidates:
        raise _nothing_to_run_on(selection, at)
    return selection


def _nothing_to_run_on(selection: Selection, at: str) -> Problem:
    reasons = [s for s in selection.skipped if s is not NOT_ASKED]
    if reasons:
        first = reasons[0]
        return infeasible(
            f"{at}/supply",
            first.code,
            f"Nothing in the supply can be quoted: {first.subject}: {first.reason}.",
            {},
            skipped=[s.as_json() for s in reasons],
        )
    return refused_field(
        f"{at}/supply",
        "not_offered",
        "The catalog holds no offer that matches accelerators, providers, regions and purchase models together; "
        "leave one of them out, or look at GET /v1/catalog/offers.",
    )


def _whole(run: Run) -> Run:
    """Stored runs are whole already."""
    return run


def _content(items: list[dict[str, Any]], terms: PricedTerms) -> dict[str, Any]:
    totals, completeness = content_totals(items, terms.currency, terms.policy.id)
    return {
        "items": items,
        "totals": totals,
        "completeness": completeness,
        "lifetime": lifetime(items, terms),
        "currency": terms.currency,
        "as_of": terms.as_of.isoformat(),
        "fx": terms.fx_json(
            c for item in items for option in item["options"] for c in option["cost"]["converted_from"]
        ),
        "tax_note": "an estimate, not tax advice",
    }


def _pins(snapshot: Snapshot, request: EstimateRequest, terms: PricedTerms) -> dict[str, Any]:
    """Everything the figures depend on."""
    book, tax = terms.book, next(iter(terms.taxes), None)
    fixing = max((f.fixed_on for f in snapshot.fx.fixings if f.fixed_on <= terms.as_of), default=None)
    return {
        "catalog_revision": snapshot.revision_id,
        "catalog_revision_number": snapshot.number,
        "catalog_content_sha256": snapshot.content_sha256,
        "engine_version": ENGINE_VERSION,
        "as_of": terms.as_of.isoformat(),
        "price_book_version": f"{book.id}@v{book.version}" if book else None,
        "fx_snapshot": fixing.isoformat() if fixing else None,
        "tax_rules_version": f"{tax.jurisdiction}@{tax.valid_from}" if tax else None,
        "rounding_policy": request.terms.rounding_policy,
        "schema_version": SCHEMA_VERSION,
    }
