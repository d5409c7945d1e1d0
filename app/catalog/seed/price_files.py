"""The shipped price files, each with the reading its loader notes ask for."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from importlib.resources import files
from typing import Any

from app.catalog.imports.labels import Labels
from app.catalog.imports.own_csv import Reading, csv_rows, decode_text, price_column, read_csv, stage
from app.catalog.imports.staged import RejectedRow, StagedPrice, StagedRow
from app.catalog.imports.trust import TrustTable
from app.catalog.seed.infrastructure import believable_price

# The seed files were compiled on this day; a row without a date was seen on or before it.
COMPILED_ON = date(2026, 11, 30)
# AWS Capacity Block prices of the mirror were "in force until 2025-01-01" (the source's own words).
CAPACITY_BLOCK_END = date(2025, 1, 1)

PRICE_FILES = ("cloud_prices.csv", "cloud_prices_trackers.csv", "cloud_prices_native_currency.csv")


def data_bytes(name: str) -> bytes:
    """Read one shipped file."""
    return files("app.catalog").joinpath("data", *name.split("/")).read_bytes()


def seed_reading(labels: Labels, trust: TrustTable) -> Reading:
    """Say how shipped rows are read: an undated one counts from the day the files were compiled."""
    return Reading(labels=labels, trust=trust, undated_from=COMPILED_ON)


def seed_prices(labels: Labels, trust: TrustTable, doubts: Sequence[Mapping[str, Any]]) -> list[StagedRow]:
    """Stage every shipped price row, history first, known doubts marked."""
    reading = seed_reading(labels, trust)
    rows: list[StagedRow] = []
    cloud = [row for name in PRICE_FILES for row in read_csv(data_bytes(name), reading)]
    rows.extend(_history(reading, cloud))
    rows.extend(_adjusted(row, doubts) for row in cloud)
    rows.extend(_components(reading))
    rows.extend(_server_prices())
    return rows


def _server_prices() -> Iterator[RejectedRow]:
    """Hold back server prices that are not the price of the thing they stand under."""
    for server in json.loads(data_bytes("servers.json"))["servers"]:
        for price in server["prices"]:
            doubt = believable_price(server, price)
            if doubt is not None:
                raw = {"server": server["id"], **{name: str(value) for name, value in price.items()}}
                yield RejectedRow(line=0, reason=doubt[0], detail=doubt[1], raw=raw, provider="servers")


def _adjusted(row: StagedRow, doubts: Sequence[Mapping[str, Any]]) -> StagedRow:
    if isinstance(row, RejectedRow):
        return row
    if row.key.purchase_model == "capacity_block" and "until 2025-01-01" in row.source.citation:
        row = replace(row, valid_to=CAPACITY_BLOCK_END, note="reservation fee only; the operating system fee is extra")
    if row.key.provider == "coreweave" and row.accelerator_id in ("gb200-186", "gb300-288"):
        row = replace(row, min_quantity=18, quantity_step=18, note="sold by the rack of 18 nodes (docs.coreweave.com)")
    found = tuple((str(doubt["reason"]), str(doubt["detail"])) for doubt in doubts if _matches(doubt["match"], row))
    return replace(row, doubts=found) if found else row


def _matches(match: Mapping[str, Any], row: StagedPrice) -> bool:
    facts = {
        "provider": row.key.provider,
        "instance_type": row.key.sku,
        "region": row.key.region,
        "purchase_model": row.key.purchase_model,
        "amount": str(row.amount),
        "observed_on": None if row.observed_on is None else row.observed_on.isoformat(),
    }
    prefix = match.get("instance_type_prefix", "")
    return row.key.sku.startswith(prefix) and all(
        facts[name] == value for name, value in match.items() if name != "instance_type_prefix"
    )


def _history(reading: Reading, cloud: Sequence[StagedRow]) -> Iterator[StagedRow]:
    """Stage observed price steps: a step that another follows ends the day after it was last seen, the last is open."""
    shapes = {
        (row.key.provider, row.key.sku): row
        for row in cloud
        if isinstance(row, StagedPrice) and row.key.purchase_model == "on_demand"
    }
    _, rows = csv_rows(decode_text(data_bytes("cloud_price_history.csv")))
    steps: dict[tuple[str, ...], list[tuple[int, dict[str, str]]]] = defaultdict(list)
    for line, row in rows:
        key = (row["provider"], row["instance_type"], row["region"], row["purchase_model"], row["currency"])
        steps[key].append((line, row))
    for (provider, sku, *_), found in steps.items():
        shape = shapes[provider, sku]
        found.sort(key=lambda item: item[1]["first_observed"])
        for position, (line, row) in enumerate(found):
            last_seen = date.fromisoformat(row["last_observed"])
            plain = {
                "provider": row["provider"],
                "instance_type": row["instance_type"],
                "accelerator": shape.key.accelerator_label,
                "accelerator_count": str(shape.accelerator_count),
                "sold_unit": shape.sold_unit,
                "region": row["region"],
                "purchase_model": row["purchase_model"],
                "currency": row["currency"],
                "price_native_per_hour": row["price_per_hour"],
                "effective_date": row["last_observed"],
                "valid_from": row["first_observed"],
                "source": row["source"].partition(" first seen at commit")[0],
                "note": "first seen at commit" + row["source"].partition(" first seen at commit")[2],
            }
            staged = stage(line, plain, "price_native_per_hour", reading)
            if isinstance(staged, StagedPrice):
                followed = position + 1 < len(found)
                staged = replace(
                    staged,
                    valid_to=last_seen + timedelta(days=1) if followed else None,
                    valid_from_published=False,
                    # Both sides of each step were read from the history of one public file, day by day.
                    jump_confirmed=True,
                    vcpus=shape.vcpus,
                    memory_gib=shape.memory_gib,
                )
            yield staged


# The one machine type of the A4 series is a4-highgpu-8g (cloud.google.com/compute/docs/gpus, "A4 machine series").
A4_ACCELERATORS = 8


def _components(reading: Reading) -> Iterator[StagedRow]:
    """Stage GCP accelerator SKUs: most exclude the host and are components, the B200 slices include it."""
    _, rows = csv_rows(decode_text(data_bytes("gcp_gpu_components.csv")))
    for line, row in rows:
        whole = row["scope"] == "slice_including_host"
        label = f"gcp:{row['accelerator']}"
        plain = {
            "provider": row["provider"],
            "instance_type": row["sku_description"],
            "accelerator": label,
            "accelerator_count": "1",
            "region": row["region"],
            "purchase_model": row["purchase_model"],
            "price_usd_per_hour": row["price_usd_per_gpu_hour"],
            "effective_date": row["effective_date"],
            "source": f"{row['source']}; {row['note']}" if row["note"] else row["source"],
            "sold_unit": "gpu",
            "scope": "bundle" if whole else "component",
            "note": row["note"],
        }
        staged = stage(line, plain, price_column(plain), reading)
        if isinstance(staged, StagedPrice):
            if whole:
                staged = replace(staged, min_quantity=A4_ACCELERATORS, quantity_step=A4_ACCELERATORS)
            else:
                staged = replace(staged, excluded_reason="component_without_host")
        yield staged
