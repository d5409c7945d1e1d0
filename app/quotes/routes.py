"""Routes of the room, in one router."""

from fastapi import APIRouter

from app.quotes.routes_affected import router as affected
from app.quotes.routes_policy import router as policy
from app.quotes.routes_quotes import router as quotes
from app.quotes.routes_revisions import router as revisions
from app.quotes.routes_share import router as sharing
from app.quotes.routes_transitions import router as transitions

router = APIRouter()
# /v1/quotes/affected is looked for before /v1/quotes/{quote_id}.
for part in (affected, quotes, revisions, transitions, policy, sharing):
    router.include_router(part)
