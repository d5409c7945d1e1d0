"""SAP Open Catalog Interface: the fields NEW_ITEM-...[n] that OCI 4.0 and 5.0 share, as the catalog posts them.

Lengths and decimals: SAP's field table (shop wiki and SRM punch-out parameters named in docs/interchange.md): texts 40,
quantity and price at most eleven digits and three decimals, the price per PRICEUNIT of up to five digits. What three
decimals cannot hold is billed as one lump at the line's exact amount (lenient, and said so) or refused (strict); an
amount itself is never rounded.
"""

import html
from collections.abc import Callable, Mapping
from decimal import Decimal
from urllib.parse import urlencode

from app.foundation.canonical import canonical_bytes
from app.pricing.money import plain, quantize
from app.proposals.cxml import cart_form
from app.proposals.document import Document, Item, Line, Sold, as_lump
from app.proposals.errors import Fitting
from app.proposals.rendered import Options, Rendered
from app.proposals.units import MUTUALLY_DEFINED, rec20

NAME = "OCI"
# Characters, by field.
LENGTHS = {
    "DESCRIPTION": 40, "QUANTITY": 15, "UNIT": 3, "PRICE": 15, "CURRENCY": 5, "PRICEUNIT": 5, "VENDOR": 10,
    "VENDORMAT": 40, "MATGROUP": 10, "SERVICE": 1, "EXT_QUOTE_ID": 35, "EXT_QUOTE_ITEM": 10, "EXT_PRODUCT_ID": 40,
}  # fmt: skip
DIGITS, DECIMALS = 11, 3
# PRICEUNIT has five digits: 10,000 is its largest power of ten.
LARGEST_POWER = 4
_TEXTS = ("DESCRIPTION", "VENDORMAT", "EXT_PRODUCT_ID")

Fields = dict[str, str]


def write_oci(document: Document, options: Options) -> Rendered:
    """Write the cart."""
    fitting = Fitting(format=NAME)
    fields: Fields = {}
    for n, (item, line) in enumerate(((i, found) for i in document.items for found in i.lines), start=1):
        _add(fields, n, document, item, line, options, fitting)
    fitting.close(
        'Send {"mode": "lenient"} to have texts cut (the whole stays in LONGTEXT) and lines billed as one lump.'
        if options.mode == "strict"
        else "Choose JSON, UBL or cXML."
    )
    write, media_type, extension = _ENCODINGS[options.encoding]
    content = write(fields, options.hook_url)
    adaptations = tuple(fitting.adaptations)
    return Rendered(content=content, media_type=media_type, extension=extension, adaptations=adaptations)


def _add(
    fields: Fields, n: int, document: Document, item: Item, line: Line, options: Options, fitting: Fitting
) -> None:
    strict = options.mode == "strict"
    price = _price(line, strict, fitting)
    description = line.description[options.locale]
    values = {
        "DESCRIPTION": description,
        "QUANTITY": price["QUANTITY"],
        "UNIT": price["UNIT"],
        "PRICE": price["PRICE"],
        "CURRENCY": document.currency,
        "PRICEUNIT": price["PRICEUNIT"],
        "VENDOR": options.vendor or "",
        "VENDORMAT": item.instance_type or line.kind,
        "MATGROUP": options.material_group or "",
        "SERVICE": "X",
        "EXT_QUOTE_ID": document.number,
        "EXT_QUOTE_ITEM": line.id,
        "EXT_PRODUCT_ID": item.offer_id or line.kind,
    }
    for name, value in values.items():
        fitted = _fitted(name, value, f"{line.pointer}/{_POINTERS.get(name, '')}".rstrip("/"), strict, fitting)
        if fitted:
            fields[f"NEW_ITEM-{name}[{n}]"] = fitted
    fields[f"NEW_ITEM-LONGTEXT_{n}:132[]"] = _long_text(document, item, line, description, options.locale)


_POINTERS = {
    "DESCRIPTION": "description",
    "VENDORMAT": "",
    "EXT_PRODUCT_ID": "",
    "PRICE": "net",
    "QUANTITY": "quantity",
}


