"""From a stored revision to the document that exports are written from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from app.estimates.service import without_costs
from app.pricing.money import Money, total
from app.pricing.rounding import allocate
from app.proposals.document import Document, Item, Line, Standing, Tax
from app.proposals.errors import incomplete
from app.quotes import service as quotes
from app.quotes.service import Shown, Status

Json = Mapping[str, Any]
_STANDING = {
    Status.DRAFT: Standing.DRAFT,
    Status.IN_REVIEW: Standing.DRAFT,
    Status.APPROVED: Standing.DRAFT,
    Status.ISSUED: Standing.OFFER,
    Status.ACCEPTED: Standing.OFFER,
    # The period says so itself; the same revision stays the same bytes when its last day ends.
    Status.EXPIRED: Standing.OFFER,
}


def read_document(shown: Shown) -> Document:
    """Read a revision; refuse one with a part that has no price.

    Raises
    ------
    ValueError
        The stored lines do not add up to the stored total: nothing is exported that does not.
    """
    head = shown.revision.head
    # The rule of every answer to a customer: no mark-up, nothing it was put on, no parts of an owned hour.
    content = without_costs(quotes.open_content(shown.revision.content_text))
    accepted = shown.acceptance
    totals = content["totals"] if accepted is None else accepted.totals
    if totals is None:
        raise incomplete(head.n, content["completeness"]["unpriced_lines"])
    chosen = {} if accepted is None else accepted.selections
    several = len(content["items"]) > 1
    items = tuple(
        _item(item, position, chosen.get(item["id"], item["selected_option_id"]), several)
        for position, item in enumerate(content["items"])
    )
    customer = content["parties"]["customer"] or {}
    issued = head.issued_at is not None and shown.quote.number is not None
    document = Document(
        # Without a number yet, the revision's own id: 34 characters, so that OCI's 35 hold it.
        number=quotes.display_number(str(shown.quote.number), head.n) if issued else f"D-{head.id.partition('_')[2]}",
        quote_number=shown.quote.number if issued else None,
        quote_id=head.quote_id,
        revision_id=head.id,
        revision=head.n,
        content_sha256=head.content_sha256,
        status=str(head.status if head.status is not Status.EXPIRED else Status.ISSUED),
        standing=_STANDING.get(head.status, Standing.VOID),
        is_over=head.status_at(shown.now) is Status.EXPIRED,
        dated=head.issued_at or head.created_at,
        valid_from_on=date.fromisoformat(content["validity"]["from"]),
        valid_through_on=date.fromisoformat(content["validity"]["through"]),
        timezone=content["validity"]["timezone"],
        expires_at=head.expires_at,
        seller=content["parties"]["seller"],
        customer_ref=customer.get("external_ref"),
        customer_name=customer.get("name"),
        title=content["spec"].get("title"),
        currency=totals["net"]["currency"],
        items=items,
        one_off=_money(totals["one_off"]),
        recurring_monthly=_money(totals["recurring_monthly"]),
        usage=_money(totals["usage"]),
        net=_money(totals["net"]),
        gross=_money(totals["gross"]) if totals["gross"] else None,
        rounding_policy=totals["rounding_policy"],
        pins={name: content["pins"][name] for name in sorted(content["pins"])},
    )
    _check(document)
    return document


def _item(item: Json, position: int, option_id: str, several: bool) -> Item:
    index, option = next((i, o) for i, o in enumerate(item["options"]) if o["id"] == option_id)
    totals, offer = option["cost"]["totals"], option["offer"]
    horizon = totals["tco_horizon_months"]
    months = None if horizon is None else Decimal(horizon)
    taxes = tuple(_tax(item["id"], row) for row in totals["tax"])
    duration = option["performance"].get("duration_hours")
    lines = tuple(
        _line(line, f"/items/{position}/options/{index}/cost/lines/{i}", position if several else None, item["id"],
              months, taxes)
        for i, line in enumerate(option["cost"]["lines"])
    )  # fmt: skip
    return Item(
        id=item["id"],
        kind=item["kind"],
        option_id=option_id,
        label=option["label"],
        provider=offer.get("provider"),
        instance_type=offer.get("instance_type"),
        offer_id=offer.get("id"),
        region=offer.get("region"),
        purchase_model=offer["purchase_model"],
        term_months=offer.get("term_months"),
        duration_hours=None if duration is None else duration["p50"],
        months=months,
        configuration=option["configuration"],
        performance=option["performance"],
        lines=_without_included_tax(lines, taxes),
        taxes=taxes,
    )


def _line(line: Json, pointer: str, position: int | None, item_id: str, months: Decimal | None,
          taxes: Sequence[Tax]) -> Line:  # fmt: skip
    net = _money(line["net"])
    recurs = months if line["charge"] == "recurring" else None
    return Line(
        id=line["id"] if position is None else f"{position + 1}-{line['id']}",
        pointer=pointer,
        item_id=item_id,
        kind=line["kind"],
        charge=line["charge"],
        description=line["description"],
        quantity=Decimal(line["quantity"]),
        unit=line["unit"],
        hours_basis=line["hours_basis"],
        list_unit_price=_money(line["list_unit_price"]) if "list_unit_price" in line else None,
        unit_price=_money(line["net_unit_price"]),
        discount=_money(line["discount"]) if line["discount"] else None,
        net=net,
        months=recurs,
        amount=net if recurs is None else net.times(recurs),
        included_tax=Money.zero(net.currency),
        tax=next(tax for tax in taxes if tax.category == line["tax_category"]),
        price_id=(line.get("price_evidence") or {}).get("price_id"),
    )


def _tax(item_id: str, row: Json) -> Tax:
    return Tax(
        item_id=item_id,
        category=row["category"],
        jurisdiction=row["jurisdiction"],
        rate=None if row["rate"] is None else Decimal(row["rate"]),
        inclusive=bool(row["inclusive"]),
        base=_money(row["base"]),
        amount=_money(row["amount"]) if row["amount"] else None,
        source=row["source"],
    )


def _without_included_tax(lines: Sequence[Line], taxes: Sequence[Tax]) -> tuple[Line, ...]:
    """Take tax that prices include out of the lines' amounts, so that they add up to the net total exactly."""
    shares: dict[str, Money] = {}
    for tax in taxes:
        chosen = [line for line in lines if line.tax is tax]
        if tax.inclusive and tax.amount is not None and any(line.amount.amount for line in chosen):
            parts = allocate(tax.amount, [line.amount.amount for line in chosen])
            shares |= dict(zip((line.id for line in chosen), parts, strict=True))
    return tuple(
        replace(line, amount=line.amount - shares[line.id], included_tax=shares[line.id]) if line.id in shares else line
        for line in lines
    )


def _money(document: Json) -> Money:
    return Money(amount=Decimal(document["amount"]), currency=document["currency"])


def _check(document: Document) -> None:
    added = total((line.amount for line in document.lines), document.currency)
    taxed = [tax.amount for tax in document.taxes if tax.amount is not None]
    if added != document.net:
        raise ValueError(f"{document.revision_id}: lines add up to {added.text}, the net total is {document.net.text}")
    if document.tax_amount is not None and total(taxed, document.currency) != document.tax_amount:
        raise ValueError(f"{document.revision_id}: taxes do not add up to gross less net")
