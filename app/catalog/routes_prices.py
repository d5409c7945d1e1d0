"""One dated price by its own address: where the figures of a quote lead."""

from fastapi import APIRouter, Request

from app.catalog import errors, service
from app.catalog.reading import CatalogAsked
from app.catalog.resolve import resolve_price
from app.catalog.schemas import PriceDetail, offer_view, price_view
from app.foundation.database import Database

router = APIRouter()


@router.get("/v1/catalog/prices/{price_id}")
async def get_price(price_id: str, request: Request, asked: CatalogAsked) -> PriceDetail:
    """Show a dated price row with its source and its offer, also a row that a later revision replaced."""
    database: Database = request.app.state.database
    row = await database.read(lambda connection: service.find_price(connection, price_id))
    offer = None if row is None else asked.snapshot.offers.get(row.offer_id)
    if row is None or offer is None:
        raise errors.no_price()
    return PriceDetail(
        price=price_view(row),
        offer=offer_view(offer, resolve_price(asked.snapshot, offer, asked.as_of)),
        links={
            "offer": f"/v1/catalog/offers/{offer.id}",
            "history": f"/v1/catalog/offers/{offer.id}/prices",
            "revision": f"/v1/catalog/revisions/{row.recorded_revision}",
        },
    )
