"""Storage a training run keeps, and bytes that leave the provider."""

import re
from collections.abc import Sequence
from decimal import Decimal

from app.catalog.citations import address_of
from app.catalog.rates import EgressTier
from app.catalog.snapshot import Snapshot, StorageSystem
from app.estimates.assumptions import EGRESS, STORAGE, Assumption
from app.estimates.bill import Bill, Run
from app.pricing.money import CONTEXT, ZERO, Money, plain, quantity_from_float
from app.pricing.outcome import Unpriced
from app.pricing.ownership import HOURS_PER_MONTH

GIGABYTE = Decimal(10**9)
TEBIBYTE = Decimal(2**40)
MEGABYTE = Decimal(10**6)
# The priced storage product of each provider in the catalog; where a provider has none, the reference below is used
# and listed as an assumption with its own source.
PROVIDER_STORAGE = {
    "aws": "fsx-lustre-125",
    "gcp": "gcp-managed-lustre-dynamic",
    "coreweave": "coreweave-dfs",
    "nebius": "nebius-object-std",
}
REFERENCE_STORAGE = "coreweave-dfs"
_TIER = re.compile(r"(first|next|to)\s+([0-9.]+)\s*(GB|TB)")


def storage_line(bill: Bill, run: Run, provider: str, asked: str | None, hours: Decimal) -> None:
    """Capacity for the data set and checkpoints, or for the read rate where that needs more, over the billed hours."""
    snapshot = bill.terms.snapshot
    chosen = asked or PROVIDER_STORAGE.get(provider) or REFERENCE_STORAGE
    system = snapshot.storages.get(chosen)
    en, zh = f"Storage for data and checkpoints ({chosen})", "数据与检查点存储"
    if system is None or system.price_amount is None or system.price_currency is None or system.price_bytes is None:
        if asked is None:
            bill.excluded.append({"kind": "storage", "outcome": "unknown_price", "reason": f"no price for {chosen}"})
            return
        reason = f"the catalog has no public price for {system.name if system else chosen}"
        unpriced = Unpriced(outcome="unknown_price", reason=reason)
        bill.lack(kind="storage", charge="usage", en=en, zh=zh, billed=None, unit="gb_month", unpriced=unpriced)
        return
    needed = _capacity_bytes(run, system)
    unit_bytes = Decimal(system.price_bytes)
    months = CONTEXT.divide(hours, HOURS_PER_MONTH)
    billed = CONTEXT.multiply(CONTEXT.divide(needed, unit_bytes), months)
    listed = Money.unit(system.price_amount, system.price_currency)
    priced, native = bill.terms.price(listed, billed, None)
    bill.add(
        kind="storage",
        charge="usage",
        en=en,
        zh=zh,
        billed=billed,
        unit="gib_month" if system.price_bytes == 2**30 else "gb_month",
        priced=priced,
        native_unit=native,
        hours_basis="730",
        evidence={
            "storage_id": system.id,
            "source": system.source,
            "confidence": system.confidence,
            "stale": False,
            **fact_links("storage", system.source),
        },
    )
    if asked is None:
        own = provider in PROVIDER_STORAGE
        why = "the provider's own product" if own else f"no storage price of {provider} in the catalog; reference price"
        bill.assumptions.append(
            Assumption(id="storage", value=chosen, unit="catalog id", source=f"{why}: {system.source}", moves=STORAGE)
        )


def _capacity_bytes(run: Run, system: StorageSystem) -> Decimal:
    held = quantity_from_float(run["storage_bytes"])
    rate, per_tib = run.get("required_read_bytes_per_s"), system.read_mb_s_per_tib
    if not rate or not per_tib:
        return held
    for_rate = CONTEXT.divide(quantity_from_float(rate), quantity_from_float(per_tib) * MEGABYTE) * TEBIBYTE
    return max(held, for_rate)


def egress_line(bill: Bill, run: Run, provider: str) -> None:
    """What leaves the provider; a provider without a known price is named as an exclusion, not priced at zero."""
    moved = quantity_from_float(run["egress_bytes"])
    if moved == 0:
        return
    gigabytes = CONTEXT.divide(moved, GIGABYTE)
    monthly = run["kind"] == "inference"
    listed = egress_price(bill.terms.snapshot, provider, gigabytes)
    if listed is None:
        bill.excluded.append(
            {
                "kind": "egress",
                "quantity": plain(round(gigabytes, 3)),
                "unit": "gb",
                "outcome": "unknown_price",
                "reason": f"the catalog has no egress price of {provider}; the bill does not contain it",
            }
        )
        return
    price, source = listed
    priced, native = bill.terms.price(price, gigabytes, None)
    bill.add(
        kind="egress",
        charge="recurring" if monthly else "usage",
        en="Data leaving the provider",
        zh="出网流量",
        billed=gigabytes,
        unit="gb",
        priced=priced,
        native_unit=native,
        hours_basis="730" if monthly else None,
        evidence={"source": source, "stale": False, **fact_links("egress", source)},
    )
    bill.assumptions.append(
        Assumption(id="egress", value=plain(round(gigabytes, 3)), unit="GB", source=source, moves=EGRESS)
    )


def egress_price(snapshot: Snapshot, provider: str, gigabytes: Decimal) -> tuple[Money, str] | None:
    """Average price of so many gigabytes over the provider's volume tiers; the dearest where tiers are alternatives."""
    tiers = [t for t in snapshot.egress if t.provider == provider]
    if not tiers:
        return None
    bounded = [(_upper_gigabytes(tiers[: i + 1]), t) for i, t in enumerate(tiers)]
    if len(tiers) == 1 or all(upper is None for upper, _ in bounded):
        dearest = max(tiers, key=lambda t: t.amount)
        return Money.unit(dearest.amount, dearest.currency), f"{dearest.tier}: {dearest.source}"
    spent, start = ZERO, ZERO
    for upper, tier in bounded:
        end = gigabytes if upper is None else min(upper, gigabytes)
        if end > start:
            spent = CONTEXT.add(spent, CONTEXT.multiply(end - start, tier.amount))
            start = end
    return Money.unit(CONTEXT.divide(spent, gigabytes), tiers[0].currency), f"volume tiers: {tiers[0].source}"


def _upper_gigabytes(tiers: Sequence[EgressTier]) -> Decimal | None:
    """End of the last of these tiers in GB: "first" and "to" state it, "next" adds to the one before; None = open."""
    match = _TIER.match(tiers[-1].tier)
    if match is None:
        return None
    word, number, unit = match.groups()
    size = Decimal(number) * (1000 if unit == "TB" else 1)
    if word == "next":
        before = _upper_gigabytes(tiers[:-1])
        return None if before is None else before + size
    return size


def fact_links(kind: str, source: str) -> dict[str, str | None]:
    """Where the fact behind a figure is listed, and where its source can be read."""
    return {"facts_url": f"/v1/catalog/facts/{kind}", "source_url": address_of(source)}
