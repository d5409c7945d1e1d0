"""On what a job may run: offers of the catalog that match the supply, and the hardware behind each of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.catalog.offers import Offer
from app.catalog.snapshot import Snapshot
from app.estimates.errors import refused_field, unknown_name
from app.estimates.hardware import Hardware, hardware_of, wired_hardware
from app.estimates.remembered import Remembered
from app.estimates.schemas import PurchaseModel, Supply

STEADY, SPOT = "steady", "spot"
REMEMBERED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An offer and the hardware it gives; ``offer`` None = owned hardware.

    Parameters
    ----------
    fabric_basis : str
        ``caller``, ``offer``, ``typical`` (the accelerator's usual network, an assumption) or ``unknown``.
    name : str
        Breaks ties in ranking, so that order never flips.
    """

    hardware: Hardware
    offer: Offer | None
    fabric_basis: str
    name: str

    @property
    def market(self) -> str:
        """``spot`` where the provider may take the machine back, else ``steady``."""
        return SPOT if self.offer is not None and self.offer.purchase_model == "spot" else STEADY


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something that was asked for or matched and cannot be quoted, with the reason."""

    subject: str
    code: str
    reason: str

    def as_json(self) -> dict[str, str]:
        """The shape an answer shows."""
        return {"subject": self.subject, "code": self.code, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the supply leaves."""

    candidates: tuple[Candidate, ...]
    skipped: tuple[Skipped, ...]
    hardware: tuple[Hardware, ...]
    markets: Mapping[str, tuple[str, ...]]


def select(snapshot: Snapshot, supply: Supply, at: str) -> Selection:
    """Match the supply against the catalog; remembered, since a revision never changes.

    Parameters
    ----------
    at : str
        JSON pointer of the supply, for errors.
    """
    key = (snapshot.content_sha256, supply.model_dump_json())
    found = _selections.get(key)
    if found is None:
        found = _selections.put(key, _select(snapshot, supply, at))
    return found


NOT_ASKED = Skipped(
    subject="spot, marketplace, owned",
    code="not_asked",
    reason="quoted when supply.purchase_models names them: their prices hold for a day or depend on the buyer",
)
_selections: Remembered[tuple[str, str], Selection] = Remembered(REMEMBERED)


def _select(snapshot: Snapshot, supply: Supply, at: str) -> Selection:
    _check_names(snapshot, supply, at)
    _check_ownership(supply, at)
    skipped: list[Skipped] = []
    candidates: list[Candidate] = []
    for offer in _offers(snapshot, supply):
        reason = _excluded(snapshot, offer, pinned=supply.offers is not None)
        if reason is not None:
            if supply.offers is not None:
                skipped.append(reason)
            continue
        hardware, basis = hardware_of(snapshot, offer, supply.network)
        name = "/".join(offer.key.parts())
        candidates.append(Candidate(hardware=hardware, offer=offer, fabric_basis=basis, name=name))
    if _wants_owned(supply):
        owned, without = _owned(snapshot, supply)
        candidates.extend(owned)
        skipped.extend(without)
    skipped.extend(_unquotable(snapshot, supply))
    if supply.purchase_models is None and supply.offers is None:
        skipped.append(NOT_ASKED)
    machines = {c.hardware.key: c.hardware for c in candidates}
    markets: dict[str, set[str]] = {}
    for candidate in candidates:
        markets.setdefault(candidate.hardware.key, set()).add(candidate.market)
    return Selection(
        candidates=tuple(candidates),
        skipped=tuple(skipped),
        hardware=tuple(machines[key] for key in sorted(machines)),
        markets={key: tuple(sorted(found, reverse=True)) for key, found in markets.items()},
    )


def _check_names(snapshot: Snapshot, supply: Supply, at: str) -> None:
    for i, accelerator in enumerate(supply.accelerators or ()):
        if accelerator not in snapshot.accelerators:
            raise unknown_name(f"{at}/accelerators/{i}", "accelerator", accelerator, snapshot.accelerators)
    offers = snapshot.offers
    for i, offer in enumerate(supply.offers or ()):
        if offer not in offers:
            raise unknown_name(f"{at}/offers/{i}", "offer", offer, offers)
    if supply.providers is not None:
        known = {o.provider for o in offers.values()}
        for i, provider in enumerate(supply.providers):
            if snapshot.provider_id(provider) not in known:
                raise unknown_name(f"{at}/providers/{i}", "provider", provider, known)
    if supply.regions is not None:
        regions = {o.region for o in offers.values()}
        for i, region in enumerate(supply.regions):
            if region not in regions:
                raise unknown_name(f"{at}/regions/{i}", "region", region, regions)
    if supply.storage is not None and supply.storage not in snapshot.storages:
        raise unknown_name(f"{at}/storage", "storage", supply.storage, snapshot.storages)


