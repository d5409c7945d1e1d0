"""Training against lifetime inference: two items of one quote, and the months at which they are even."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.claims.metrics import band_of
from app.claims.prediction import Figure, ratio_band
from app.claims.readings import World
from app.claims.sides import origin_of, price_row
from app.engine.outcome import Band
from app.estimates import service as estimates
from app.estimates.schemas import EstimateRequest, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """Spend on inference over its months, and on training, in the terms' currency.

    Parameters
    ----------
    ratio : Band or None
        Inference over training; None where one of them has no price.
    even_months : float or None
        Months of service at which inference has cost as much as training.
    """

    ratio: Band | None
    training: Mapping[str, Any]
    inference: Mapping[str, Any]
    even_months: float | None
    why: str | None = None
    evidence: tuple[Mapping[str, Any], ...] = ()


def lifetime(world: World, items: Sequence[Item]) -> Lifetime:
    """Compare the recommended options of the training and the inference items."""
    request = EstimateRequest(items=list(items), terms=world.terms, as_of=world.as_of)
    answer = estimates.estimate(world.snapshot, request, world.today, world.book)
    sums: dict[str, Band | None] = {}
    shown: dict[str, Any] = {}
    figures: dict[str, Figure] = {}
    months = 0
    pairs = list(zip(answer.content["items"], answer.engine_outputs["items"], strict=True))
    for kind in ("training", "inference"):
        found = [(item, _run(item, output)) for item, output in pairs if item["kind"] == kind]
        band = sums[kind] = _sum([_net(item) for item, _ in found])
        shown[kind] = [_shown(item) for item, _ in found]
        if band is not None:
            figures[kind] = Figure(value=band, basis="engine", origin=origin_of(found[0][1]))
            months = max([months, *(int(run.get("months", 0)) for _, run in found)])
    training, inference = sums["training"], sums["inference"]
    if training is None or inference is None:
        why = "an item has no current price in the catalog"
        return Lifetime(
            ratio=None,
            training={"items": shown["training"]},
            inference={"items": shown["inference"]},
            even_months=None,
            why=why,
        )
    ratio = ratio_band(figures["inference"], figures["training"])
    return Lifetime(
        ratio=ratio,
        training={"items": shown["training"]},
        inference={"items": shown["inference"]},
        even_months=months / ratio.p50 if months else None,
        evidence=tuple(price_row(item["options"][0]) for item in answer.content["items"]),
    )


def _run(item: Mapping[str, Any], output: Mapping[str, Any]) -> Mapping[str, Any]:
    """The run behind the recommended option."""
    wanted = item["options"][0]["run_key"] if item["options"] else None
    return next((run for run in output["runs"] if run["key"] == wanted), {})


def _net(item: Mapping[str, Any]) -> Band | None:
    option = item["options"][0] if item["options"] else None
    if option is None or option["cost"].get("net") is None or option["cost"]["net"].get("p50") is None:
        return None
    return band_of({q: option["cost"]["net"][q]["amount"] for q in ("p10", "p50", "p90")})


def _sum(bands: Sequence[Band | None]) -> Band | None:
    known = [b for b in bands if b is not None]
    if not known or len(known) < len(bands):
        return None
    return Band(p10=sum(b.p10 for b in known), p50=sum(b.p50 for b in known), p90=sum(b.p90 for b in known))


def _shown(item: Mapping[str, Any]) -> dict[str, Any]:
    option = item["options"][0] if item["options"] else None
    label = option["label"] if option else None
    return {
        "id": item["id"],
        "label": label,
        "net": option["cost"]["net"]["p50"] if option and option["cost"]["net"] else None,
    }
