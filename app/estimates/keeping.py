"""The supply a quote already stands for: shown whatever its rank, so that a new calculation cannot lose it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.estimates.choices import Choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """An option chosen before.

    Parameters
    ----------
    option_id : str
        Names run and offers at once; it changes where the machine's catalog entry or the fleet does.
    offer_id, committed_offer_id : str or None
        What is bought: hardware, provider, region and purchase model. None = owned, or no committed base.
    accelerators : int
        Size of the fleet.
    """

    option_id: str
    offer_id: str | None
    committed_offer_id: str | None
    accelerator: str
    accelerators: int

    @classmethod
    def of_option(cls, option: Mapping[str, Any]) -> "Kept":
        """Read it from an option as it is stored."""
        committed = option["committed_offer"]
        return cls(
            option_id=option["id"],
            offer_id=option["offer"]["id"],
            committed_offer_id=None if committed is None else committed["id"],
            accelerator=option["configuration"]["accelerator"],
            accelerators=option["configuration"]["accelerators"],
        )

    def nearness(self, other: "Kept") -> int | None:
        """0 = the same option, 1 = the same supply, 2 = the same supply in another size, None = another supply."""
        if other.option_id == self.option_id:
            return 0
        if self._supply() != other._supply():
            return None
        return 1 if other.accelerators == self.accelerators else 2

    def _supply(self) -> tuple[str | None, str | None, str]:
        return self.offer_id, self.committed_offer_id, self.accelerator


def nearest_option(kept: Kept, options: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The option of the same supply, in the same size if there is one; the first of equals."""
    found = [
        (near, i) for i, option in enumerate(options) if (near := kept.nearness(Kept.of_option(option))) is not None
    ]
    return options[min(found)[1]] if found else None


def nearest_choice(kept: Kept, ranked: Sequence[Choice]) -> Choice | None:
    """As :func:`nearest_option`, before bills are written."""
    found = [(near, i) for i, choice in enumerate(ranked) if (near := kept.nearness(_of_choice(choice))) is not None]
    return ranked[min(found)[1]] if found else None


def _of_choice(choice: Choice) -> Kept:
    offer = choice.candidate.offer
    return Kept(
        option_id=choice.id,
        offer_id=None if offer is None else offer.id,
        committed_offer_id=None if choice.committed is None else choice.committed.offer.id,
        accelerator=choice.run["accelerator"],
        accelerators=choice.run["accelerators"],
    )
