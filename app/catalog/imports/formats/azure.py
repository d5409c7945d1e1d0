"""Azure Retail Prices JSON (``Items`` with optional ``savingsPlan``).

A consumption item becomes an on-demand or spot offer, each savings-plan term a reserved one. A reservation's price is
for the whole term; it is divided by the hours of the term, and the term's price stays in the note. Microsoft prices in
USD: amounts in other currencies are "for your reference" (its own words), so such offers are indicative.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from app.catalog.imports.own_csv import Reading, load_json, stage_all
from app.catalog.imports.staged import FileError, StagedRow, decimal_of, text_of
from app.catalog.resolve import UNIT_PRICE_STEP

TERMS = {"1 Year": 12, "3 Years": 36, "5 Years": 60}
HOURS_PER_YEAR = 8760


def read_azure(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage the items of known accelerator machines; other services and CPU machines are passed over."""
    try:
        items = load_json(content, number=Decimal)["Items"]
        rows = [row for number, item in enumerate(items, start=1) for row in _plain_rows(number, item, reading)]
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise FileError("malformed_json", f"this is not an answer of the Azure Retail Prices API: {error!r}") from None
    return stage_all(rows, reading)


def _plain_rows(number: int, item: Mapping[str, Any], reading: Reading) -> Iterator[tuple[int, Mapping[str, str]]]:
    sku = item.get("armSkuName") or ""
    shape = reading.shapes.get(("azure", sku))
    if item.get("serviceName") != "Virtual Machines" or (shape is None and not sku.startswith("Standard_N")):
        return
    kind = item["type"]
    if kind == "DevTestConsumption" or "Low Priority" in item["meterName"]:
        return
    plain = {
        "provider": "azure",
        "instance_type": sku,
        "accelerator": shape.accelerator_label if shape else sku,
        "accelerator_count": str(shape.accelerator_count) if shape else "1",
        "sold_unit": "node",
        "vcpus": str(shape.vcpus or "") if shape else "",
        "memory_gib": str(shape.memory_gib or "") if shape else "",
        "region": item["armRegionName"],
        "currency": item["currencyCode"],
        "price_unit": "hour" if item["unitOfMeasure"] == "1 Hour" else item["unitOfMeasure"],
        "valid_from": text_of(item["effectiveStartDate"])[:10],
        "observed_on": "" if reading.observed_on is None else reading.observed_on.isoformat(),
        "os": "windows" if "Windows" in item["productName"] else "linux",
        "source": reading.default_source or "Azure Retail Prices API",
        "method": "api",
        "confidence": "high",
        "indicative": "false" if item["currencyCode"] == "USD" else "true",
    }
    price = decimal_of(item["retailPrice"])
    if kind == "Reservation":
        months = TERMS[item["reservationTerm"]]
        hours = HOURS_PER_YEAR * months // 12
        yield (
            number,
            {
                **plain,
                "purchase_model": "reserved",
                "product": "reservation",
                "term_months": str(months),
                "payment_option": "unstated",
                "price_unit": "hour",
                "price": format((price / hours).quantize(UNIT_PRICE_STEP), "f"),
                "note": f"{price} {item['currencyCode']} for the whole term of {hours} h",
            },
        )
        return
    model = "spot" if "Spot" in item["meterName"] else "on_demand"
    yield number, {**plain, "purchase_model": model, "price": format(price, "f")}
    for plan in item.get("savingsPlan") or ():
        yield (
            number,
            {
                **plain,
                "purchase_model": "reserved",
                "product": "savings_plan",
                "term_months": str(TERMS[plan["term"]]),
                "payment_option": "unstated",
                "price": format(decimal_of(plan["retailPrice"]), "f"),
            },
        )