def _check_ownership(supply: Supply, at: str) -> None:
    """Terms of owned hardware that nothing in the supply would use are refused, never ignored."""
    kinds = [model.kind for model in supply.purchase_models or ()]
    if supply.ownership is None or (supply.offers is None and (not kinds or "owned" in kinds)):
        return
    if supply.offers is not None:
        message = "supply.offers names rented capacity only, so supply.ownership has no effect; leave one of them out"
        raise refused_field(f"{at}/ownership", "ownership_unused", message)
    raise refused_field(
        f"{at}/ownership",
        "ownership_unused",
        f"supply.purchase_models asks for {', '.join(kinds)} and not for owned hardware, so supply.ownership has no "
        'effect; add "owned" to purchase_models or leave ownership out',
        {f"{at}/purchase_models": [*kinds, "owned"]},
    )


def _offers(snapshot: Snapshot, supply: Supply) -> Iterable[Offer]:
    if supply.offers is not None:
        return [snapshot.offers[offer] for offer in supply.offers]
    found = snapshot.find_offers(providers=supply.providers, accelerators=supply.accelerators, regions=supply.regions)
    return [offer for offer in found if bought_as(offer, supply.purchase_models) is not None]


ANY_PURCHASE = PurchaseModel(kind="on_demand")


def bought_as(offer: Offer, wanted: Sequence[PurchaseModel] | None) -> PurchaseModel | None:
    """The wanted purchase model an offer answers, or None.

    Without a wish, everything a provider signs for: no market indications, and no spot capacity, whose price holds for
    a day and whose machines can be taken back.
    """
    if wanted is None:
        return None if offer.indicative or offer.purchase_model == "spot" else ANY_PURCHASE
    for model in wanted:
        if model.kind != offer.purchase_model or (offer.indicative and model.kind != "marketplace"):
            continue
        if model.term_months not in (None, offer.key.term_months or None):
            continue
        if model.payment not in (None, offer.key.payment_option) and offer.key.payment_option != "unstated":
            continue
        return model
    return None


def _excluded(snapshot: Snapshot, offer: Offer, *, pinned: bool) -> Skipped | None:
    if offer.scope == "component":
        return Skipped(
            subject=offer.id, code="component", reason="the price is for the accelerator without its host machine"
        )
    if offer.accelerator_id is None:
        return Skipped(
            subject=offer.id,
            code="unknown_accelerator",
            reason=f"the label {offer.key.accelerator_label!r} does not say which part it is",
        )
    if offer.excluded_reason is not None and not pinned:
        return Skipped(subject=offer.id, code="excluded", reason=offer.excluded_reason)
    entry = snapshot.accelerators.get(offer.accelerator_id)
    if entry is None or entry.spec is None or not entry.quotable:
        why = entry.not_quotable_reason if entry else None
        return Skipped(subject=offer.id, code="not_quotable", reason=why or "the catalog has no usable specification")
    return None


def _wants_owned(supply: Supply) -> bool:
    if supply.offers is not None:
        return False
    return supply.ownership is not None or any(m.kind == "owned" for m in supply.purchase_models or ())


def _owned(snapshot: Snapshot, supply: Supply) -> tuple[list[Candidate], list[Skipped]]:
    """Owned hardware for every accelerator that is asked for, or that has a server in the catalog."""
    with_servers = {s.accelerator_id for s in snapshot.servers.values() if s.prices}
    with_servers |= {p.subject_id for p in snapshot.street_prices}
    names = supply.accelerators or sorted(with_servers)
    candidates, skipped = [], []
    for name in names:
        entry = snapshot.accelerators.get(name)
        if entry is None or entry.spec is None or not entry.quotable:
            skipped.append(Skipped(subject=name, code="not_quotable", reason="the catalog has no usable specification"))
            continue
        hardware, basis = wired_hardware(entry.spec, None, supply.network)
        candidates.append(Candidate(hardware=hardware, offer=None, fabric_basis=basis, name="owned"))
    return candidates, skipped


def _unquotable(snapshot: Snapshot, supply: Supply) -> list[Skipped]:
    return [
        Skipped(subject=name, code="not_quotable", reason=entry.not_quotable_reason or "no usable specification")
        for name in supply.accelerators or ()
        if (entry := snapshot.accelerators[name]).spec is None or not entry.quotable
    ]
