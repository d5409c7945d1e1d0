"""Small catalogs for tests: one offer, a few dated rows, everything else empty."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from app.catalog.offers import Offer, OfferKey, PriceRow, QuarantinedRow, Source
from app.catalog.snapshot import FxTable, Snapshot

RECORDED_AT = datetime(2026, 12, 1, tzinfo=UTC)


def make_offer(offer_id: str = "ofr_1", **changes: Any) -> Offer:
    key: dict[str, Any] = {
        "provider": "acme",
        "sku": "node.8x",
        "accelerator_label": "H100-SXM5-80GB",
        "region": "r1",
        "purchase_model": "on_demand",
    }
    plain: dict[str, Any] = {
        "scope": "bundle",
        "sold_unit": "node",
        "accelerator_id": "h100-sxm5-80",
        "accelerator_count": 8,
    }
    for name, value in changes.items():
        (key if name in OfferKey.__dataclass_fields__ else plain)[name] = value
    return Offer(id=offer_id, key=OfferKey(**key), **plain)


def make_row(
    amount: str,
    valid_from: str,
    valid_to: str | None = None,
    observed_on: str | None = "same",
    *,
    offer_id: str = "ofr_1",
    method: str = "api",
    **changes: Any,
) -> PriceRow:
    seen = valid_from if observed_on == "same" else observed_on
    fields: dict[str, Any] = {
        "id": f"prc_{method}_{amount}_{valid_from}",
        "currency": "USD",
        "price_unit": "hour",
        "recorded_at": RECORDED_AT,
        "recorded_revision": 1,
        "source": Source(id=f"src_{method}", citation=f"a {method} source", method=method),
        "kind": "list",
        "confidence": "high",
    }
    fields.update(changes)
    return PriceRow(
        offer_id=offer_id,
        amount=Decimal(amount),
        valid_from=date.fromisoformat(valid_from),
        valid_to=None if valid_to is None else date.fromisoformat(valid_to),
        observed_on=None if seen is None else date.fromisoformat(seen),
        **fields,
    )


def make_snapshot(
    offers: Sequence[Offer], rows: Sequence[PriceRow], quarantine: Sequence[QuarantinedRow] = ()
) -> Snapshot:
    prices: dict[str, list[PriceRow]] = {}
    for row in sorted(rows, key=lambda row: (row.valid_from, row.id)):
        prices.setdefault(row.offer_id, []).append(row)
    return Snapshot(
        number=1,
        revision_id="cat_1",
        content_sha256="0" * 64,
        recorded_at=RECORDED_AT,
        accelerators={},
        models={},
        node_shapes={},
        servers={},
        switches=(),
        storages={},
        offers={offer.id: offer for offer in offers},
        prices={offer_id: tuple(found) for offer_id, found in prices.items()},
        quarantine=tuple(quarantine),
        fx=FxTable(fixings=()),
        tariffs=(),
        pue=(),
        colocation=(),
        egress=(),
        street_prices=(),
        own_cost={},
        taxes=(),
        software=(),
        reliability={},
        reference=(),
        availability={},
        providers={},
        provider_aliases={"datacrunch": "verda"},
        accelerator_aliases={},
        calibration={},
        evidence={},
    )
