"""The difference between a file and the catalog: what would be inserted, and the report a person reads first."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from datetime import date, timedelta
from decimal import Decimal

from app.catalog.imports.checks import CheckContext, find_doubts
from app.catalog.imports.staged import BROKEN_PROVIDER, RejectedRow, StagedPrice, StagedRow
from app.catalog.offers import Offer, PriceRow, Source

# Catalog design 4, "row count falls more than 20% for a provider": the file is held, the last good prices stay.
ROW_COUNT_FALL_LIMIT = 0.20


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPrice:
    """A price row to insert; ``supersedes`` names the earlier belief it replaces, if any."""

    offer_id: str
    amount: Decimal
    currency: str
    price_unit: str
    valid_from: date
    valid_to: date | None
    observed_on: date | None
    source: Source
    kind: str
    confidence: str
    note: str | None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One line of the report."""

    status: str
    offer_id: str
    provider: str
    sku: str
    region: str
    purchase_model: str
    amount: Decimal
    currency: str
    before: Decimal | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A staged or rejected row with the first reason it is held back."""

    row: StagedRow
    reason: str
    detail: str


@dataclass(slots=True, kw_only=True)
class ImportPlan:
    """What committing a provider's part of a file would do."""

    provider: str
    offers: dict[str, Offer] = field(default_factory=dict)
    prices: list[NewPrice] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    vanished: list[str] = field(default_factory=list)
    unchanged: int = 0
    refused: str | None = None

    def counts(self) -> dict[str, int]:
        """Count the lines of the report by status."""
        found: dict[str, int] = {"new": 0, "changed": 0, "corrected": 0, "reobserved": 0, "backfilled": 0}
        for change in self.changes:
            found[change.status] += 1
        return {**found, "unchanged": self.unchanged, "quarantined": len(self.held), "vanished": len(self.vanished)}

    @property
    def empty(self) -> bool:
        """Whether committing would insert nothing."""
        return not (self.offers or self.prices or self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the catalog holds now, as the plan needs it."""

    offers: Mapping[str, Offer]
    prices_of: Callable[[str], tuple[PriceRow, ...]]
    node_shape_ids: frozenset[str] = frozenset()
    priced_regions: frozenset[str] = frozenset()
    previous_rows: int | None = None


def plan_file(
    rows: Iterable[StagedRow], standing: Standing, context: CheckContext, *, complete: bool = False
) -> dict[str, ImportPlan]:
    """Plan each provider of a file apart, so that a broken one leaves the others alone (gpuhunt#63)."""
    by_provider: dict[str, list[StagedRow]] = defaultdict(list)
    for row in rows:
        name = row.provider if isinstance(row, RejectedRow) else row.key.provider
        by_provider[name or "unknown"].append(row)
    return {
        provider: plan_provider(provider, found, standing, context, complete=complete)
        for provider, found in sorted(by_provider.items())
    }


def plan_provider(
    provider: str, rows: Sequence[StagedRow], standing: Standing, context: CheckContext, *, complete: bool = False
) -> ImportPlan:
    """Compare one provider's rows with the catalog."""
    plan = ImportPlan(provider=provider)
    staged = [row for row in rows if isinstance(row, StagedPrice)]
    plan.held.extend(
        Held(row=row, reason=row.reason, detail=row.detail) for row in rows if isinstance(row, RejectedRow)
    )
    broken = next((row for row in rows if isinstance(row, RejectedRow) and row.reason == BROKEN_PROVIDER), None)
    if broken is not None:
        plan.refused = f"{BROKEN_PROVIDER}: {broken.detail}; the last good prices stay"
        return plan
    if complete and standing.previous_rows and len(staged) < standing.previous_rows * (1 - ROW_COUNT_FALL_LIMIT):
        plan.refused = (
            f"row_count_fell: {len(staged)} readable rows against {standing.previous_rows} in the last import; "
            "the last good prices stay"
        )
        return plan
    doubts = find_doubts(staged, context)
    by_series: dict[tuple[str, str, str], list[StagedPrice]] = defaultdict(list)
    for position, row in enumerate(staged):
        found = doubts.get(position)
        if found is None:
            by_series[row.offer_id, row.source.id, row.kind].append(row)
        elif found[0][0] == "duplicate_row":
            plan.unchanged += 1
        else:
            plan.held.append(Held(row=row, reason=found[0][0], detail="; ".join(detail for _, detail in found)))
        # An offer whose only price is held back is still an offer: its answer is "quarantined", not "not offered".
        _plan_offer(plan, row, standing)
    for series in by_series.values():
        _plan_series(plan, sorted(series, key=lambda row: row.valid_from), standing)
    if complete:
        _plan_vanished(plan, staged, standing)
    return plan


def offer_of(row: StagedPrice, node_shape_ids: frozenset[str]) -> Offer:
    """Make the offer a staged price belongs to."""
    shape = f"{row.key.provider}/{row.key.sku}"
    return Offer(
        id=row.offer_id,
        key=row.key,
        scope=row.scope,
        sold_unit=row.sold_unit,
        accelerator_id=row.accelerator_id,
        accelerator_count=row.accelerator_count,
        vcpus=row.vcpus,
        memory_gib=row.memory_gib,
        node_shape_id=shape if shape in node_shape_ids else None,
        min_quantity=row.min_quantity,
        quantity_step=row.quantity_step,
        indicative=row.indicative,
        excluded_reason=row.excluded_reason,
    )


def _plan_offer(plan: ImportPlan, row: StagedPrice, standing: Standing) -> None:
    """Insert an offer that is new; one that is known keeps its facts, so that an old quote stays explainable."""
    if row.offer_id not in plan.offers and row.offer_id not in standing.offers:
        plan.offers[row.offer_id] = offer_of(row, standing.node_shape_ids)


@dataclass(slots=True, kw_only=True)
class _Step:
    """A row of one series on its way through the plan; ``stored`` is the belief it may supersede."""

    price: NewPrice
    stored: PriceRow | None
    touched: bool


def _as_price(row: StagedPrice | PriceRow, supersedes: str | None = None) -> NewPrice:
    return NewPrice(
        offer_id=row.offer_id,
        amount=row.amount,
        currency=row.currency,
        price_unit=row.price_unit,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        observed_on=row.observed_on,
        source=row.source,
        kind=row.kind,
        confidence=row.confidence,
        note=row.note,
        supersedes=supersedes,
    )


def _plan_series(plan: ImportPlan, rows: Sequence[StagedPrice], standing: Standing) -> None:
    """Fold new rows of one offer, source and kind into the dated steps already held."""
    first = rows[0]
    steps = [
        _Step(price=_as_price(row, supersedes=row.id), stored=row, touched=False)
        for row in standing.prices_of(first.offer_id)
        if row.source.id == first.source.id and row.kind == first.kind
    ]
    for row in rows:
        _fold(plan, steps, row)
        steps.sort(key=lambda step: step.price.valid_from)
    plan.prices.extend(step.price for step in steps if step.touched)


def _fold(plan: ImportPlan, steps: list[_Step], row: StagedPrice) -> None:
    same_start = next((step for step in steps if step.price.valid_from == row.valid_from), None)
    earlier = [step for step in steps if step.price.valid_from <= row.valid_from]
    later = [step for step in steps if step.price.valid_from > row.valid_from]
    last = earlier[-1] if earlier else None
    money = (row.amount, row.currency, row.price_unit)
    if last is not None and (last.price.amount, last.price.currency, last.price.price_unit) == money:
        _see_again(plan, last, row)
        return
    if same_start is not None:
        before = same_start.price
        same_start.price = _replace(_as_price(row), supersedes=before.supersedes)
        same_start.touched = True
        plan.changes.append(_change("corrected", row, before.amount))
        return
    if last is not None and (last.price.valid_to is None or last.price.valid_to > row.valid_from):
        _close(last, row)
    status = "new" if last is None and not later else "changed" if last is not None else "backfilled"
    end = row.valid_to
    if later and (end is None or end > later[0].price.valid_from):
        # A step that another follows is only known until the day after it was last seen.
        seen = row.observed_on or row.valid_from
        end = min(later[0].price.valid_from, max(seen, row.valid_from) + timedelta(days=1))
    steps.append(_Step(price=_replace(_as_price(row), valid_to=end), stored=None, touched=True))
    plan.changes.append(_change(status, row, None if last is None else last.price.amount))


def _close(step: _Step, row: StagedPrice) -> None:
    """End a step where the next begins: at its published start, else the day after the step was last seen."""
    end = row.valid_from
    if not row.valid_from_published and step.price.observed_on is not None:
        end = min(end, max(step.price.observed_on, step.price.valid_from) + timedelta(days=1))
    step.price = _replace(step.price, valid_to=end)
    step.touched = True


def _see_again(plan: ImportPlan, step: _Step, row: StagedPrice) -> None:
    seen = step.price.observed_on
    if row.observed_on is None or (seen is not None and row.observed_on <= seen):
        plan.unchanged += 1
        return
    reopened = (
        None if step.price.valid_to is not None and step.price.valid_to <= row.observed_on else step.price.valid_to
    )
    step.price = _replace(step.price, observed_on=row.observed_on, valid_to=row.valid_to or reopened)
    step.touched = True
    plan.changes.append(_change("reobserved", row, step.price.amount))


def _replace(price: NewPrice, **changes: object) -> NewPrice:
    return dataclass_replace(price, **changes)  # type: ignore[arg-type]


def _change(status: str, row: StagedPrice, before: Decimal | None) -> Change:
    return Change(
        status=status,
        offer_id=row.offer_id,
        provider=row.key.provider,
        sku=row.key.sku,
        region=row.key.region,
        purchase_model=row.key.purchase_model,
        amount=row.amount,
        currency=row.currency,
        before=before,
        line=row.line,
    )


def _plan_vanished(plan: ImportPlan, staged: Sequence[StagedPrice], standing: Standing) -> None:
    """Name offers that the same sources listed before and no longer do; they are reported and left to grow stale."""
    present = {row.offer_id for row in staged}
    sources = {row.source.id for row in staged}
    plan.vanished.extend(
        offer.id
        for offer in standing.offers.values()
        if offer.provider == plan.provider
        and offer.id not in present
        and any(price.source.id in sources for price in standing.prices_of(offer.id))
    )
