"""The catalog as one revision believed it: a frozen value, loaded once and shared by every request in the process."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

from app.catalog.entries import (
    AcceleratorEntry,
    MarketingCheck,
    ModelEntry,
    NetworkSwitch,
    NodeShape,
    Server,
    StorageSystem,
)
from app.catalog.offer_rows import OfferRows
from app.catalog.offers import Availability, Offer, OfferKey, PriceRow, QuarantinedRow, Source
from app.catalog.rates import (
    ColocationRate,
    EgressTier,
    ElectricityTariff,
    FxFixing,
    FxRate,
    FxTable,
    OwnCostReference,
    PriceRange,
    PueFact,
    ReferenceFact,
    SoftwareMinimum,
    TaxRule,
)

__all__ = [
    "AcceleratorEntry",
    "Availability",
    "ColocationRate",
    "EgressTier",
    "ElectricityTariff",
    "FxFixing",
    "FxRate",
    "FxTable",
    "MarketingCheck",
    "ModelEntry",
    "NetworkSwitch",
    "NodeShape",
    "Offer",
    "OfferKey",
    "OwnCostReference",
    "PriceRange",
    "PriceRow",
    "PueFact",
    "QuarantinedRow",
    "ReferenceFact",
    "Server",
    "Snapshot",
    "SoftwareMinimum",
    "Source",
    "StorageSystem",
    "TaxRule",
]

_NO_PRICES: tuple[PriceRow, ...] = ()
_NO_QUARANTINE: tuple[QuarantinedRow, ...] = ()


Indexes = tuple[Mapping[str, Sequence[str]], Mapping[tuple[str, str], Sequence[str]]]


def _indexes(offers: Mapping[str, Offer]) -> Indexes:
    """Offer ids by accelerator, and by provider and SKU."""
    if isinstance(offers, OfferRows):
        return offers.by_accelerator, offers.by_sku
    by_accelerator: dict[str, list[str]] = defaultdict(list)
    by_sku: dict[tuple[str, str], list[str]] = defaultdict(list)
    for offer in offers.values():
        by_sku[offer.key.provider, offer.key.sku].append(offer.id)
        if offer.accelerator_id is not None:
            by_accelerator[offer.accelerator_id].append(offer.id)
    return by_accelerator, by_sku


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything the catalog held at one revision.

    Parameters
    ----------
    number : int
        Revision number, from 1, without gaps.
    revision_id : str
        Public id of the revision, stored in every quote.
    content_sha256 : str
        Chained over the rows of this revision and all before it.
    calibration, evidence : mapping of str to data
        ``training`` and ``serving``: the engine's fitted parameters, and the public measurements behind them.
    """

    number: int
    revision_id: str
    content_sha256: str
    recorded_at: datetime
    accelerators: Mapping[str, AcceleratorEntry]
    models: Mapping[str, ModelEntry]
    node_shapes: Mapping[str, NodeShape]
    servers: Mapping[str, Server]
    switches: tuple[NetworkSwitch, ...]
    storages: Mapping[str, StorageSystem]
    offers: Mapping[str, Offer]
    prices: Mapping[str, tuple[PriceRow, ...]]
    quarantine: tuple[QuarantinedRow, ...]
    fx: FxTable
    tariffs: tuple[ElectricityTariff, ...]
    pue: tuple[PueFact, ...]
    colocation: tuple[ColocationRate, ...]
    egress: tuple[EgressTier, ...]
    street_prices: tuple[PriceRange, ...]
    own_cost: Mapping[str, OwnCostReference]
    taxes: tuple[TaxRule, ...]
    software: tuple[SoftwareMinimum, ...]
    reliability: Mapping[str, ReferenceFact]
    reference: tuple[ReferenceFact, ...]
    availability: Mapping[str, tuple[Availability, ...]]
    providers: Mapping[str, Mapping[str, Any]]
    provider_aliases: Mapping[str, str]
    accelerator_aliases: Mapping[str, str | None]
    calibration: Mapping[str, Mapping[str, Any]]
    evidence: Mapping[str, tuple[Mapping[str, Any], ...]]
    _by_accelerator: Mapping[str, Sequence[str]] = field(init=False, repr=False, compare=False)
    _by_sku: Mapping[tuple[str, str], Sequence[str]] = field(init=False, repr=False, compare=False)
    _quarantine_by_offer: Mapping[str, tuple[QuarantinedRow, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_accelerator, by_sku = _indexes(self.offers)
        held: dict[str, list[QuarantinedRow]] = defaultdict(list)
        for entry in self.quarantine:
            if entry.offer_id is not None and entry.holds:
                held[entry.offer_id].append(entry)
        object.__setattr__(self, "_by_accelerator", by_accelerator)
        object.__setattr__(self, "_by_sku", by_sku)
        object.__setattr__(self, "_quarantine_by_offer", {key: tuple(value) for key, value in held.items()})

    def prices_of(self, offer_id: str) -> tuple[PriceRow, ...]:
        """Give the price rows of an offer, oldest start first."""
        return self.prices.get(offer_id, _NO_PRICES)

    def quarantined_of(self, offer_id: str) -> tuple[QuarantinedRow, ...]:
        """Give the rows of an offer that a check holds back."""
        return self._quarantine_by_offer.get(offer_id, _NO_QUARANTINE)

    def provider_id(self, name: str) -> str:
        """Fold a provider's other names into its id (DataCrunch is Verda)."""
        folded = name.strip().lower()
        return self.provider_aliases.get(folded, folded)

    def offers_of_accelerator(self, accelerator_id: str) -> tuple[Offer, ...]:
        """Give every offer of one accelerator, components and indications included."""
        return tuple(self.offers[offer_id] for offer_id in self._by_accelerator.get(accelerator_id, ()))

    def offers_of_sku(self, provider: str, sku: str) -> tuple[Offer, ...]:
        """Give every offer of one instance type or SKU over all regions and purchase models."""
        found = self._by_sku.get((self.provider_id(provider), sku), ())
        return tuple(self.offers[offer_id] for offer_id in found)

    def find_offers(
        self,
        *,
        providers: Iterable[str] | None = None,
        instance_type: str | None = None,
        accelerators: Iterable[str] | None = None,
        regions: Iterable[str] | None = None,
        purchase_models: Iterable[str] | None = None,
        term_months: int | None = None,
        automatic_only: bool = False,
    ) -> tuple[Offer, ...]:
        """Select offers, in id order; None = no restriction on that part."""
        wanted_providers = None if providers is None else {self.provider_id(name) for name in providers}
        wanted_accelerators = None if accelerators is None else set(accelerators)
        wanted_regions = None if regions is None else set(regions)
        wanted_models = None if purchase_models is None else set(purchase_models)
        if wanted_accelerators is None:
            candidates: Iterable[Offer] = self.offers.values()
        else:
            ids = (self._by_accelerator.get(accelerator_id, ()) for accelerator_id in wanted_accelerators)
            candidates = (self.offers[offer_id] for offer_id in sorted(chain.from_iterable(ids)))
        return tuple(
            offer
            for offer in candidates
            if (wanted_providers is None or offer.key.provider in wanted_providers)
            and (instance_type is None or offer.key.sku == instance_type)
            and (wanted_regions is None or offer.key.region in wanted_regions)
            and (wanted_models is None or offer.key.purchase_model in wanted_models)
            and (term_months is None or offer.key.term_months == term_months)
            and (not automatic_only or offer.excluded_reason is None)
        )
