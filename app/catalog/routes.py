"""The catalog over HTTP: reading."""

from collections import defaultdict
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Response

from app.catalog import errors
from app.catalog.codec import TYPE_TAG, encode
from app.catalog.filters import accelerator_filter, provider_filter, purchase_filter, region_filter, word_filter
from app.catalog.offers import Offer
from app.catalog.reading import CatalogAsked, PageAsked, page_of
from app.catalog.resolve import explain_missing, resolve_price
from app.catalog.routes_imports import router as imports_router
from app.catalog.routes_price_books import router as price_books_router
from app.catalog.routes_prices import router as prices_router
from app.catalog.routes_revisions import router as revisions_router
from app.catalog.routes_tokens import router as tokens_router
from app.catalog.schemas import FxView, OfferPage, OfferView, Page, PriceView, RegionView, offer_view, plain, price_view
from app.catalog.service import effective_minima, find_accelerator
from app.engine.transformer import FeedForward, Mixer

router = APIRouter(tags=["catalog"])
router.include_router(revisions_router)
router.include_router(imports_router)
router.include_router(price_books_router)
router.include_router(prices_router)
router.include_router(tokens_router)

Text = Annotated[str | None, Query(max_length=256)]


# Parts of a layer whose kind is something the reader must know; every other value says what it is by its place.
LAYER_PARTS = frozenset(part.__name__ for part in (*get_args(Mixer), *get_args(FeedForward)))


def record_view(value: object) -> dict[str, Any]:
    """Show a frozen value as it is, with the kind of each attention and feed-forward part."""
    shown: dict[str, Any] = _unmarked(encode(value))
    return shown


def _unmarked(data: Any) -> Any:
    if isinstance(data, dict):
        kind = data.get(TYPE_TAG)
        plain_items = {key: _unmarked(item) for key, item in data.items() if key != TYPE_TAG}
        return {"type": kind, **plain_items} if kind in LAYER_PARTS else plain_items
    if isinstance(data, list):
        return [_unmarked(item) for item in data]
    return data


@router.get("/v1/catalog/accelerators")
async def list_accelerators(
    asked: CatalogAsked,
    page: PageAsked,
    response: Response,
    vendor: Text = None,
    architecture: Text = None,
    quotable: bool | None = None,
) -> Page[dict[str, Any]]:
    """List every accelerator with its provenance; ``quotable`` false are those whose performance is not quoted."""
    known = asked.snapshot.accelerators.values()
    wanted = word_filter("vendor", vendor, {entry.vendor for entry in known})
    family = word_filter("architecture", architecture, {entry.architecture for entry in known})
    found = [
        entry
        for entry in known
        if (wanted is None or entry.vendor.lower() == wanted)
        and (family is None or entry.architecture.lower() == family)
        and (quotable is None or entry.quotable is quotable)
    ]
    return page_of(
        found,
        lambda entry: entry.id,
        lambda entry: {**record_view(entry), "quotable": entry.quotable},
        page,
        response,
        asked.snapshot,
    )


@router.get("/v1/catalog/accelerators/{accelerator_id}")
async def get_accelerator(accelerator_id: str, asked: CatalogAsked) -> dict[str, Any]:
    """Show one accelerator, with the oldest software that supports it."""
    entry = find_accelerator(asked.snapshot, accelerator_id)
    software = [record_view(minimum) for minimum in effective_minima(asked.snapshot, entry)]
    return {**record_view(entry), "quotable": entry.quotable, "software_minima": software}


