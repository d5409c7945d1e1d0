"""UBL 2.1 Quotation (OASIS), with the totals of Peppol: tax exclusive = sum of line nets - allowances + charges.

Line nets are without tax. Where prices include tax, each line shows its part as an allowance, and the tax is stated
under ``TaxTotal``. Contingency is a charge of the document. A tax that is not determined has no ``TaxTotal`` and no
``TaxInclusiveAmount``; a note says so, and no zero stands in its place.
"""

import uuid
import xml.etree.ElementTree as ET
from decimal import Decimal

from app.pricing.money import Money, plain, total
from app.proposals.document import Document, Item, Line, Tax, as_sold
from app.proposals.errors import Fitting
from app.proposals.markup import add, clean, serialise
from app.proposals.rendered import Options, Rendered
from app.proposals.ubl_price import price
from app.proposals.units import rec20

NAME = "UBL 2.1"
_SCHEMA = "urn:oasis:names:specification:ubl:schema:xsd"
_NAMESPACES = {
    "xmlns": f"{_SCHEMA}:Quotation-2",
    "xmlns:cac": f"{_SCHEMA}:CommonAggregateComponents-2",
    "xmlns:cbc": f"{_SCHEMA}:CommonBasicComponents-2",
}


def write_ubl(document: Document, options: Options) -> Rendered:
    """Write the quotation."""
    fitting = Fitting(format=NAME)
    root = ET.Element("Quotation", _NAMESPACES)
    lines = [line for line in document.lines if line.kind != "contingency"]
    charges = [line for line in document.lines if line.kind == "contingency"]
    _head(root, document, len(lines), fitting)
    for line in charges:
        _charge(root, line, options.locale)
    _taxes(root, document)
    _totals(root, document, lines, charges)
    for item in document.items:
        for line in item.lines:
            if line.kind != "contingency":
                _line(root, item, line, options.locale, fitting)
    fitting.close("Choose JSON or FOCUS CSV, which hold any unit price.")
    return Rendered(
        content=serialise(root),
        media_type="application/xml",
        extension="ubl.xml",
        adaptations=tuple(fitting.adaptations),
    )


def _head(root: ET.Element, document: Document, line_count: int, fitting: Fitting) -> None:
    add(root, "cbc:UBLVersionID", "2.1")
    add(root, "cbc:ID", document.number)
    add(root, "cbc:UUID", str(uuid.UUID(document.revision_id.partition("_")[2])))
    add(root, "cbc:IssueDate", document.dated.date().isoformat())
    add(root, "cbc:IssueTime", f"{document.dated.time().isoformat(timespec='seconds')}Z")
    for remark in document.remarks:
        add(root, "cbc:Note", remark, languageID="en")
    if document.title:
        add(root, "cbc:Note", clean(document.title, fitting, "/spec/title"))
    add(root, "cbc:PricingCurrencyCode", document.currency)
    add(root, "cbc:LineCountNumeric", str(line_count))
    period = add(root, "cac:ValidityPeriod")
    add(period, "cbc:StartDate", document.valid_from_on.isoformat())
    add(period, "cbc:EndDate", document.valid_through_on.isoformat())
    add(period, "cbc:Description", f"Local dates in {document.timezone}, the last day included.", languageID="en")
    if document.customer_ref:
        reference = add(root, "cac:RequestForQuotationDocumentReference")
        add(reference, "cbc:ID", clean(document.customer_ref, fitting, "/parties/customer/external_ref"))
    _party(add(root, "cac:SellerSupplierParty"), document.seller, None)
    if document.customer_name or document.customer_ref:
        at = "/parties/customer"
        reference_text = document.customer_ref and clean(document.customer_ref, fitting, f"{at}/external_ref")
        name = document.customer_name and clean(document.customer_name, fitting, f"{at}/name")
        _party(add(root, "cac:BuyerCustomerParty"), reference_text, name)


def _party(parent: ET.Element, identification: str | None, name: str | None) -> None:
    party = add(parent, "cac:Party")
    if identification:
        add(add(party, "cac:PartyIdentification"), "cbc:ID", identification)
    if name:
        add(add(party, "cac:PartyName"), "cbc:Name", name)


def _amount(parent: ET.Element, tag: str, amount: Money) -> None:
    add(parent, tag, amount.text, currencyID=amount.currency)


def _charge(root: ET.Element, line: Line, locale: str) -> None:
    charge = add(root, "cac:AllowanceCharge")
    add(charge, "cbc:ID", line.id)
    add(charge, "cbc:ChargeIndicator", "true")
    add(charge, "cbc:AllowanceChargeReason", line.description[locale], languageID=locale)
    _amount(charge, "cbc:Amount", line.amount)
    _category(charge, "cac:TaxCategory", line.tax)


def _allowance(parent: ET.Element, reason: str, amount: Money) -> None:
    if not amount.amount:
        return
    allowance = add(parent, "cac:AllowanceCharge")
    add(allowance, "cbc:ChargeIndicator", "false")
    add(allowance, "cbc:AllowanceChargeReason", reason, languageID="en")
    _amount(allowance, "cbc:Amount", amount)


