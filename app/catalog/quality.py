"""Data quality as code: what must hold of any revision, run on the shipped seed and after every import."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from itertools import pairwise

from app.catalog.imports.staged import offer_id_of
from app.catalog.offers import PriceRow
from app.catalog.snapshot import Snapshot

# FP8 doubles BF16 on these; a ratio of 4 or 1 is a sparse figure beside a dense one (catalog design 1.1).
FP8_DOUBLES = ("Hopper", "Blackwell", "Blackwell Ultra", "CDNA3", "CDNA4", "Ada", "Ada Lovelace")
FP8_RATIO = (1.9, 2.1)
# A100 to H100 is 3.17 dense; a sparse H100 beside a dense A100 is 6.3.
GENERATIONS = (("a100-sxm4-80", "h100-sxm5-80"), ("h100-sxm5-80", "b200-sxm-180"), ("mi250x", "mi300x"))
GENERATION_RATIO = 3.5
# Reported MiB over labelled GB read as GiB: from 0.931 (A10G) to 1.02 (RTX PRO 6000) in the sources.
LABEL_RATIO = (0.92, 1.03)
ACCELERATORS_OF_UNIT = {"gpu": 1, "chip": 1, "superchip": 2}
# Providers whose price files carry no currency field and bill in yuan (infracost#3090).
YUAN_PROVIDERS = ("alibaba", "aws-cn", "suanjiayun", "chenjianyun", "compshare-ucloud")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that does not hold."""

    code: str
    subject: str
    detail: str


def audit(snapshot: Snapshot) -> tuple[Finding, ...]:
    """Run every check over a revision; an empty answer is a clean one."""
    return tuple(finding for check in CHECKS for finding in check(snapshot))


def _dense_peaks(snapshot: Snapshot) -> Iterator[Finding]:
    for entry in snapshot.accelerators.values():
        peaks = entry.spec.dense_peaks if entry.spec is not None else None
        if peaks is None or peaks.bf16 is None or peaks.fp8 is None or entry.architecture not in FP8_DOUBLES:
            continue
        ratio = peaks.fp8 / peaks.bf16
        if not FP8_RATIO[0] <= ratio <= FP8_RATIO[1]:
            detail = f"FP8 over BF16 is {ratio:.2f}: one of them is a sparse figure"
            yield Finding(code="sparse_as_dense", subject=entry.id, detail=detail)


def _generations(snapshot: Snapshot) -> Iterator[Finding]:
    for older, newer in GENERATIONS:
        specs = [snapshot.accelerators[name].spec for name in (older, newer) if name in snapshot.accelerators]
        if len(specs) < 2 or specs[0] is None or specs[1] is None:
            continue
        before, after = specs[0].dense_peaks.bf16, specs[1].dense_peaks.bf16
        if before is not None and after is not None and after / before > GENERATION_RATIO:
            detail = f"BF16 is {after / before:.2f} times that of {older}: too much for one generation"
            yield Finding(code="generation_jump", subject=newer, detail=detail)


def _memory(snapshot: Snapshot) -> Iterator[Finding]:
    for entry in snapshot.accelerators.values():
        reported = entry.memory_mib_reported
        if reported is None:
            continue
        if entry.spec is not None and entry.spec.memory_bytes != reported * 2**20:
            detail = f"{entry.spec.memory_bytes} bytes are not the {reported} MiB the device reports"
            yield Finding(code="memory_from_label", subject=entry.id, detail=detail)
        if entry.memory_gb_label is not None:
            ratio = reported / 1024 / entry.memory_gb_label
            if not LABEL_RATIO[0] <= ratio <= LABEL_RATIO[1]:
                detail = f"{reported} MiB is {ratio:.3f} of the label {entry.memory_gb_label} read as GiB"
                yield Finding(code="gb_or_gib", subject=entry.id, detail=detail)


def _aliases(snapshot: Snapshot) -> Iterator[Finding]:
    aliases = snapshot.accelerator_aliases
    for label, target in aliases.items():
        if target is not None and target not in snapshot.accelerators:
            yield Finding(code="alias_to_nothing", subject=label, detail=f"{target} is not an accelerator")
    for label in ("a10g-24gb", "a10-24gb"):
        wanted = label.partition("-")[0]
        if aliases.get(label, wanted) != wanted:
            yield Finding(code="a10_is_not_a10g", subject=label, detail=f"points to {aliases[label]}")


def _offers(snapshot: Snapshot) -> Iterator[Finding]:
    for offer in snapshot.offers.values():
        if offer.id != offer_id_of(offer.key):
            yield Finding(code="offer_identity", subject=offer.id, detail="the id does not follow from the key")
        if offer.accelerator_id is not None and offer.accelerator_id not in snapshot.accelerators:
            yield Finding(code="unknown_accelerator", subject=offer.id, detail=offer.accelerator_id)
        if offer.automatic and (offer.scope == "component" or offer.accelerator_id is None):
            yield Finding(code="component_as_bundle", subject=offer.id, detail="open to automatic quotes")
        wanted = ACCELERATORS_OF_UNIT.get(offer.sold_unit)
        if wanted is not None and offer.accelerator_count != wanted:
            detail = f"a {offer.sold_unit} holds {wanted}, not {offer.accelerator_count}"
            yield Finding(code="sold_unit", subject=offer.id, detail=detail)
        shape = snapshot.node_shapes.get(offer.node_shape_id or "")
        if shape is not None and shape.accelerator_count != offer.accelerator_count:
            detail = f"{shape.id} holds {shape.accelerator_count}, the offer says {offer.accelerator_count}"
            yield Finding(code="accelerator_count", subject=offer.id, detail=detail)


def _prices(snapshot: Snapshot) -> Iterator[Finding]:
    for offer_id, rows in snapshot.prices.items():
        offer = snapshot.offers.get(offer_id)
        if offer is None:
            yield Finding(code="price_without_offer", subject=offer_id, detail=f"{len(rows)} rows")
            continue
        series: dict[tuple[str, str], list[PriceRow]] = defaultdict(list)
        for row in rows:
            series[row.source.id, row.kind].append(row)
            if not row.source.citation:
                yield Finding(code="no_source", subject=row.id, detail="a price without a source")
            if offer.provider in YUAN_PROVIDERS and row.currency != "CNY":
                yield Finding(code="currency", subject=row.id, detail=f"{offer.provider} in {row.currency}")
        for steps in series.values():
            yield from _overlaps(steps)


def _overlaps(steps: list[PriceRow]) -> Iterator[Finding]:
    ordered = sorted(steps, key=lambda row: row.valid_from)
    for earlier, later in pairwise(ordered):
        if (earlier.valid_to or date.max) > later.valid_from:
            detail = f"{earlier.valid_from} to {earlier.valid_to} overlaps the step of {later.valid_from}"
            yield Finding(code="valid_range_overlap", subject=earlier.id, detail=detail)


CHECKS: tuple[Callable[[Snapshot], Iterator[Finding]], ...] = (
    _dense_peaks,
    _generations,
    _memory,
    _aliases,
    _offers,
    _prices,
)
