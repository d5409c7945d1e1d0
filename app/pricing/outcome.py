"""A price or the reason there is none: one vocabulary everywhere, and never a zero in its place."""

from dataclasses import dataclass
from typing import Literal

PriceOutcome = Literal["priced", "not_offered", "unknown_price", "quarantined", "ambiguous", "observation_gap"]
OUTCOMES: tuple[PriceOutcome, ...] = (
    "priced",
    "not_offered",
    "unknown_price",
    "quarantined",
    "ambiguous",
    "observation_gap",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpriced:
    """Why something has no price.

    Parameters
    ----------
    outcome : str
        Any of ``OUTCOMES`` but ``priced``.
    reason : str
        One sentence.
    missing : tuple of str
        Names of the inputs that are absent, for prices made of parts.
    """

    outcome: PriceOutcome
    reason: str
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.outcome == "priced" or self.outcome not in OUTCOMES:
            raise ValueError(f"{self.outcome!r} does not say why there is no price")
        if not self.reason:
            raise ValueError("a missing price needs a reason")
