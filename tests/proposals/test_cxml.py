"""cXML: the order of the DTD, the cookie given back, and unit prices that multiply to the quote's amounts."""

import xml.etree.ElementTree as ET
from decimal import ROUND_HALF_UP, Decimal

import pytest

from app.foundation.problems import Problem
from app.proposals.cxml import write_cxml
from app.proposals.reading import read_document
from app.proposals.rendered import Credential, Options
from app.quotes.lifecycle import Status
from app.quotes.service import Shown
from tests.proposals.building import VARIANTS, Raw, RawItem, shown

# Content models of cXML.dtd 1.2, the parts we use.
ORDER = {
    "cXML": ["Header", "Message"],
    "Header": ["From", "To", "Sender"],
    "From": ["Credential"],
    "To": ["Credential"],
    "Sender": ["Credential", "UserAgent"],
    "Credential": ["Identity"],
    "Message": ["PunchOutOrderMessage"],
    "PunchOutOrderMessage": ["BuyerCookie", "PunchOutOrderMessageHeader", "ItemIn"],
    "PunchOutOrderMessageHeader": ["Total", "Tax"],
    "Total": ["Money"],
    "Tax": ["Money", "Description"],
    "ItemIn": ["ItemID", "ItemDetail"],
    "ItemID": ["SupplierPartID", "SupplierPartAuxiliaryID"],
    "ItemDetail": ["UnitPrice", "Description", "UnitOfMeasure", "Classification", "Extrinsic"],
    "UnitPrice": ["Money"],
}
OPTIONAL, REPEATED = {"Tax"}, {"ItemIn", "Extrinsic"}
UNITS = {"HUR", "MON", "C62", "E34", "E62", "ZZ"}
MINOR = {"USD": 2, "CNY": 2, "JPY": 0, "KWD": 3}


def write(found: Shown, **options: object) -> ET.Element:
    chosen = Options(**{"buyer_cookie": "1CX3L4843PPZO", **options})
    return ET.fromstring(write_cxml(read_document(found), chosen).content)


def money(parent: ET.Element, path: str) -> Decimal:
    text = parent.findtext(f"{path}/Money")
    assert text is not None
    return Decimal(text)


@pytest.mark.parametrize("name", VARIANTS)
def test_shape_and_arithmetic(name: str) -> None:
    document = read_document(VARIANTS[name])
    root = write(VARIANTS[name])
    for element in root.iter():
        children, order = [child.tag for child in element], ORDER.get(element.tag, [])
        assert [order.index(tag) for tag in children] == sorted(order.index(tag) for tag in children)
        assert set(order) - set(children) <= OPTIONAL
        assert all(children.count(tag) == 1 for tag in set(children) - REPEATED)
    assert {"payloadID", "timestamp"} <= set(root.attrib)
    message = root.find("Message/PunchOutOrderMessage")
    assert message is not None
    assert message.findtext("BuyerCookie") == "1CX3L4843PPZO"
    assert money(message, "PunchOutOrderMessageHeader/Total") == document.net.amount
    tax = message.find("PunchOutOrderMessageHeader/Tax/Money")
    assert (None if tax is None else Decimal(tax.text or "")) == (
        None if document.tax_amount is None else document.tax_amount.amount
    )
    unit = Decimal(1).scaleb(-MINOR[document.currency])
    added = Decimal(0)
    for item_in, line in zip(message.findall("ItemIn"), document.lines, strict=True):
        product = Decimal(item_in.attrib["quantity"]) * money(item_in, "ItemDetail/UnitPrice")
        assert product.quantize(unit, rounding=ROUND_HALF_UP) == line.amount.amount
        added += line.amount.amount
        assert item_in.findtext("ItemDetail/UnitOfMeasure") in UNITS
        assert item_in.findtext("ItemID/SupplierPartAuxiliaryID") == f"{document.number}/{line.id}"
        extrinsics = {e.attrib["name"]: e.text for e in item_in.findall("ItemDetail/Extrinsic")}
        assert extrinsics["QuoteNumber"] == document.number
    assert added == document.net.amount
    assert {element.attrib["currency"] for element in root.iter("Money")} == {document.currency}


def test_a_draft_is_pending_and_an_offer_final() -> None:
    path = "Message/PunchOutOrderMessage/PunchOutOrderMessageHeader"
    states = [write(VARIANTS[name]).find(path) for name in ("draft", "one item")]
    assert [state.attrib["quoteStatus"] for state in states if state is not None] == ["pending", "final"]


def test_credentials_are_those_of_the_caller() -> None:
    people = {"from": Credential(domain="DUNS", identity="1"), "to": Credential(domain="NetworkId", identity="2")}
    header = write(VARIANTS["one item"], credentials=people).find("Header")
    assert header is not None
    found = [(c.attrib["domain"], c.findtext("Identity")) for c in header.iter("Credential")]
    assert found == [("DUNS", "1"), ("NetworkId", "2"), ("gpuquote", "ten_seller")]


def test_without_the_cookie_there_is_nobody_to_answer() -> None:
    with pytest.raises(Problem) as caught:
        write(VARIANTS["one item"], buyer_cookie="")
    assert caught.value.errors[0].pointer == "/buyer_cookie"


def test_hostile_text_stays_text() -> None:
    text = "]]><ItemIn quantity='9'/>&\x0c\u202e🚀\""
    item = RawItem(lines=(Raw(quantity="1", list_price="2"),), id="x", label=text)
    root = write(shown((item,), customer={"external_ref": text, "name": text}), buyer_cookie=text)
    safe = text.replace("\x0c", "\ufffd")
    assert root.findtext("Message/PunchOutOrderMessage/BuyerCookie") == safe
    assert root.findtext("Header/To/Credential/Identity") == safe
    assert len(root.findall("Message/PunchOutOrderMessage/ItemIn")) == 1
    assert safe in (root.findtext("Message/PunchOutOrderMessage/ItemIn/ItemDetail/Description") or "")


def test_status_is_kept_out_of_the_bytes() -> None:
    lines = (RawItem(lines=(Raw(quantity="1", list_price="2"),)),)
    both = [ET.tostring(write(shown(lines, status=status))) for status in (Status.ISSUED, Status.ACCEPTED)]
    assert both[0] == both[1]
