"""Price books over HTTP: a tenant's own, versioned, never seen by another tenant."""

import re
from datetime import date, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, File, Form, Request, Response, UploadFile
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from app.access.dependencies import require_scopes
from app.access.principal import COSTS, Principal
from app.catalog import errors, service
from app.catalog.imports.staged import FileError
from app.catalog.pricebooks import PriceBook, PriceRule
from app.catalog.schemas import plain
from app.foundation.database import Database
from app.foundation.dates import DateText
from app.foundation.numbers import Count
from app.foundation.query import FormText
from app.pricing.money import parse_decimal

router = APIRouter()
Reader = Annotated[Principal, Depends(require_scopes("catalog:read"))]
Writer = Annotated[Principal, Depends(require_scopes("pricebooks:write"))]
Selector = Annotated[str | None, Field(max_length=256)]


class RuleBody(BaseModel):
    """One rule; selectors left out match everything."""

    model_config = ConfigDict(extra="forbid")

    action: Literal["fixed", "percent_off", "floor", "cap"]
    amount: str = Field(description="Price per basis and hour, or a fraction of list for percent_off.", max_length=30)
    basis: Literal["sold_unit", "accelerator"] = "sold_unit"
    provider: Selector = None
    instance_type: Selector = None
    accelerator: Selector = None
    region: Selector = None
    purchase_model: Literal["on_demand", "reserved", "capacity_block", "spot", "marketplace"] | None = None
    term_months: Count | None = Field(default=None, ge=1, le=120)
    contract: Annotated[str | None, Field(max_length=500)] = None

    @model_validator(mode="after")
    def _whole(self) -> "RuleBody":
        self.rule()
        return self

    def rule(self) -> PriceRule:
        """Give the rule as a value."""
        return PriceRule(
            action=self.action,
            amount=parse_decimal(self.amount),
            basis=self.basis,
            provider=self.provider,
            sku=self.instance_type,
            accelerator_id=self.accelerator,
            region=self.region,
            purchase_model=self.purchase_model,
            term_months=self.term_months,
            contract=self.contract,
        )


class BookBody(BaseModel):
    """A price book as sent."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=128)
    currency: str
    valid_from: DateText
    valid_to: DateText | None = Field(default=None, description="First day the book no longer holds.")
    priority: Count = Field(default=0, ge=-1_000, le=1_000)
    rules: list[RuleBody] = Field(max_length=2_000)

    @field_validator("currency")
    @classmethod
    def _iso_code(cls, value: str) -> str:
        if not re.fullmatch("[A-Z]{3}", value):
            raise ValueError("an ISO 4217 code such as USD")
        return value

    @model_validator(mode="after")
    def _range(self) -> "BookBody":
        if self.valid_to is not None and self.valid_to <= self.valid_from:
            raise ValueError("valid_to must be after valid_from")
        return self


class RuleView(RuleBody):
    """One rule of a stored book."""


class BookView(BaseModel):
    """One version of a price book."""

    id: str
    version: int
    name: str
    currency: str
    valid_from: date
    valid_to: date | None
    priority: int
    withdrawn: bool
    recorded_at: datetime
    actor: str
    rules: list[RuleView] | None = Field(description="What the seller pays, floors too; null without costs:read.")


class BookList(BaseModel):
    """Every book of the tenant, newest versions."""

    items: list[BookView]
    next_cursor: str | None = None


def book_view(book: PriceBook, principal: Principal) -> BookView:
    """Show a book; its rules are the seller's costs."""
    return BookView(
        id=book.id,
        version=book.version,
        name=book.name,
        currency=book.currency,
        valid_from=book.valid_from,
        valid_to=book.valid_to,
        priority=book.priority,
        withdrawn=book.withdrawn,
        recorded_at=book.recorded_at,
        actor=book.actor,
        rules=None
        if not principal.has(COSTS)
        else [
            RuleView.model_validate(
                {
                    "action": rule.action,
                    "amount": plain(rule.amount),
                    "basis": rule.basis,
                    "provider": rule.provider,
                    "instance_type": rule.sku,
                    "accelerator": rule.accelerator_id,
                    "region": rule.region,
                    "purchase_model": rule.purchase_model,
                    "term_months": rule.term_months,
                    "contract": rule.contract,
                }
            )
            for rule in book.rules
        ],
    )