@router.get("/v1/catalog/nodes")
async def list_nodes(
    asked: CatalogAsked, page: PageAsked, response: Response, provider: Text = None, accelerator: Text = None
) -> Page[dict[str, Any]]:
    """List cloud instance types, and the servers and racks one can buy (``kind`` server, rack, supernode)."""
    snapshot = asked.snapshot
    accelerator_filter(snapshot, accelerator)
    wanted = provider_filter(snapshot, provider)
    shapes = [
        (shape.id, {"kind": "cloud", **record_view(shape)})
        for shape in snapshot.node_shapes.values()
        if (wanted is None or shape.provider == wanted) and (accelerator is None or shape.accelerator_id == accelerator)
    ]
    servers = [
        (server.id, record_view(server))
        for server in snapshot.servers.values()
        if provider is None and (accelerator is None or server.accelerator_id == accelerator)
    ]
    return page_of([*shapes, *servers], lambda node: node[0], lambda node: node[1], page, response, snapshot)


@router.get("/v1/catalog/models")
async def list_models(asked: CatalogAsked, page: PageAsked, response: Response) -> Page[dict[str, Any]]:
    """List model architectures that can be quoted by name."""
    return page_of(
        list(asked.snapshot.models.values()), lambda model: model.id, record_view, page, response, asked.snapshot
    )


@router.get("/v1/catalog/models/{model_id:path}")
async def get_model(model_id: str, asked: CatalogAsked) -> dict[str, Any]:
    """Show one model; its ``transformer`` can be sent back as ``model.transformer`` of a job, changed or as it is."""
    found = asked.snapshot.models.get(model_id)
    if found is None:
        raise errors.no_model(model_id, get_close_matches(model_id, asked.snapshot.models, n=3, cutoff=0.4))
    return record_view(found)


@dataclass(frozen=True, slots=True)
class _Filters:
    provider: str | None
    instance_type: str | None
    accelerator: str | None
    region: str | None
    purchase_model: str | None

    @property
    def exact(self) -> bool:
        return None not in (self.provider, self.instance_type, self.region, self.purchase_model)


@router.get("/v1/catalog/offers")
async def list_offers(
    asked: CatalogAsked,
    page: PageAsked,
    response: Response,
    provider: Text = None,
    instance_type: Text = None,
    accelerator: Text = None,
    region: Text = None,
    purchase_model: Text = None,
    term_months: Annotated[int | None, Query(ge=0, le=120)] = None,
    automatic: bool | None = None,
) -> OfferPage:
    """List offers, each with its price on the day or the outcome that stands in its place."""
    snapshot = asked.snapshot
    accelerator_filter(snapshot, accelerator)
    provider = provider_filter(snapshot, provider)
    model, term = purchase_filter(purchase_model, term_months)
    filters = _Filters(provider, instance_type, accelerator, region, model)
    place = region_filter(snapshot, region, provider=provider, exact=filters.exact)
    found = snapshot.find_offers(
        providers=None if provider is None else [provider],
        instance_type=instance_type,
        accelerators=None if accelerator is None else [accelerator],
        regions=None if place is None else [place],
        purchase_models=None if model is None else [model],
        term_months=term,
        automatic_only=bool(automatic),
    )
    if automatic is False:
        found = tuple(offer for offer in found if not offer.automatic)
    shown = page_of(
        found,
        lambda offer: offer.id,
        lambda offer: offer_view(
            offer, resolve_price(snapshot, offer, asked.as_of), snapshot.availability.get(offer.id, ())
        ),
        page,
        response,
        snapshot,
    )
    missing = None
    if not found and filters.exact:
        why = explain_missing(snapshot, str(provider), str(instance_type), str(place), str(model), term_months=term)
        missing = {"outcome": why.outcome.value, "message": why.message}
    return OfferPage(**shown.model_dump(), as_of=asked.as_of, missing=missing)


@router.get("/v1/catalog/offers/{offer_id}")
async def get_offer(offer_id: str, asked: CatalogAsked) -> OfferView:
    """Show one offer with its price on the day."""
    offer = _offer(offer_id, asked)
    seen = asked.snapshot.availability.get(offer.id, ())
    return offer_view(offer, resolve_price(asked.snapshot, offer, asked.as_of), seen)


