"""FOCUS cost-and-usage CSV: what a tenant pays by contract, as rules of a price book (never as list prices).

Read are the contracted unit prices of usage charges of accelerator machines: ``ContractedUnitPrice`` per
``PricingUnit`` hour in ``PricingCurrency``, the instance type from ``SkuPriceDetails`` or ``x_InstanceType``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

from app.catalog.imports.labels import Labels
from app.catalog.imports.own_csv import csv_rows, decode_text
from app.catalog.imports.staged import FileError, RejectedRow, RowError, check_texts, read_amount, read_currency
from app.catalog.pricebooks import PriceRule

COLUMNS = frozenset(
    {"ChargePeriodStart", "ContractedUnitPrice", "ListUnitPrice", "PricingUnit", "PricingCategory", "RegionId"}
)
CATEGORIES = {"Standard": "on_demand", "Dynamic": "spot"}
HOURLY = frozenset({"hour", "hours", "hrs", "hr", "1 hour"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FocusRates:
    """The contracted rates of a file: one currency, the newest charge period of each machine."""

    currency: str
    newest_on: date
    rules: tuple[PriceRule, ...]
    rejected: tuple[RejectedRow, ...]


def read_focus(content: bytes, labels: Labels, skus: frozenset[tuple[str, str]]) -> FocusRates:
    """Read contracted rates of known machines; a newer charge period replaces an older one of the same machine."""
    header, rows = csv_rows(decode_text(content))
    missing = sorted(COLUMNS - set(header))
    if missing:
        raise FileError("missing_column", f"a FOCUS file has the columns {', '.join(missing)}")
    rates: dict[tuple[str, str, str, str], tuple[date, PriceRule, str]] = {}
    rejected: list[RejectedRow] = []
    for line, row in rows:
        try:
            found = _rate(row, labels, skus)
        except (RowError, ValueError) as error:
            reason = error.reason if isinstance(error, RowError) else "malformed_row"
            rejected.append(RejectedRow(line=line, reason=reason, detail=str(error), raw=dict(row)))
            continue
        if found is None:
            continue
        day, rule, currency = found
        key = (str(rule.provider), str(rule.sku), str(rule.region), str(rule.purchase_model))
        if key not in rates or rates[key][0] <= day:
            rates[key] = (day, rule, currency)
    currencies = {currency for _, _, currency in rates.values()}
    if not rates:
        raise FileError("empty_file", "the file holds no contracted hourly rate of a machine the catalog knows")
    if len(currencies) > 1:
        raise FileError(
            "mixed_currency", f"a price book has one currency, the file has {', '.join(sorted(currencies))}"
        )
    return FocusRates(
        currency=currencies.pop(),
        newest_on=max(day for day, _, _ in rates.values()),
        rules=tuple(rates[key][1] for key in sorted(rates)),
        rejected=tuple(rejected),
    )


def _rate(
    row: Mapping[str, str], labels: Labels, skus: frozenset[tuple[str, str]]
) -> tuple[date, PriceRule, str] | None:
    sku = _instance_type(row)
    if row.get("ChargeCategory", "Usage") != "Usage" or not sku:
        return None
    provider = labels.provider(_provider(row))
    if (provider, sku) not in skus:
        return None
    if row["PricingUnit"].strip().lower() not in HOURLY:
        raise RowError("unknown_unit", f"PricingUnit {row['PricingUnit']!r} is not an hour")
    category = row["PricingCategory"].strip()
    if category not in CATEGORIES:
        raise RowError("unknown_purchase_model", f"PricingCategory {category!r} does not say a purchase model and term")
    check_texts({"region": row["RegionId"]})
    rule = PriceRule(
        action="fixed",
        amount=read_amount(row["ContractedUnitPrice"]),
        provider=provider,
        sku=sku,
        region=row["RegionId"].strip() or None,
        purchase_model=CATEGORIES[category],
        contract=row.get("SkuPriceId") or None,
    )
    currency = read_currency(row.get("PricingCurrency") or row.get("BillingCurrency") or "")
    return date.fromisoformat(row["ChargePeriodStart"][:10]), rule, currency


def _provider(row: Mapping[str, str]) -> str:
    name = row.get("ServiceProviderName") or row.get("ProviderName") or ""
    known = {"amazon web services": "aws", "microsoft": "azure", "google cloud": "gcp", "oracle": "oci"}
    return known.get(name.strip().lower(), name)


def _instance_type(row: Mapping[str, str]) -> str:
    stated = row.get("x_InstanceType", "").strip()
    if stated:
        return stated
    try:
        details = json.loads(row.get("SkuPriceDetails") or "{}")
    except (ValueError, RecursionError):
        return ""
    return str(details.get("InstanceType", "")) if isinstance(details, dict) else ""
