"""Ranking of options by objective, with the caller's constraints; ties are broken by name, so order never flips."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from app.estimates.schemas import Item

T = TypeVar("T")
UNKNOWN = (1, Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an option is ranked by; None = not known, which ranks behind everything known."""

    net: Decimal | None
    hours: Decimal | None
    kg_co2e: Decimal | None
    name: str


def sort_key(objective: str, standing: Standing) -> tuple[object, ...]:
    """Smaller is better: the objective first, then cost, then time, then the name."""
    cost, time = _known(standing.net), _known(standing.hours)
    both = None if standing.net is None or standing.hours is None else standing.net * standing.hours
    first = {"cost": cost, "time": time, "cost_time": _known(both), "carbon": _known(standing.kg_co2e)}[objective]
    return (*first, *cost, *time, standing.name)


def _known(value: Decimal | None) -> tuple[int, Decimal]:
    return UNKNOWN if value is None else (0, value)


def best_of_each(
    ranked: Sequence[T], group: Callable[[T], Hashable], named: Callable[[T], Hashable | None], most: int
) -> list[T]:
    """The best of every group in rank order, at most ``most``; every named thing the caller asked for keeps its best.

    Parameters
    ----------
    ranked : sequence
        Best first.
    group : callable
        What makes two options the same choice (they differ only in region, say).
    named : callable
        Something the caller named and wants to see (an accelerator), or None.
    """
    firsts: dict[Hashable, T] = {}
    for option in ranked:
        firsts.setdefault(group(option), option)
    distinct = list(firsts.values())
    wanted: dict[Hashable, T] = {}
    for option in distinct:
        name = named(option)
        if name is not None:
            wanted.setdefault(name, option)
    kept = list(wanted.values())[:most]
    for option in distinct:
        if len(kept) >= most:
            break
        if not any(option is k for k in kept):
            kept.append(option)
    order = {id(option): i for i, option in enumerate(distinct)}
    return sorted(kept, key=lambda option: order[id(option)])


def names_accelerators(item: Item) -> bool:
    """Whether the caller named accelerators that should each be seen."""
    return item.supply.accelerators is not None