@router.get("/v1/catalog/offers/{offer_id}/prices")
async def price_history(offer_id: str, asked: CatalogAsked) -> dict[str, list[PriceView]]:
    """Show every dated price of an offer as the revision believed it, oldest first, and what is held back."""
    offer = _offer(offer_id, asked)
    held = [entry.row for entry in asked.snapshot.quarantined_of(offer.id) if entry.row is not None]
    return {
        "prices": [price_view(row) for row in asked.snapshot.prices_of(offer.id)],
        "quarantined": [price_view(row) for row in held],
    }


def _offer(offer_id: str, asked: CatalogAsked) -> Offer:
    found = asked.snapshot.offers.get(offer_id)
    if found is None:
        raise errors.no_offer()
    return found


@router.get("/v1/catalog/regions")
async def list_regions(
    asked: CatalogAsked, page: PageAsked, response: Response, provider: Text = None
) -> Page[RegionView]:
    """List the regions of each provider; ``global`` holds offers with one worldwide price."""
    wanted = provider_filter(asked.snapshot, provider)
    places: dict[tuple[str, str], list[Offer]] = defaultdict(list)
    for offer in asked.snapshot.offers.values():
        if wanted is None or offer.provider == wanted:
            places[offer.provider, offer.region].append(offer)
    views = [
        RegionView(
            provider=place[0],
            region=place[1],
            offers=len(offers),
            accelerators=sorted({offer.accelerator_id for offer in offers if offer.accelerator_id is not None}),
            purchase_models=sorted({offer.purchase_model for offer in offers}),
        )
        for place, offers in places.items()
    ]
    return page_of(
        views, lambda view: f"{view.provider}/{view.region}", lambda view: view, page, response, asked.snapshot
    )


@router.get("/v1/catalog/fx")
async def get_fx(
    asked: CatalogAsked,
    base: Annotated[str, Query(pattern="^[A-Z]{3}$")],
    quote: Annotated[str, Query(pattern="^[A-Z]{3}$")],
) -> FxView:
    """Show the rate that applies on the day, with the business day it is of."""
    rate = asked.snapshot.fx.rate(base, quote, asked.as_of)
    if rate is None:
        raise errors.no_rate(asked.snapshot, base, quote, asked.as_of)
    return FxView(
        base=rate.base,
        quote=rate.quote,
        rate=plain(rate.rate),
        requested_on=rate.requested_on,
        rate_on=rate.rate_on,
        age_days=rate.age_days,
        stale=rate.stale,
        via=rate.via,
        source=rate.source,
    )


@router.get("/v1/catalog/facts/{kind}")
async def list_facts(kind: str, asked: CatalogAsked, page: PageAsked, response: Response) -> Page[dict[str, Any]]:
    """List dated reference facts with their sources: tariffs, pue, colocation, egress, storage, taxes ..."""
    snapshot = asked.snapshot
    groups: dict[str, list[Any]] = {
        "tariffs": list(snapshot.tariffs),
        "pue": list(snapshot.pue),
        "colocation": list(snapshot.colocation),
        "egress": list(snapshot.egress),
        "storage": list(snapshot.storages.values()),
        "switches": list(snapshot.switches),
        "street-prices": list(snapshot.street_prices),
        "own-cost": list(snapshot.own_cost.values()),
        "taxes": list(snapshot.taxes),
        "software": list(snapshot.software),
        "reliability": list(snapshot.reliability.values()),
        "reference": list(snapshot.reference),
        "availability": [seen for found in snapshot.availability.values() for seen in found],
        "providers": [dict(provider) for provider in snapshot.providers.values()],
    }
    if kind not in groups:
        raise errors.unknown_fact_kind(kind, sorted(groups))
    numbered = [(f"{position:06d}", fact) for position, fact in enumerate(groups[kind])]
    return page_of(numbered, lambda fact: fact[0], lambda fact: record_view(fact[1]), page, response, snapshot)