def _category(parent: ET.Element, tag: str, tax: Tax) -> None:
    if tax.rate is None:
        return
    category = add(parent, tag)
    # UNCL 5305: S standard rate, Z zero rated.
    add(category, "cbc:ID", "S" if tax.rate else "Z")
    add(category, "cbc:Percent", plain(tax.rate * 100))
    scheme = add(category, "cac:TaxScheme")
    add(scheme, "cbc:ID", "VAT")
    if tax.jurisdiction:
        add(scheme, "cbc:Name", tax.jurisdiction)


def _taxes(root: ET.Element, document: Document) -> None:
    if document.tax_amount is None:
        return
    tax_total = add(root, "cac:TaxTotal")
    _amount(tax_total, "cbc:TaxAmount", document.tax_amount)
    add(tax_total, "cbc:TaxIncludedIndicator", str(any(tax.inclusive for tax in document.taxes)).lower())
    for tax in document.taxes:
        if tax.amount is None:
            continue
        subtotal = add(tax_total, "cac:TaxSubtotal")
        _amount(subtotal, "cbc:TaxableAmount", tax.base)
        _amount(subtotal, "cbc:TaxAmount", tax.amount)
        _category(subtotal, "cac:TaxCategory", tax)


def _totals(root: ET.Element, document: Document, lines: list[Line], charges: list[Line]) -> None:
    totals = add(root, "cac:QuotedMonetaryTotal")
    _amount(totals, "cbc:LineExtensionAmount", total((line.amount for line in lines), document.currency))
    _amount(totals, "cbc:TaxExclusiveAmount", document.net)
    if document.gross is not None:
        _amount(totals, "cbc:TaxInclusiveAmount", document.gross)
    if charges:
        _amount(totals, "cbc:ChargeTotalAmount", total((line.amount for line in charges), document.currency))
    _amount(totals, "cbc:PayableAmount", document.gross or document.net)


def _line(root: ET.Element, item: Item, line: Line, locale: str, fitting: Fitting) -> None:
    sold = as_sold(line)
    code = rec20(sold.unit)
    quotation_line = add(root, "cac:QuotationLine")
    add(quotation_line, "cbc:ID", line.id)
    line_item = ET.Element("cac:LineItem")
    for parent in (quotation_line, line_item):
        if parent is line_item:
            add(line_item, "cbc:ID", line.id)
        add(parent, "cbc:Quantity", plain(sold.quantity), unitCode=code)
        _amount(parent, "cbc:LineExtensionAmount", line.amount)
    quotation_line.append(line_item)
    if line.discount is not None and line.months is None:
        _allowance(line_item, "Discount", line.discount)
    _allowance(line_item, "Tax included in the price", line.included_tax)
    _price(line_item, line, code, fitting)
    _goods(add(line_item, "cac:Item"), item, line, locale, fitting)


def _price(line_item: ET.Element, line: Line, code: str, fitting: Fitting) -> None:
    found = price(as_sold(line), line.pointer, fitting)
    element = add(line_item, "cac:Price")
    add(element, "cbc:PriceAmount", found.net, currencyID=line.net.currency)
    add(element, "cbc:BaseQuantity", plain(found.base_quantity), unitCode=code)
    if found.off is not None and found.listed is not None:
        allowance = add(element, "cac:AllowanceCharge")
        add(allowance, "cbc:ChargeIndicator", "false")
        add(allowance, "cbc:Amount", found.off, currencyID=line.net.currency)
        add(allowance, "cbc:BaseAmount", found.listed, currencyID=line.net.currency)


def _goods(goods: ET.Element, item: Item, line: Line, locale: str, fitting: Fitting) -> None:
    label = clean(item.label[locale], fitting, f"{line.pointer.partition('/cost')[0]}/label/{locale}")
    add(goods, "cbc:Description", f"{line.item_id}: {label}", languageID=locale)
    add(goods, "cbc:Name", line.description[locale], languageID=locale)
    if item.offer_id:
        add(add(goods, "cac:SellersItemIdentification"), "cbc:ID", item.offer_id)
    _category(goods, "cac:ClassifiedTaxCategory", line.tax)
    for name, value in _properties(line):
        entry = add(goods, "cac:AdditionalItemProperty")
        add(entry, "cbc:Name", name)
        add(entry, "cbc:Value", value)


def _properties(line: Line) -> list[tuple[str, str]]:
    found = [("Charge", line.charge), ("Kind", line.kind), ("Unit", line.unit)]
    if line.hours_basis:
        found.append(("HoursBasis", line.hours_basis))
    if line.months is not None:
        found.append(("QuantityPerMonth", plain(line.quantity)))
        found.append(("UnitPrice", _with_currency(line.unit_price.amount, line.unit_price.currency)))
    if line.tax.rate is None:
        found.append(("Tax", "not determined"))
    return found


def _with_currency(amount: Decimal, currency: str) -> str:
    return f"{plain(amount)} {currency}"
