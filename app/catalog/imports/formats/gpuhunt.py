"""gpuhunt catalogs: one CSV a provider, or the zip of them.

What its fields mean differs by provider (read in PyPI gpuhunt 0.1.34): a Vast "spot" price is the smallest bid that is
accepted and so no price at all, an OCI one is half the on-demand price by its own arithmetic, and a GCP location is a
zone where prices are of the region.
"""

import re
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from itertools import chain
from pathlib import PurePosixPath

from app.catalog.imports.own_csv import Reading, csv_rows, decode_text, stage_all
from app.catalog.imports.staged import FileError, RejectedRow, StagedRow

COLUMNS = frozenset({"instance_name", "location", "price", "gpu_count", "gpu_name", "spot"})
ZONE = re.compile(r"-[a-z]$", re.ASCII)
# Unpacked size of the largest published catalog is about 30 MB; a zip that claims more is not one of those.
MAX_UNPACKED_BYTES = 200_000_000


def read_gpuhunt(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage a provider's CSV, or every provider of a zip; a broken member is reported and the others are read."""
    if not content.startswith(b"PK\x03\x04"):
        if not reading.provider:
            raise FileError("missing_provider", "a gpuhunt CSV does not name its provider; give provider")
        return _read_csv(content, reading.provider, reading)
    try:
        archive = zipfile.ZipFile(BytesIO(content))
    except zipfile.BadZipFile as error:
        raise FileError("truncated_file", f"the zip is cut off or damaged: {error}") from None
    members = [entry for entry in archive.infolist() if entry.filename.endswith(".csv")]
    if sum(entry.file_size for entry in members) > MAX_UNPACKED_BYTES:
        raise FileError("file_too_large", f"the zip unpacks to more than {MAX_UNPACKED_BYTES} bytes")
    return chain.from_iterable(_read_member(archive, entry, reading) for entry in members)


def _read_member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, reading: Reading) -> Iterator[StagedRow]:
    provider = PurePosixPath(entry.filename).stem
    try:
        yield from _read_csv(archive.read(entry), provider, reading)
    except (FileError, zipfile.BadZipFile) as error:
        detail = error.detail if isinstance(error, FileError) else str(error)
        yield RejectedRow(
            line=0, reason="broken_provider_file", detail=f"{entry.filename}: {detail}", provider=provider
        )


def _read_csv(content: bytes, provider: str, reading: Reading) -> Iterator[StagedRow]:
    header, rows = csv_rows(decode_text(content))
    missing = sorted(COLUMNS - set(header))
    if missing:
        raise FileError("missing_column", f"a gpuhunt catalog has the columns {', '.join(missing)}")
    return stage_all(_plain_rows(rows, provider, reading), reading)


def _plain_rows(
    rows: Iterator[tuple[int, dict[str, str]]], provider: str, reading: Reading
) -> Iterator[tuple[int, Mapping[str, str]]]:
    for line, row in rows:
        if _is_minimum_bid(row, provider):
            continue
        if not row["gpu_name"].strip() or row["gpu_count"].strip() in ("", "0"):
            continue
        memory = row.get("gpu_memory", "").partition(".")[0]
        yield (
            line,
            {
                "provider": row.get("provider", "") or provider,
                "instance_type": row["instance_name"],
                "accelerator": f"{row['gpu_name']}:{memory}" if memory else row["gpu_name"],
                "accelerator_count": row["gpu_count"],
                "sold_unit": "node",
                "vcpus": row.get("cpu", ""),
                "memory_gib": row.get("memory", ""),
                "region": _region(row["location"], provider),
                "purchase_model": "spot" if _is_spot(row) else "on_demand",
                "price": row["price"],
                "currency": "USD",
                "price_unit": "hour",
                "observed_on": "" if reading.observed_on is None else reading.observed_on.isoformat(),
                "source": reading.default_source or "gpuhunt catalog",
                "method": "generated" if _is_computed(row, provider) else "tracker",
                "kind": "estimate" if _is_computed(row, provider) else "",
            },
        )


def _is_spot(row: Mapping[str, str]) -> bool:
    return row["spot"].strip().lower() == "true"


def _is_minimum_bid(row: Mapping[str, str], provider: str) -> bool:
    """Whether the price is the least one may bid: never a price (skypilot#9156)."""
    return _is_spot(row) and (provider == "vastai" or '"min_bid"' in row.get("provider_data", ""))


def _is_computed(row: Mapping[str, str], provider: str) -> bool:
    """Whether the price was computed from another one (karpenter-provider-gcp#178)."""
    return _is_spot(row) and provider == "oci"


def _region(location: str, provider: str) -> str:
    if provider == "gcp":
        return ZONE.sub("", location)
    return location or "global"
