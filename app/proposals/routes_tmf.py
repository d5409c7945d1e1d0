"""``/tmf-api/quoteManagement/v4``: quotes for systems that speak TM Forum's TMF648, to read."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.responses import Response

from app.access.dependencies import require_scopes
from app.access.principal import Principal
from app.foundation.problems import FieldError, Problem
from app.proposals.tmf import ATTRIBUTES, PATH, chosen, tmf_quote
from app.quotes import service as quotes
from app.quotes.calling import acting_in, document, read

router = APIRouter(prefix=PATH, tags=["TMF648"], default_response_class=Response)
Reader = Annotated[Principal, Depends(require_scopes("quotes:read"))]
Fields = Annotated[str | None, Query(max_length=500, description=f"Comma-separated: {', '.join(ATTRIBUTES)}.")]
MOST_PER_PAGE = 100


class TmfQuote(BaseModel):
    """A quote of TMF648 v4; attributes without a value are left out, and more may stand."""

    model_config = ConfigDict(extra="allow")

    id: str
    href: str
    version: str | None = None
    state: str | None = None
    quote_item: list[dict[str, Any]] | None = Field(default=None, alias="quoteItem")
    quote_total_price: list[dict[str, Any]] | None = Field(default=None, alias="quoteTotalPrice")


def _fields(text: str | None) -> frozenset[str] | None:
    if text is None:
        return None
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    unknown = sorted(names - set(ATTRIBUTES) - {"none"})
    if unknown:
        message = f"one or more of {', '.join(ATTRIBUTES)}"
        raise Problem(
            "validation-failed",
            f"fields names attributes that a quote does not have here: {', '.join(unknown)}. Known: {message}.",
            errors=[FieldError(code="unknown_attribute", message=message, parameter="fields")],
        )
    return names


@router.get("", summary="List quotes as TMF648", responses={200: {"model": list[TmfQuote]}})
async def list_tmf_quotes(
    request: Request,
    principal: Reader,
    fields: Fields = None,
    offset: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_PER_PAGE)] = 20,
) -> Response:
    """Give the current revisions, newest first; ``X-Total-Count`` says how many there are (TMF630)."""
    asked = _fields(fields)
    acting = acting_in(request, principal)
    tenant = principal.tenant_id

    def work(connection: Connection) -> tuple[list[dict[str, Any]], int]:
        now = acting.now(connection)
        found, total = quotes.page_quotes(connection, tenant, offset=offset, limit=limit)
        shown = [quotes.show(connection, tenant, quote.id, now=now) for quote in found]
        return [chosen(tmf_quote(each), asked) for each in shown], total

    listed, total = await read(request, principal, work)
    headers = {"X-Total-Count": str(total), "X-Result-Count": str(len(listed)), "Cache-Control": "private, no-cache"}
    if offset + len(listed) < total and listed:
        kept = "" if fields is None else f"&fields={fields}"
        headers["Link"] = f'<{PATH}?offset={offset + limit}&limit={limit}{kept}>; rel="next"'
    return document(listed, headers)


@router.get("/{quote_id}", summary="Show a quote as TMF648", responses={200: {"model": TmfQuote}})
async def show_tmf_quote(request: Request, principal: Reader, quote_id: str, fields: Fields = None) -> Response:
    """Give the current revision of a quote."""
    asked = _fields(fields)
    acting = acting_in(request, principal)
    shown = await read(request, principal, lambda c: quotes.show(c, principal.tenant_id, quote_id, now=acting.now(c)))
    return document(chosen(tmf_quote(shown), asked), {"Cache-Control": "private, no-cache"})