@router.get("/v1/price-books")
async def list_books(request: Request, principal: Reader) -> BookList:
    """List the tenant's price books in their newest versions."""
    database: Database = request.app.state.database
    tenant = principal.tenant_id
    books = await database.read(lambda connection: service.price_books(connection, tenant), tenant=tenant)
    return BookList(items=[book_view(book, principal) for book in books])


@router.post("/v1/price-books", status_code=201)
async def create_book(body: BookBody, request: Request, response: Response, principal: Writer) -> BookView:
    """Store a new price book as version 1."""
    book = await _save(body, request, principal, None)
    response.headers["Location"] = f"/v1/price-books/{book.id}"
    return book_view(book, principal)


@router.get("/v1/price-books/{book_id}")
async def get_book(book_id: str, request: Request, principal: Reader) -> BookView:
    """Show the newest version of a book."""
    database: Database = request.app.state.database
    tenant = principal.tenant_id
    found = await database.read(lambda connection: service.find_price_book(connection, tenant, book_id), tenant=tenant)
    return book_view(found, principal)


@router.put("/v1/price-books/{book_id}")
async def replace_book(book_id: str, body: BookBody, request: Request, principal: Writer) -> BookView:
    """Store a new version; quotes made with an earlier one keep it."""
    return book_view(await _save(body, request, principal, book_id), principal)


@router.delete("/v1/price-books/{book_id}")
async def withdraw_book(book_id: str, request: Request, principal: Writer) -> BookView:
    """Store a last version that holds for nothing."""
    database: Database = request.app.state.database
    tenant, now = principal.tenant_id, request.app.state.clock.now()
    book = await database.transact(
        lambda connection: service.withdraw_price_book(connection, principal, book_id, now=now),
        tenant=tenant,
    )
    return book_view(book, principal)


@router.post("/v1/price-books/imports", status_code=201)
async def import_focus(
    request: Request,
    principal: Writer,
    file: Annotated[UploadFile, File()],
    name: Annotated[FormText, Form(min_length=1, max_length=128)],
    priority: Annotated[int, Form(ge=-1_000, le=1_000)] = 0,
) -> BookView:
    """Make a price book of the contracted rates in a FOCUS cost-and-usage CSV."""
    database: Database = request.app.state.database
    tenant, now = principal.tenant_id, request.app.state.clock.now()
    content = await file.read()
    current = await database.read(service.current_snapshot)
    try:
        rates = service.focus_rates(current, content)
    except FileError as error:
        raise errors.unreadable_file(error) from error
    book = await database.transact(
        lambda connection: service.save_price_book(
            connection,
            principal,
            None,
            name=name,
            currency=rates.currency,
            valid_from=rates.newest_on,
            valid_to=None,
            priority=priority,
            rules=rates.rules,
            now=now,
        ),
        tenant=tenant,
    )
    return book_view(book, principal)


async def _save(body: BookBody, request: Request, principal: Principal, book_id: str | None) -> PriceBook:
    database: Database = request.app.state.database
    tenant, now = principal.tenant_id, request.app.state.clock.now()
    rules = tuple(rule.rule() for rule in body.rules)
    return await database.transact(
        lambda connection: service.save_price_book(
            connection,
            principal,
            book_id,
            name=body.name,
            currency=body.currency,
            valid_from=body.valid_from,
            valid_to=body.valid_to,
            priority=body.priority,
            rules=rules,
            now=now,
        ),
        tenant=tenant,
    )
