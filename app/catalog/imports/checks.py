"""Checks between reading a price and believing it. A price that fails is quarantined with a reason, never dropped."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from statistics import median
from typing import Any

from app.catalog.imports.staged import StagedPrice, offer_id_of
from app.catalog.offers import PriceRow
from app.catalog.rates import FxTable

# Catalog design 4, "jump of more than 30% against the previous price (accept by hand: the AWS -44% of 2025 was real)".
JUMP_LIMIT = Decimal("0.30")
# Catalog design 4, "spot < 10% of on-demand": the size of a minimum bid or a sentinel, not of a price (skypilot#9156).
SPOT_FLOOR = Decimal("0.10")
# Regions of one machine differ by at most 2.2 times in the shipped files; one at 0.27 was found and not believed.
REGION_OUTLIER = (Decimal("0.35"), Decimal("3"))
REGIONS_FOR_MEDIAN = 5
# Accelerators of the machines that are sold whole: one's price on a row of one accelerator is so many times too high.
WHOLE_MACHINES = (2, 4, 8, 16, 72)
# Hours of the longest period a price may be quoted for, to bring every unit to an hour for the plausibility band.
HOURS = {"hour": Decimal(1), "month": Decimal(730), "year": Decimal(8760)}

# GCP's accelerator-only SKUs are 0.57 to 0.89 of the machine in the shipped files; half leaves room.
COMPONENT_SHARE = Decimal("0.5")

COMPONENT_NAME = re.compile(r"\bGPU\b.*\b(running in|attached to)\b", re.IGNORECASE)

Finding = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bands:
    """Plausible price of one accelerator-hour in USD, by accelerator and class of purchase model."""

    bands: Mapping[str, Mapping[str, tuple[Decimal, Decimal]]]
    default: Mapping[str, tuple[Decimal, Decimal]]

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Bands":
        """Read ``price_bands.json``."""

        def pair(values: Sequence[str]) -> tuple[Decimal, Decimal]:
            return Decimal(values[0]), Decimal(values[1])

        return cls(
            bands={key: {name: pair(v) for name, v in band.items()} for key, band in data["bands"].items()},
            default={name: pair(v) for name, v in data["default"].items()},
        )

    def of(self, row: StagedPrice) -> tuple[Decimal, Decimal]:
        """Find the band of a row."""
        name = "on_demand" if row.key.purchase_model == "on_demand" else "discounted"
        band = self.bands.get(row.accelerator_id or "", {})
        return band.get(name, self.default[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """What the checks compare a file with: plausibility bands, rates for the comparison, and prices already held.

    ``regions`` are the known ones of the file's provider; None takes any, as the shipped files do: they are where
    known regions come from.
    """

    bands: Bands
    fx: FxTable
    held: Callable[[str], tuple[PriceRow, ...]]
    regions: frozenset[str] | None = None


def find_doubts(rows: Sequence[StagedPrice], context: CheckContext) -> dict[int, list[Finding]]:
    """Run every check over the rows of a file; the answer holds findings by position."""
    findings: dict[int, list[Finding]] = defaultdict(list)
    on_demand = _on_demand_prices(rows)
    medians = _region_medians(rows)
    for position, row in enumerate(rows):
        found = [
            *row.doubts,
            *_check_band(row, context),
            *_check_component(row),
            *_check_spot(row, on_demand, context),
            *_check_region_known(row, context),
            *_check_region(row, medians),
        ]
        if found:
            findings[position].extend(found)
    for check in (_check_duplicates(rows), _check_overlaps(rows)):
        for position, finding in check:
            findings[position].append(finding)
    for position, finding in _check_jumps(rows, context, findings):
        findings[position].append(finding)
    return {position: found for position, found in findings.items() if found}


def _check_band(row: StagedPrice, context: CheckContext) -> Iterable[Finding]:
    hours = HOURS.get(row.price_unit)
    if hours is None:
        return
    rate = Decimal(1)
    if row.currency != "USD":
        fixings = context.fx.fixings
        # A rate of the wrong year is good enough to tell a price from a mistake; it converts nothing that is quoted.
        day = max(row.valid_from, fixings[0].fixed_on) if fixings else row.valid_from
        found = context.fx.rate(row.currency, "USD", day)
        if found is None:
            return
        rate = found.rate
    whole = row.amount / hours * rate
    each = whole / row.accelerator_count
    low, high = context.bands.of(row)
    if row.scope == "component":
        # The bands are of whole machines; the accelerator alone is the larger part of that, never all of it.
        low *= COMPONENT_SHARE
    if low <= each <= high:
        return
    if each < low and row.accelerator_count > 1 and low <= whole <= high:
        yield (
            "per_accelerator_price_suspected",
            f"{row.amount} {row.currency} for {row.accelerator_count} accelerators is {each:.4f} USD each, under "
            f"{low}; as the price of one it would be plausible",
        )
        return
    whole_of = next((n for n in WHOLE_MACHINES if low <= each / n <= high), None)
    if each > high and row.accelerator_count == 1 and whole_of is not None:
        yield (
            "machine_price_suspected",
            f"{each:.4f} USD for one accelerator is over {high}; as the price of a machine of {whole_of} it would be "
            "plausible",
        )
        return
    side = "below_band" if each < low else "above_band"
    yield side, f"{each:.4f} USD per accelerator-hour is outside {low} to {high}"


def _check_component(row: StagedPrice) -> Iterable[Finding]:
    named_component = COMPONENT_NAME.search(row.key.sku) and "slice" not in row.key.sku.lower()
    if row.scope == "bundle" and named_component:
        yield "component_as_bundle", f"{row.key.sku!r} is the accelerator alone; host and memory are billed apart"


Place = tuple[str, str, str, str, str]


def _place(row: StagedPrice) -> Place:
    return row.key.provider, row.key.sku, row.key.accelerator_label, row.key.region, row.key.tier


def _on_demand_prices(rows: Iterable[StagedPrice]) -> dict[Place, StagedPrice]:
    found: dict[Place, StagedPrice] = {}
    for row in rows:
        if row.key.purchase_model == "on_demand":
            known = found.get(_place(row))
            if known is None or row.valid_from > known.valid_from:
                found[_place(row)] = row
    return found


def _check_spot(row: StagedPrice, on_demand: Mapping[Place, StagedPrice], context: CheckContext) -> Iterable[Finding]:
    if row.key.purchase_model != "spot":
        return
    beside = on_demand.get(_place(row))
    full = beside.amount if beside is not None and beside.currency == row.currency else _held_on_demand(row, context)
    if full is None:
        return
    if row.amount >= full:
        yield "spot_not_below_on_demand", f"spot {row.amount} against on demand {full} {row.currency}"
    elif row.amount < full * SPOT_FLOOR:
        yield "spot_below_floor", f"spot {row.amount} is under 10% of on demand {full} {row.currency}"


def _held_on_demand(row: StagedPrice, context: CheckContext) -> Decimal | None:
    key = replace(row.key, purchase_model="on_demand", product="standard", payment_option="none")
    held = [price for price in context.held(offer_id_of(key)) if price.currency == row.currency]
    return held[-1].amount if held else None


Machine = tuple[str, str, str, str, int, str]


def _machine(row: StagedPrice) -> Machine:
    key = row.key
    return key.provider, key.sku, key.accelerator_label, key.purchase_model, key.term_months, row.currency


def _region_medians(rows: Iterable[StagedPrice]) -> dict[Machine, Decimal]:
    by_machine: dict[Machine, dict[str, Decimal]] = defaultdict(dict)
    for row in rows:
        by_machine[_machine(row)][row.key.region] = row.amount
    return {
        machine: median(amounts.values())
        for machine, amounts in by_machine.items()
        if len(amounts) >= REGIONS_FOR_MEDIAN
    }


def _check_region_known(row: StagedPrice, context: CheckContext) -> Iterable[Finding]:
    if context.regions is not None and row.key.region not in context.regions:
        yield (
            "unknown_region",
            f"no region of {row.key.provider} is known as {row.key.region!r}; accept one of its rows to make it known",
        )


def _check_region(row: StagedPrice, medians: Mapping[Machine, Decimal]) -> Iterable[Finding]:
    middle = medians.get(_machine(row))
    if middle is None or any(reason == "region_outlier" for reason, _ in row.doubts):
        return
    ratio = row.amount / middle
    if not REGION_OUTLIER[0] <= ratio <= REGION_OUTLIER[1]:
        yield "region_outlier", f"{ratio:.2f} of the median {middle} {row.currency} over the regions of this machine"


def _check_duplicates(rows: Sequence[StagedPrice]) -> Iterable[tuple[int, Finding]]:
    """Find rows with one key: the same amount twice keeps the first, different amounts are all held back."""
    groups: dict[tuple[str, str, str, object], list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        groups[row.offer_id, row.source.id, row.kind, row.valid_from].append(position)
    for positions in groups.values():
        if len(positions) < 2:
            continue
        lines = ", ".join(str(rows[position].line) for position in positions)
        same = len({(rows[p].amount, rows[p].currency, rows[p].price_unit) for p in positions}) == 1
        for position in positions[1:] if same else positions:
            reason = "duplicate_row" if same else "duplicate_key"
            yield position, (reason, f"lines {lines} state the same offer, source and day")


def _check_overlaps(rows: Sequence[StagedPrice]) -> Iterable[tuple[int, Finding]]:
    """Find stated ranges of one offer and source that contradict each other: two prices for one day."""
    series: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if row.valid_from_published and row.valid_to is not None:
            series[row.offer_id, row.source.id, row.kind].append(position)
    for positions in series.values():
        positions.sort(key=lambda position: rows[position].valid_from)
        for earlier, later in pairwise(positions):
            end, start = rows[earlier].valid_to, rows[later].valid_from
            if end is not None and rows[earlier].valid_from < start < end:
                detail = f"lines {rows[earlier].line} and {rows[later].line} both state a price from {start} to {end}"
                yield earlier, ("valid_range_overlap", detail)
                yield later, ("valid_range_overlap", detail)


def _check_jumps(
    rows: Sequence[StagedPrice], context: CheckContext, findings: Mapping[int, list[Finding]]
) -> Iterable[tuple[int, Finding]]:
    """Compare each price with the one before it, in the file or in the catalog."""
    by_offer: dict[str, list[int]] = defaultdict(list)
    for position, row in enumerate(rows):
        if not findings.get(position):
            by_offer[row.offer_id].append(position)
    for offer_id, positions in by_offer.items():
        positions.sort(key=lambda position: (rows[position].valid_from, position))
        history = [(old.valid_from, old.amount, old.currency) for old in context.held(offer_id)]
        for position in positions:
            row = rows[position]
            earlier = [entry for entry in history if entry[0] < row.valid_from and entry[2] == row.currency]
            if earlier:
                before = max(earlier)
                jump = row.amount / before[1] - 1
                if abs(jump) > JUMP_LIMIT and not row.jump_confirmed:
                    yield (
                        position,
                        (
                            "price_jump",
                            f"{before[1]} ({before[0]}) to {row.amount} {row.currency} ({row.valid_from}) is "
                            f"{jump * 100:+.1f}%",
                        ),
                    )
                    continue
            history.append((row.valid_from, row.amount, row.currency))
