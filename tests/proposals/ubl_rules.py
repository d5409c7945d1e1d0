"""Rules of a UBL quotation, written from the standard and from section 1.2, without the writer's code.

``ORDER`` is the sequence of the children we use, per element, as the schema of UBL 2.1 has them.
"""

import xml.etree.ElementTree as ET
from decimal import ROUND_HALF_UP, Decimal

CAC = "{urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2}"
CBC = "{urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2}"
ROOT = "{urn:oasis:names:specification:ubl:schema:xsd:Quotation-2}Quotation"
MINOR = {"USD": 2, "CNY": 2, "JPY": 0, "KWD": 3}
CODES = {"HUR", "MON", "C62", "E34", "E62", "ZZ"}

ORDER = {
    "Quotation": "UBLVersionID ID UUID IssueDate IssueTime Note PricingCurrencyCode LineCountNumeric ValidityPeriod "
    "RequestForQuotationDocumentReference SellerSupplierParty BuyerCustomerParty AllowanceCharge TaxTotal "
    "QuotedMonetaryTotal QuotationLine",
    "ValidityPeriod": "StartDate EndDate Description",
    "RequestForQuotationDocumentReference": "ID",
    "SellerSupplierParty": "Party",
    "BuyerCustomerParty": "Party",
    "Party": "PartyIdentification PartyName",
    "PartyIdentification": "ID",
    "PartyName": "Name",
    "AllowanceCharge": "ID ChargeIndicator AllowanceChargeReason Amount BaseAmount TaxCategory",
    "TaxTotal": "TaxAmount TaxIncludedIndicator TaxSubtotal",
    "TaxSubtotal": "TaxableAmount TaxAmount TaxCategory",
    "TaxCategory": "ID Percent TaxScheme",
    "ClassifiedTaxCategory": "ID Percent TaxScheme",
    "TaxScheme": "ID Name",
    "QuotedMonetaryTotal": "LineExtensionAmount TaxExclusiveAmount TaxInclusiveAmount ChargeTotalAmount PayableAmount",
    "QuotationLine": "ID Quantity LineExtensionAmount LineItem",
    "LineItem": "ID Quantity LineExtensionAmount AllowanceCharge Price Item",
    "Price": "PriceAmount BaseQuantity AllowanceCharge",
    "Item": "Description Name SellersItemIdentification ClassifiedTaxCategory AdditionalItemProperty",
    "SellersItemIdentification": "ID",
    "AdditionalItemProperty": "Name Value",
}
REPEATED = {"Note", "AllowanceCharge", "TaxSubtotal", "QuotationLine", "AdditionalItemProperty"}


def check(content: bytes) -> ET.Element:
    """Hold a document to every rule; give its root."""
    root = ET.fromstring(content)
    assert root.tag == ROOT
    currency = root.findtext(f"{CBC}PricingCurrencyCode")
    assert currency is not None
    for element in root.iter():
        _shape(element, currency)
    _lines(root, currency)
    _totals(root)
    return root


def _name(element: ET.Element) -> str:
    return element.tag.partition("}")[2]


def _shape(element: ET.Element, currency: str) -> None:
    children = [_name(child) for child in element]
    order = ORDER.get(_name(element), "").split()
    assert [order.index(name) for name in children] == sorted(order.index(name) for name in children), children
    assert all(children.count(name) == 1 for name in set(children) - REPEATED), children
    if not children:
        assert (element.text or "").strip(), f"{_name(element)} is empty"
    if "currencyID" in element.attrib:
        assert element.attrib["currencyID"] == currency
        decimals = len((element.text or "").partition(".")[2])
        # Amounts of a price may have four decimals; all others have their currency's.
        if _name(element) == "PriceAmount" or (
            _name(element) in ("Amount", "BaseAmount") and decimals > MINOR[currency]
        ):
            assert decimals <= 4, element.text
        else:
            assert decimals == MINOR[currency], (element.tag, element.text)
    if "unitCode" in element.attrib:
        assert element.attrib["unitCode"] in CODES


def number(parent: ET.Element, path: str) -> Decimal:
    """Read a number that has to be there."""
    text = parent.findtext("/".join(f"{CAC if part[:1] == '*' else CBC}{part.lstrip('*')}" for part in path.split("/")))
    assert text is not None, path
    return Decimal(text)


def _allowances(parent: ET.Element, charge: str) -> Decimal:
    found = parent.findall(f"{CAC}AllowanceCharge")
    return sum((number(a, "Amount") for a in found if a.findtext(f"{CBC}ChargeIndicator") == charge), Decimal(0))


def _lines(root: ET.Element, currency: str) -> None:
    lines = root.findall(f"{CAC}QuotationLine")
    assert int(root.findtext(f"{CBC}LineCountNumeric") or 0) == len(lines)
    ids = [line.findtext(f"{CBC}ID") or "" for line in lines]
    assert len(set(ids)) == len(ids)
    assert all(len(found) <= 10 for found in ids)
    unit = Decimal(1).scaleb(-MINOR[currency])
    for line in lines:
        item = line.find(f"{CAC}LineItem")
        assert item is not None
        for name in ("ID", "Quantity", "LineExtensionAmount"):
            assert line.findtext(f"{CBC}{name}") == item.findtext(f"{CBC}{name}")
        price = item.find(f"{CAC}Price")
        assert price is not None
        gross = number(item, "Quantity") * number(price, "PriceAmount") / number(price, "BaseQuantity")
        rounded = gross.quantize(unit, rounding=ROUND_HALF_UP)
        assert number(item, "LineExtensionAmount") == rounded - _allowances(item, "false") + _allowances(item, "true")
        listed = price.find(f"{CAC}AllowanceCharge")
        if listed is not None:
            assert number(price, "PriceAmount") == number(listed, "BaseAmount") - number(listed, "Amount")


def _totals(root: ET.Element) -> None:
    totals = root.find(f"{CAC}QuotedMonetaryTotal")
    assert totals is not None
    lines = sum((number(line, "LineExtensionAmount") for line in root.findall(f"{CAC}QuotationLine")), Decimal(0))
    assert number(totals, "LineExtensionAmount") == lines
    charges, allowances = _allowances(root, "true"), _allowances(root, "false")
    assert number(totals, "TaxExclusiveAmount") == lines - allowances + charges
    assert (totals.find(f"{CBC}ChargeTotalAmount") is not None) == bool(charges)
    if charges:
        assert number(totals, "ChargeTotalAmount") == charges
    tax = root.find(f"{CAC}TaxTotal")
    if tax is None:
        assert totals.find(f"{CBC}TaxInclusiveAmount") is None
        assert number(totals, "PayableAmount") == number(totals, "TaxExclusiveAmount")
        assert any("Tax: not determined" in (note.text or "") for note in root.findall(f"{CBC}Note"))
        return
    subtotals = tax.findall(f"{CAC}TaxSubtotal")
    assert number(tax, "TaxAmount") == sum((number(s, "TaxAmount") for s in subtotals), Decimal(0))
    taxable = sum((number(s, "TaxableAmount") for s in subtotals), Decimal(0))
    assert taxable == number(totals, "TaxExclusiveAmount")
    with_tax = number(totals, "TaxExclusiveAmount") + number(tax, "TaxAmount")
    assert number(totals, "TaxInclusiveAmount") == with_tax == number(totals, "PayableAmount")
