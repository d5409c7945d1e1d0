"""TMF648 Quote v4 as a view of stored revisions: an adapter to read, never our storage.

Two traps of the standard: a quote item's quantity is an integer, and money is a JSON number. A quantity with decimals
is counted in a smaller unit, which ``unitOfMeasure`` states (``31.43008 node_hour`` = 3143008 of ``0.00001
node_hour``), and numbers are written with the stored digits, so that nothing is rounded on our side.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson

from app.foundation.clock import rfc3339
from app.foundation.problems import Problem
from app.pricing.money import Money, plain
from app.proposals.document import Document, Item, Line
from app.proposals.reading import read_document
from app.quotes.service import Shown, Status

PATH = "/tmf-api/quoteManagement/v4/quote"
# JSON readers hold integers exactly up to here (RFC 8259 section 6).
LARGEST_INTEGER = 2**53 - 1
STATES = {
    Status.DRAFT: "inProgress",
    Status.IN_REVIEW: "pending",
    Status.APPROVED: "pending",
    Status.ISSUED: "approved",
    Status.ACCEPTED: "accepted",
    Status.DECLINED: "rejected",
    Status.WITHDRAWN: "cancelled",
    Status.EXPIRED: "cancelled",
    Status.SUPERSEDED: "cancelled",
    Status.CANCELLED: "cancelled",
}
PRICE_TYPES = {"one_off": "oneTime", "recurring": "recurring", "usage": "usage"}
ATTRIBUTES = (
    "id", "href", "number", "version", "state", "description", "externalId", "quoteDate",
    "effectiveQuoteCompletionDate", "validFor", "relatedParty", "quoteItem", "quoteTotalPrice", "note", "@type",
)  # fmt: skip


def tmf_quote(shown: Shown) -> dict[str, Any]:
    """Give the current revision of a quote as TMF648 has it; one without all prices has items and no amounts."""
    quote, head = shown.quote, shown.revision.head
    try:
        document = read_document(shown)
    except Problem as problem:
        document, why = None, problem.detail
    state = STATES[head.status_at(shown.now)]
    found: dict[str, Any] = {
        "id": quote.id,
        "href": f"{PATH}/{quote.id}",
        "number": quote.number,
        "version": str(head.n),
        "state": state,
        "description": quote.title,
        "externalId": quote.customer_ref or quote.external_ref,
        "quoteDate": rfc3339(head.created_at),
        "effectiveQuoteCompletionDate": None if head.issued_at is None else rfc3339(head.issued_at),
        "relatedParty": list(_parties(shown)),
        "@type": "Quote",
    }
    if document is None:
        note = [{"id": "1", "text": why}]
        return {**found, "quoteItem": [], "quoteTotalPrice": [], "note": note}
    notes = [{"id": str(n), "text": text} for n, text in enumerate(document.remarks, start=1)]
    return {
        **found,
        "validFor": {"startDateTime": rfc3339(document.valid_from_at), "endDateTime": rfc3339(document.expires_at)},
        "quoteItem": [_item(item, line, state) for item in document.items for line in item.lines],
        "quoteTotalPrice": list(_totals(document)),
        "note": notes,
    }


def chosen(quote: Mapping[str, Any], fields: frozenset[str] | None) -> dict[str, Any]:
    """Keep the attributes asked for, with id and href always (TMF630), and leave out what has no value."""
    names = ATTRIBUTES if fields is None else [n for n in ATTRIBUTES if n in fields or n in ("id", "href")]
    return {name: quote[name] for name in names if quote.get(name) is not None}


def _parties(shown: Shown) -> Iterator[dict[str, Any]]:
    quote = shown.quote
    if quote.customer_ref or quote.customer_name:
        yield {
            "id": quote.customer_ref or quote.customer_name,
            "name": quote.customer_name or quote.customer_ref,
            "role": "customer",
            "@referredType": "Organization",
        }
    yield {"id": quote.tenant_id, "role": "seller", "@referredType": "Organization"}


def integer_quantity(quantity: Decimal, unit: str) -> tuple[int, str]:
    """Give a quantity as an integer, and the unit that it then counts."""
    decimals = len(plain(quantity).partition(".")[2])
    scaled = int(quantity.scaleb(decimals))
    if scaled > LARGEST_INTEGER:
        return 1, f"{plain(quantity)} {unit}"
    return scaled, unit if decimals == 0 else f"{plain(Decimal(1).scaleb(-decimals))} {unit}"


def _item(item: Item, line: Line, state: str) -> dict[str, Any]:
    quantity, unit = integer_quantity(line.quantity, line.unit)
    facts = {
        "item": item.id,
        "kind": line.kind,
        "quantity": plain(line.quantity),
        "unit": line.unit,
        "unitPrice": f"{plain(line.unit_price.amount)} {line.unit_price.currency}",
        "hoursBasis": line.hours_basis,
        "months": None if line.months is None else plain(line.months),
    }
    offering = {"id": item.offer_id or line.kind, "name": item.label["en"], "@referredType": "ProductOffering"}
    return {
        "id": line.id,
        "action": "add",
        "state": state,
        "quantity": quantity,
        "productOffering": offering,
        "product": {
            "name": line.description["en"],
            "productCharacteristic": [
                {"name": name, "value": value, "valueType": "string"}
                for name, value in facts.items()
                if value is not None
            ],
        },
        "quoteItemPrice": [_price(line, unit)],
    }


def _price(line: Line, unit: str) -> dict[str, Any]:
    recurs = line.months is not None
    amounts: dict[str, Any] = {}
    if line.tax.amount is not None and line.tax.rate is not None:
        amounts["taxRate"] = _number(line.tax.rate * 100)
    if line.tax.inclusive:
        amounts["taxIncludedAmount"] = _money(line.net if recurs else line.amount + line.included_tax)
    if not (recurs and line.tax.inclusive):
        amounts["dutyFreeAmount"] = _money(line.net if recurs else line.amount)
    price: dict[str, Any] = {
        "name": line.description["en"],
        "priceType": PRICE_TYPES[line.charge],
        "unitOfMeasure": unit,
        "price": amounts,
    }
    if recurs:
        price["recurringChargePeriod"] = "month"
    listed = line.list_unit_price
    if listed is not None and line.unit_price < listed:
        off = {"dutyFreeAmount": _money(listed - line.unit_price)}
        price["priceAlteration"] = [
            {
                "name": "discount on the list price",
                "priceType": PRICE_TYPES[line.charge],
                "unitOfMeasure": line.unit,
                "price": off,
            }
        ]
    return price


def _totals(document: Document) -> Iterator[dict[str, Any]]:
    parts = (
        ("oneTime", document.one_off, None),
        ("recurring", document.recurring_monthly, "month"),
        ("usage", document.usage, None),
    )
    included = any(tax.inclusive for tax in document.taxes)
    for price_type, amount, period in parts:
        if amount.amount:
            name = "taxIncludedAmount" if included else "dutyFreeAmount"
            shown = {"name": price_type, "priceType": price_type, "price": {name: _money(amount)}}
            yield shown if period is None else {**shown, "recurringChargePeriod": period}
    total: dict[str, Any] = {"dutyFreeAmount": _money(document.net)}
    if document.gross is not None:
        total["taxIncludedAmount"] = _money(document.gross)
    yield {"name": "total over the quoted period", "priceType": "total", "price": total}


def _money(amount: Money) -> dict[str, Any]:
    return {"unit": amount.currency, "value": _number(amount.amount)}


def _number(value: Decimal) -> orjson.Fragment:
    """Write a JSON number with the digits it has, which a float might not."""
    return orjson.Fragment(plain(value))
