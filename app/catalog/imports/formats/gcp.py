"""Google Cloud Billing catalog SKUs: accelerator SKUs as components, and machines put together by recipe.

An accelerator SKU has no host (skypilot-catalog#31 priced the host alone, this file would price the accelerator
alone), so it is a component. A machine's price is the sum of its parts, every part of the same region and usage type;
a recipe with a part missing gives no price and says so.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.catalog.imports.own_csv import Reading, load_json, stage_all
from app.catalog.imports.staged import FileError, RejectedRow, StagedRow, decimal_of, text_of

USAGE = {"OnDemand": "on_demand", "Preemptible": "spot"}
NANO = Decimal("0.000000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A machine as quantities of SKU descriptions, each a text the description starts with."""

    machine: str
    accelerator: str
    accelerator_count: int
    parts: tuple[tuple[str, Decimal], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sku:
    line: int
    description: str
    usage: str
    region: str
    amount: Decimal
    currency: str
    effective: str


def recipes_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Recipe, ...]:
    """Read recipes as shipped."""
    return tuple(
        Recipe(
            machine=row["machine"],
            accelerator=row["accelerator"],
            accelerator_count=row["accelerator_count"],
            parts=tuple((part["description"], Decimal(part["quantity"])) for part in row["parts"]),
        )
        for row in rows
    )


def read_gcp(content: bytes, reading: Reading, recipes: Sequence[Recipe]) -> Iterator[StagedRow]:
    """Stage accelerator components and the machines whose parts are all there."""
    try:
        skus = [sku for number, row in enumerate(load_json(content)["skus"], start=1) for sku in _skus(number, row)]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise FileError("malformed_json", f"this is not a list of Cloud Billing SKUs: {error!r}") from None
    yield from stage_all(_components(skus, recipes, reading), reading)
    for row in _machines(skus, recipes, reading):
        if isinstance(row, RejectedRow):
            yield row
        else:
            yield from stage_all([row], reading)


def _skus(number: int, row: Mapping[str, Any]) -> Iterator[_Sku]:
    usage = row["category"]["usageType"]
    if usage not in USAGE:
        return
    # The timeline is in order; the last entry is what holds now.
    pricing = row["pricingInfo"][-1]
    expression = pricing["pricingExpression"]
    rate = expression["tieredRates"][-1]["unitPrice"]
    if expression["usageUnit"] not in ("h", "GiBy.h"):
        raise ValueError(f"SKU {row['skuId']} is priced per {expression['usageUnit']}")
    for region in row["serviceRegions"]:
        yield _Sku(
            line=number,
            description=text_of(row["description"]),
            usage=USAGE[usage],
            region=text_of(region),
            amount=decimal_of(rate["units"]) + NANO * decimal_of(rate["nanos"]),
            currency=text_of(rate["currencyCode"]),
            effective=text_of(pricing["effectiveTime"])[:10],
        )


def _plain(reading: Reading) -> dict[str, str]:
    return {
        "provider": "gcp",
        "price_unit": "hour",
        "observed_on": "" if reading.observed_on is None else reading.observed_on.isoformat(),
        "source": reading.default_source or "Google Cloud Billing catalog",
        "method": "api",
        "confidence": "high",
    }


def _components(
    skus: Sequence[_Sku], recipes: Sequence[Recipe], reading: Reading
) -> Iterator[tuple[int, Mapping[str, str]]]:
    for sku in skus:
        recipe = next((r for r in recipes if sku.description.startswith(r.parts[0][0])), None)
        if recipe is not None:
            yield (
                sku.line,
                {
                    **_plain(reading),
                    "instance_type": sku.description,
                    "accelerator": recipe.accelerator,
                    "accelerator_count": "1",
                    "sold_unit": "gpu",
                    "scope": "component",
                    "region": sku.region,
                    "purchase_model": sku.usage,
                    "currency": sku.currency,
                    "price": format(sku.amount, "f"),
                    "valid_from": sku.effective,
                },
            )


def _machines(
    skus: Sequence[_Sku], recipes: Sequence[Recipe], reading: Reading
) -> Iterator[tuple[int, Mapping[str, str]] | RejectedRow]:
    places: dict[tuple[str, str], list[_Sku]] = defaultdict(list)
    for sku in skus:
        places[sku.region, sku.usage].append(sku)
    for (region, usage), found in sorted(places.items()):
        for recipe in recipes:
            parts = [
                (quantity, [sku for sku in found if sku.description.startswith(text)], text)
                for text, quantity in recipe.parts
            ]
            if not parts[0][1]:
                continue
            missing = [text for _, matches, text in parts if len(matches) != 1]
            if missing:
                yield RejectedRow(
                    line=parts[0][1][0].line,
                    reason="incomplete_bundle",
                    detail=f"{recipe.machine} in {region} ({usage}): no single SKU for {', '.join(missing)}",
                    raw={"machine": recipe.machine, "region": region, "usage": usage},
                    provider="gcp",
                )
                continue
            chosen = [(quantity, matches[0]) for quantity, matches, _ in parts]
            yield (
                chosen[0][1].line,
                {
                    **_plain(reading),
                    "instance_type": recipe.machine,
                    "accelerator": recipe.accelerator,
                    "accelerator_count": str(recipe.accelerator_count),
                    "sold_unit": "node",
                    "scope": "bundle",
                    "region": region,
                    "purchase_model": usage,
                    "currency": chosen[0][1].currency,
                    "price": format(sum((quantity * sku.amount for quantity, sku in chosen), Decimal(0)), "f"),
                    "valid_from": max(sku.effective for _, sku in chosen),
                    "note": "sum of " + ", ".join(f"{quantity} x {sku.description}" for quantity, sku in chosen),
                },
            )
