"""Token prices over HTTP."""

from datetime import date
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from app.catalog import errors
from app.catalog.reading import CatalogAsked
from app.catalog.resolve import Resolution
from app.catalog.schemas import OfferView, offer_view
from app.catalog.token_prices import LINES, reached_tier, token_price, token_tiers

router = APIRouter()


class TokenLineView(BaseModel):
    """A line's offer in the tier the prompt reaches: it holds for prompts longer than ``above_tokens``."""

    line: str
    above_tokens: int
    offer: OfferView


class TokenPricesView(BaseModel):
    """What a million tokens of each line of a model costs."""

    provider: str
    model: str
    as_of: date
    lines: list[TokenLineView]


@router.get("/v1/catalog/token-prices")
async def get_token_prices(
    asked: CatalogAsked,
    provider: Annotated[str, Query(max_length=64)],
    model: Annotated[str, Query(max_length=256)],
    prompt_tokens: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
    service: Literal["standard", "batch", "priority", "flex"] = "standard",
) -> TokenPricesView:
    """Show what a million tokens of each line costs for a prompt of a length; all tokens of a request pay its tier."""
    snapshot = asked.snapshot
    lines = []
    for line in LINES:
        found = token_price(snapshot, provider, model, line, prompt_tokens, asked.as_of, service=service)
        if isinstance(found, Resolution):
            reached = reached_tier(token_tiers(snapshot, provider, model, line, service), prompt_tokens)
            shown = offer_view(snapshot.offers[found.offer_id], found)
            lines.append(TokenLineView(line=line, above_tokens=reached or 0, offer=shown))
    if not lines:
        raise errors.no_token_price(provider, model)
    return TokenPricesView(provider=snapshot.provider_id(provider), model=model, as_of=asked.as_of, lines=lines)
