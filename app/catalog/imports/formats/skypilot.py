"""SkyPilot catalog CSV (v8): one wide row with on-demand and spot price becomes two offers; blank = unknown."""

import ast
from collections.abc import Iterator, Mapping

from app.catalog.imports.own_csv import Reading, csv_rows, decode_text, stage_all
from app.catalog.imports.staged import FileError, StagedRow

COLUMNS = frozenset({"InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region"})


def read_skypilot(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage the accelerator rows of one cloud's file; the cloud is the caller's to name, the file does not."""
    header, rows = csv_rows(decode_text(content))
    missing = sorted(COLUMNS - set(header))
    if missing:
        raise FileError("missing_column", f"a SkyPilot catalog has the columns {', '.join(missing)}")
    if not reading.provider:
        raise FileError("missing_provider", "a SkyPilot file does not name its cloud; give provider")
    return stage_all(_plain_rows(rows, reading), reading)


def _plain_rows(
    rows: Iterator[tuple[int, dict[str, str]]], reading: Reading
) -> Iterator[tuple[int, Mapping[str, str]]]:
    for line, row in rows:
        if not row["AcceleratorName"].strip():
            continue
        plain = {
            "provider": reading.provider,
            "instance_type": row["InstanceType"],
            "accelerator": _label(row),
            "accelerator_count": row["AcceleratorCount"],
            "sold_unit": "node",
            "vcpus": row.get("vCPUs", ""),
            "memory_gib": row.get("MemoryGiB", ""),
            # Zones of one region share a price; one worldwide price is repeated a region, so a row is not capacity.
            "region": row["Region"] or "global",
            "currency": "USD",
            "price_unit": "hour",
            "observed_on": "" if reading.observed_on is None else reading.observed_on.isoformat(),
            "source": reading.default_source or "SkyPilot catalog v8",
            "method": "tracker",
        }
        for column, model in (("Price", "on_demand"), ("SpotPrice", "spot")):
            if row.get(column, "").strip():
                yield line, {**plain, "purchase_model": model, "price": row[column]}


def _label(row: Mapping[str, str]) -> str:
    """Name the part: the accelerator's name, its form factor from the instance type, its memory where stated."""
    name = row["AcceleratorName"].strip()
    if "sxm" in row["InstanceType"].lower() and name in ("H100", "H200"):
        return f"{name}-SXM"
    memory = _memory_gib(row.get("GpuInfo", ""))
    return name if memory is None or name not in ("A100", "H100") else f"{name}:{memory}"


def _memory_gib(text: str) -> int | None:
    try:
        info = ast.literal_eval(text)
        return round(int(info["Gpus"][0]["MemoryInfo"]["SizeInMiB"]) / 1024)
    except (ValueError, SyntaxError, KeyError, IndexError, TypeError, MemoryError, RecursionError):
        return None
