"""How fast the catalog loads, resolves and imports: ``python -m benchmarks.catalog_speed [offers] [rows]``.

Targets: a snapshot of 50,000 offers loads in under 2 s, one resolution takes under 1 ms, an import of 100,000 rows
takes under 60 s with bounded memory. Everything runs on a SQLite file of its own in a temporary folder.
"""

import io
import resource
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

from app.catalog import service
from app.catalog.importing import ImportOrder, parse_import
from app.catalog.loading import load_snapshot
from app.catalog.resolve import resolve_price
from app.catalog.seeding import shipped_regions
from app.foundation.database import Database
from app.foundation.migrations import migrate

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HEAD = (
    "provider,instance_type,accelerator,accelerator_count,sold_unit,region,purchase_model,price,currency,price_unit,"
    "effective_date,source,method,confidence\n"
)


def price_file(rows: int, providers: tuple[str, ...], start: int = 0) -> bytes:
    """Write a CSV of made-up offers of real accelerators, prices inside their bands."""
    random = Random(rows)
    # Real ones: a price in an unknown region is held back.
    regions = sorted(shipped_regions("aws"))
    out = io.StringIO()
    out.write(HEAD)
    for number in range(start, start + rows):
        provider = providers[number % len(providers)]
        price = 16 + random.random() * 4
        region = regions[number % len(regions)]
        out.write(
            f"{provider},bench-{number // len(regions)},H100-SXM5-80GB,8,node,{region},on_demand,{price:.4f},USD,hour,"
            "2026-11-20,benchmark,verbatim,high\n"
        )
    return out.getvalue().encode()


def import_rows(database: Database, content: bytes) -> tuple[int, int]:
    """Import a file and count the new and the held rows."""
    order = ImportOrder(file_format="csv", content=content, filename="bench.csv", observed_on=date(2026, 11, 20))
    parsed = parse_import(database.read_now(service.current_snapshot), order, NOW.date())
    new = held = 0
    for provider in parsed.providers:
        report = database.transact_now(
            lambda connection, provider=provider: service.commit_import(  # type: ignore[misc]
                connection, parsed, provider, now=NOW, actor="benchmark"
            )
        )
        new += report.counts["new"]
        held += report.counts["quarantined"]
    return new, held


def main(offers: int = 50_000, rows: int = 100_000) -> None:
    """Print one line for each measurement."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        migrate(url)
        database = Database(url)
        started = time.perf_counter()
        database.transact_now(service.seed_when_empty)
        print(f"seed of the shipped files: {time.perf_counter() - started:.2f} s")
        import_rows(database, price_file(offers, ("aws",)))
        head = database.read_now(service.current_revision)
        started, cpu = time.perf_counter(), time.process_time()
        snapshot = database.read_now(lambda connection: load_snapshot(connection, head))
        wall, busy = time.perf_counter() - started, time.process_time() - cpu
        print(f"load of {len(snapshot.offers):,} offers: {wall:.2f} s, {busy:.2f} s of CPU (target 2 s)")
        chosen = list(snapshot.offers.values())[:: max(1, len(snapshot.offers) // 5_000)]
        day = NOW.date() - timedelta(days=1)
        started = time.perf_counter()
        for offer in chosen:
            resolve_price(snapshot, offer, day)
        each = (time.perf_counter() - started) / len(chosen)
        print(f"resolution: {each * 1e6:.1f} us each over {len(chosen):,} offers (target 1,000 us)")
        content = price_file(rows, ("aws",), start=1_000_000)
        started, cpu = time.perf_counter(), time.process_time()
        new, held = import_rows(database, content)
        wall, busy = time.perf_counter() - started, time.process_time() - cpu
        size = f"{len(content) / 1e6:.1f} MB"
        print(f"import of {rows:,} rows ({size}): {wall:.1f} s, {busy:.1f} s of CPU, {new:,} new, {held} held (60 s)")
        resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"largest resident size of the process: {resident:.0f} MiB, two snapshots of {offers:,} offers included")
        database.close()


if __name__ == "__main__":
    main(*(int(text) for text in sys.argv[1:3]))
