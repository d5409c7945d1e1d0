"""AWS price list JSON (an offer file of AmazonEC2): on-demand and reserved terms of accelerator instances."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from app.catalog.imports.own_csv import Reading, load_json, stage_all
from app.catalog.imports.staged import FileError, StagedRow, decimal_of, text_of
from app.catalog.resolve import UNIT_PRICE_STEP

LEASE_MONTHS = {"1yr": 12, "3yr": 36}
PAYMENTS = {"No Upfront": "none", "Partial Upfront": "partial", "All Upfront": "all_upfront"}
HOURS_PER_YEAR = 8760
# First letters of accelerator families; the price list holds every instance type there is.
FAMILIES = ("p", "g", "trn", "inf")


def read_aws(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage shared and dedicated Linux and Windows instances without licences of other software."""
    try:
        data = load_json(content)
        rows = list(_plain_rows(data, reading))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise FileError("malformed_json", f"this is not an AWS price list of AmazonEC2: {error!r}") from None
    return stage_all(rows, reading)


def _plain_rows(data: Mapping[str, Any], reading: Reading) -> Iterator[tuple[int, Mapping[str, str]]]:
    published = text_of(data["publicationDate"])[:10]
    for number, (sku, product) in enumerate(data["products"].items(), start=1):
        facts = product["attributes"]
        kind = facts.get("instanceType", "")
        shape = reading.shapes.get(("aws", kind))
        if shape is None and not (kind.startswith(FAMILIES) and facts.get("gpu")):
            continue
        if facts.get("capacitystatus") != "Used" or facts.get("preInstalledSw", "NA") != "NA":
            continue
        # A capacity block is listed at 0.00 an hour: it is paid when booked, and what it costs is not in the list.
        if facts.get("marketoption", "OnDemand") != "OnDemand":
            continue
        plain = {
            "provider": "aws",
            "instance_type": kind,
            "accelerator": shape.accelerator_label if shape else kind,
            "accelerator_count": str(shape.accelerator_count) if shape else str(facts.get("gpu", "1")),
            "sold_unit": "node",
            "vcpus": facts.get("vcpu", ""),
            "memory_gib": facts.get("memory", "").removesuffix(" GiB").replace(",", ""),
            "region": facts["regionCode"],
            "tenancy": facts.get("tenancy", "Shared").lower(),
            "os": facts.get("operatingSystem", "Linux").lower(),
            "price_unit": "hour",
            "observed_on": published,
            "source": reading.default_source or "AWS Price List, AmazonEC2",
            "method": "api",
            "confidence": "high",
        }
        for term in data["terms"].get("OnDemand", {}).get(sku, {}).values():
            for currency, (_, hourly) in _amounts(term).items():
                yield (
                    number,
                    {
                        **plain,
                        "purchase_model": "on_demand",
                        "currency": currency,
                        "price": format(hourly, "f"),
                        "valid_from": term["effectiveDate"][:10],
                    },
                )
        for term in data["terms"].get("Reserved", {}).get(sku, {}).values():
            yield from _reserved(number, plain, term)


def _amounts(term: Mapping[str, Any]) -> dict[str, tuple[Decimal, Decimal]]:
    """Give upfront and hourly amount of a term by currency."""
    found: dict[str, tuple[Decimal, Decimal]] = {}
    for dimension in term["priceDimensions"].values():
        for currency, text in dimension["pricePerUnit"].items():
            upfront, hourly = found.get(currency, (Decimal(0), Decimal(0)))
            amount = decimal_of(text)
            if dimension["unit"] == "Quantity":
                upfront += amount
            elif dimension["unit"] == "Hrs":
                hourly += amount
            else:
                raise ValueError(f"unit {dimension['unit']!r} of {dimension.get('rateCode')}")
            found[currency] = (upfront, hourly)
    return found


def _reserved(
    number: int, plain: Mapping[str, str], term: Mapping[str, Any]
) -> Iterator[tuple[int, Mapping[str, str]]]:
    facts = term["termAttributes"]
    months = LEASE_MONTHS[facts["LeaseContractLength"]]
    hours = HOURS_PER_YEAR * months // 12
    for currency, (upfront, hourly) in _amounts(term).items():
        effective = (upfront / hours + hourly).quantize(UNIT_PRICE_STEP)
        yield (
            number,
            {
                **plain,
                "purchase_model": "reserved",
                "product": f"reserved_{facts['OfferingClass']}",
                "term_months": str(months),
                "payment_option": PAYMENTS[facts["PurchaseOption"]],
                "currency": currency,
                "price": format(effective, "f"),
                "valid_from": term["effectiveDate"][:10],
                "note": f"{upfront} {currency} upfront and {hourly} an hour over {hours} h",
            },
        )