def _fitted(name: str, value: str, pointer: str, strict: bool, fitting: Fitting) -> str:
    limit = LENGTHS[name]
    if len(value) <= limit:
        return value
    if strict or name not in _TEXTS:
        fitting.refuse(pointer, f"NEW_ITEM-{name}", f"{limit} characters", value)
        return value
    fitting.adapt(pointer, f"NEW_ITEM-{name}", f"{limit} characters", value)
    return value[:limit]


def _price(line: Line, strict: bool, fitting: Fitting) -> Mapping[str, str]:
    """Give quantity, unit and price whose product is the line's amount, within SAP's digits."""
    sold = cart_form(line)
    found = _within_digits(sold, line)
    if found is not None:
        return found
    stated = f"{plain(sold.quantity)} {sold.unit} at {plain(sold.unit_price.amount)}"
    limit = f"{DIGITS} digits and {DECIMALS} decimals, a unit with a code"
    if strict:
        fitting.refuse(f"{line.pointer}/quantity", "NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", limit, stated)
    lump = _within_digits(as_lump(line), line)
    if lump is None:
        fitting.refuse(f"{line.pointer}/net", "NEW_ITEM-PRICE", limit, line.amount.text)
        return {"QUANTITY": "1", "UNIT": "C62", "PRICE": "", "PRICEUNIT": "1"}
    if not strict:
        fitting.adapt(f"{line.pointer}/quantity", "NEW_ITEM-QUANTITY, NEW_ITEM-PRICE", limit, stated)
    return lump


def _within_digits(sold: Sold, line: Line) -> Mapping[str, str] | None:
    code = rec20(sold.unit)
    scaled = ((power, sold.unit_price.amount.scaleb(power)) for power in range(LARGEST_POWER + 1))
    exact = next(((power, price) for power, price in scaled if _fits(price)), None)
    if exact is None or not _fits(sold.quantity) or code == MUTUALLY_DEFINED:
        return None
    power, price = exact
    # The buyer's system multiplies for itself: it has to come to the same amount.
    product = quantize(sold.quantity * sold.unit_price.amount, -_exponent(line.amount.amount))
    if product != line.amount.amount:
        return None
    return {"QUANTITY": plain(sold.quantity), "UNIT": code, "PRICE": plain(price), "PRICEUNIT": str(10**power)}


def _exponent(amount: Decimal) -> int:
    exponent = amount.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def _fits(number: Decimal) -> bool:
    whole, _, fraction = plain(number).partition(".")
    return len(whole) <= DIGITS and len(fraction) <= DECIMALS


def _long_text(document: Document, item: Item, line: Line, description: str, locale: str) -> str:
    each = " a month" if line.months is not None else ""
    months = f" x {plain(line.months)} months" if line.months is not None else ""
    tax = "not determined" if line.tax.amount is None else "included" if line.tax.inclusive else "exclusive"
    return (
        f"{document.number} line {line.id}, item {item.id}: {description}. {item.label[locale]}. "
        f"{plain(line.quantity)} {line.unit}{each} at {plain(line.unit_price.amount)} {document.currency}{months}; "
        f"net {line.amount.text} {document.currency}. Tax: {tax}. Valid through {document.valid_through_on} "
        f"({document.timezone}). An estimate. SHA-256 {document.content_sha256}."
    )


def _html(fields: Fields, hook_url: str | None) -> bytes:
    inputs = "\n".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in fields.items()
    )
    action = html.escape(hook_url or "")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>OCI</title></head><body>\n'
        f'<form method="post" action="{action}" accept-charset="utf-8">\n{inputs}\n'
        '<button type="submit">Return to the procurement system</button>\n</form></body></html>\n'
    ).encode()


def _json(fields: Fields, _hook_url: str | None) -> bytes:
    return canonical_bytes(fields)


def _urlencoded(fields: Fields, _hook_url: str | None) -> bytes:
    return urlencode(fields).encode()


Encoding = tuple[Callable[[Fields, str | None], bytes], str, str]
_ENCODINGS: Mapping[str, Encoding] = {
    "html": (_html, "text/html; charset=utf-8", "oci.html"),
    "json": (_json, "application/json", "oci.json"),
    "urlencoded": (_urlencoded, "application/x-www-form-urlencoded", "oci.txt"),
}
