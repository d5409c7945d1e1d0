"""cXML 1.2 PunchOutOrderMessage: the quote as a cart that goes back to a buyer's procurement system.

``Total`` is without tax. A line whose price includes tax or carries a discount goes as one piece at its net amount,
because ``ItemIn`` has no allowance. A draft goes as ``quoteStatus="pending"``; an offer is ``final``.
"""

import xml.etree.ElementTree as ET

from app.pricing.money import Money, plain
from app.proposals.document import Document, Item, Line, Sold, Standing, as_lump, as_sold
from app.proposals.errors import Fitting, missing_option
from app.proposals.markup import add, clean, serialise
from app.proposals.rendered import Credential, Options, Rendered
from app.proposals.units import rec20

NAME = "cXML"
VERSION = "1.2.045"
_DOCTYPE = f'<!DOCTYPE cXML SYSTEM "http://xml.cxml.org/schemas/cXML/{VERSION}/cXML.dtd">\n'
DOMAIN = "gpuquote"


def write_cxml(document: Document, options: Options) -> Rendered:
    """Write the message."""
    if not options.buyer_cookie:
        raise missing_option("buyer_cookie", "cXML gives back the BuyerCookie of the PunchOutSetupRequest; send it.")
    fitting = Fitting(format=NAME)
    stamp = document.dated.strftime("%Y-%m-%dT%H:%M:%S+00:00")
    identity = f"{document.revision_id}@gpuquote"
    root = ET.Element("cXML", {"payloadID": identity, "timestamp": stamp, "version": VERSION, "xml:lang": "en"})
    _header(root, document, options, fitting)
    message = add(add(root, "Message"), "PunchOutOrderMessage")
    add(message, "BuyerCookie", clean(options.buyer_cookie, fitting, "/buyer_cookie"))
    head = add(
        message,
        "PunchOutOrderMessageHeader",
        operationAllowed="create",
        quoteStatus="pending" if document.standing is Standing.DRAFT else "final",
    )
    _money(add(head, "Total"), document.net)
    if document.tax_amount is not None:
        tax = add(head, "Tax")
        _money(tax, document.tax_amount)
        add(tax, "Description", "Estimated tax, not tax advice", **{"xml:lang": "en"})
    for item in document.items:
        for line in item.lines:
            _item_in(message, document, item, line, options.locale, fitting)
    return Rendered(
        content=serialise(root, _DOCTYPE),
        media_type="application/xml",
        extension="cxml.xml",
        adaptations=tuple(fitting.adaptations),
    )


def _header(root: ET.Element, document: Document, options: Options, fitting: Fitting) -> None:
    header = add(root, "Header")
    seller = Credential(domain=DOMAIN, identity=document.seller)
    buyer = Credential(domain=DOMAIN, identity=document.customer_ref or "unknown")
    for tag, name, usual in (("From", "from", seller), ("To", "to", buyer), ("Sender", "sender", seller)):
        person = options.credentials.get(name, usual)
        party = add(header, tag)
        at = f"/credentials/{name}"
        credential = add(party, "Credential", domain=clean(person.domain, fitting, at))
        add(credential, "Identity", clean(person.identity, fitting, at))
        if tag == "Sender":
            add(party, "UserAgent", "gpuquote")


def _money(parent: ET.Element, amount: Money) -> None:
    add(parent, "Money", amount.text, currency=amount.currency)


def cart_form(line: Line) -> Sold:
    """Give the line as quantity and price whose product, rounded once, is its part of the total without tax."""
    plain_price = line.discount is None or line.months is not None
    return as_sold(line) if plain_price and not line.included_tax.amount else as_lump(line)


def _item_in(message: ET.Element, document: Document, item: Item, line: Line, locale: str, fitting: Fitting) -> None:
    sold = cart_form(line)
    item_in = add(message, "ItemIn", quantity=plain(sold.quantity), lineNumber=str(document.lines.index(line) + 1))
    item_id = add(item_in, "ItemID")
    add(item_id, "SupplierPartID", item.offer_id or line.kind)
    add(item_id, "SupplierPartAuxiliaryID", f"{document.number}/{line.id}")
    detail = add(item_in, "ItemDetail")
    _money(add(detail, "UnitPrice"), sold.unit_price)
    label = clean(item.label[locale], fitting, f"{line.pointer.partition('/cost')[0]}/label/{locale}")
    text = f"{line.item_id}: {line.description[locale]} - {label}"
    add(detail, "Description", text, **{"xml:lang": locale})
    add(detail, "UnitOfMeasure", rec20(sold.unit))
    add(detail, "Classification", line.kind, domain=DOMAIN)
    for name, value in _extrinsics(document, line):
        add(detail, "Extrinsic", value, name=name)


def _extrinsics(document: Document, line: Line) -> list[tuple[str, str]]:
    tax = "included" if line.tax.inclusive else "exclusive"
    return [
        ("QuoteNumber", document.number),
        ("QuoteLineId", line.id),
        ("QuoteStanding", str(document.standing)),
        ("ValidThrough", f"{document.valid_through_on.isoformat()} {document.timezone}"),
        ("Charge", line.charge),
        ("Quantity", f"{plain(line.quantity)} {line.unit}" + (" a month" if line.months is not None else "")),
        ("Amount", f"{line.amount.text} {line.amount.currency}"),
        ("TaxStatus", "not determined" if line.tax.amount is None else tax),
        ("ContentSha256", document.content_sha256),
    ]
