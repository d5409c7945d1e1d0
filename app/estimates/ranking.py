"""Ranking of options by objective, with the caller's constraints; ties are broken by name, so order never flips."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

T = TypeVar("T")
ZERO = Decimal(0)
UNKNOWN = (1, ZERO)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What an option is ranked by; None = not known, which ranks behind everything known.

    Parameters
    ----------
    net : Decimal or None
        Exact where the bill was written, coarse before.
    priced_part : Decimal or None
        Of a bill without a total, what is priced of it: orders the incomplete among themselves.
    carries_load : bool
        Whether the whole load is served within its objectives; what does not ranks behind all that does.
    solved : Decimal or None
        Tokens that fit the deadline, or users that are served, where they are what was asked for: the most comes first.
    """

    net: Decimal | None
    hours: Decimal | None
    kg_co2e: Decimal | None
    name: str
    priced_part: Decimal | None = None
    carries_load: bool = True
    solved: Decimal | None = None


def sort_key(objective: str, standing: Standing) -> tuple[object, ...]:
    """Smaller is better: carrying the load and most of what is solved for, the objective, cost, time, the name."""
    cost, time = _known(standing.net), _known(standing.hours)
    first = cost
    if objective == "time":
        first = time
    elif objective == "carbon":
        first = _known(standing.kg_co2e)
    elif objective == "cost_time":
        first = UNKNOWN if standing.net is None or standing.hours is None else (0, standing.net * standing.hours)
    solved = -standing.solved if standing.solved else ZERO
    return (not standing.carries_load, solved, *first, *cost, *_known(standing.priced_part), *time, standing.name)


def _known(value: Decimal | None) -> tuple[int, Decimal]:
    return UNKNOWN if value is None else (0, value)


def best_of_each(
    ranked: Sequence[T], group: Callable[[T], Hashable], named: Callable[[T], Hashable], most: int
) -> list[T]:
    """The best of every group in rank order, at most ``most``, shared out fairly between the things the caller named.

    Parameters
    ----------
    ranked : sequence
        Best first.
    group : callable
        What makes two options the same choice (they differ only in region, say).
    named : callable
        Which of the things the caller named an option is for (an accelerator); the same for all if nothing was named.
    """
    firsts: dict[Hashable, T] = {}
    for option in ranked:
        firsts.setdefault(group(option), option)
    seen: dict[Hashable, int] = {}
    turns: list[tuple[int, int, T]] = []
    for rank, option in enumerate(firsts.values()):
        name = named(option)
        turns.append((seen.get(name, 0), rank, option))
        seen[name] = seen.get(name, 0) + 1
    chosen = sorted(turns, key=lambda turn: turn[:2])[:most]
    return [option for _, _, option in sorted(chosen, key=lambda turn: turn[1])]
