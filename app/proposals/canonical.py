"""The canonical JSON of a proposal: everything the document states, as RFC 8785 bytes."""

from typing import Any

from app.foundation.canonical import canonical_bytes
from app.foundation.clock import rfc3339
from app.pricing.money import Money, plain
from app.proposals.document import Document, Item, Line, Tax
from app.proposals.rendered import Options, Rendered

SCHEMA_VERSION = "1"


def write_json(document: Document, options: Options) -> Rendered:  # noqa: ARG001
    """Write the document; both languages stand in it, so the locale plays no part."""
    return Rendered(content=canonical_bytes(as_json(document)), media_type="application/json", extension="json")


def as_json(document: Document) -> dict[str, Any]:
    """Give the members of the document."""
    return {
        "schema_version": SCHEMA_VERSION,
        "number": document.number,
        "quote_number": document.quote_number,
        "quote_id": document.quote_id,
        "revision_id": document.revision_id,
        "revision": document.revision,
        "revision_content_sha256": document.content_sha256,
        "status": document.status,
        "standing": str(document.standing),
        "dated": rfc3339(document.dated),
        "validity": {
            "from": document.valid_from_on.isoformat(),
            "through": document.valid_through_on.isoformat(),
            "timezone": document.timezone,
            "expires_at": rfc3339(document.expires_at),
        },
        "seller": document.seller,
        "customer": {"external_ref": document.customer_ref, "name": document.customer_name},
        "title": document.title,
        "currency": document.currency,
        "items": [_item(item) for item in document.items],
        "totals": {
            "one_off": document.one_off.as_json(),
            "recurring_monthly": document.recurring_monthly.as_json(),
            "usage": document.usage.as_json(),
            "net": document.net.as_json(),
            "tax": _amount(document.tax_amount),
            "gross": _amount(document.gross),
            "tax_status": "not_determined" if document.gross is None else "estimated",
            "rounding_policy": document.rounding_policy,
        },
        "pins": dict(document.pins),
        "remarks": list(document.remarks),
    }


def _item(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "option_id": item.option_id,
        "label": dict(item.label),
        "offer": {
            "id": item.offer_id,
            "provider": item.provider,
            "instance_type": item.instance_type,
            "region": item.region,
            "purchase_model": item.purchase_model,
            "term_months": item.term_months,
        },
        "months": None if item.months is None else plain(item.months),
        "configuration": dict(item.configuration),
        "performance": dict(item.performance),
        "lines": [_line(line) for line in item.lines],
        "taxes": [_tax(tax) for tax in item.taxes],
    }


def _line(line: Line) -> dict[str, Any]:
    return {
        "id": line.id,
        "kind": line.kind,
        "charge": line.charge,
        "description": dict(line.description),
        "quantity": plain(line.quantity),
        "unit": line.unit,
        "hours_basis": line.hours_basis,
        "list_unit_price": _amount(line.list_unit_price),
        "unit_price": line.unit_price.as_json(),
        "discount": _amount(line.discount),
        "net": line.net.as_json(),
        "months": None if line.months is None else plain(line.months),
        "amount": line.amount.as_json(),
        "included_tax": line.included_tax.as_json(),
        "tax_category": line.tax.category,
    }


def _tax(tax: Tax) -> dict[str, Any]:
    return {
        "category": tax.category,
        "jurisdiction": tax.jurisdiction,
        "rate": None if tax.rate is None else plain(tax.rate),
        "inclusive": tax.inclusive,
        "base": tax.base.as_json(),
        "amount": _amount(tax.amount),
        "status": "not_determined" if tax.amount is None else "estimated",
        "source": tax.source,
    }


def _amount(amount: Money | None) -> dict[str, str] | None:
    return None if amount is None else amount.as_json()
