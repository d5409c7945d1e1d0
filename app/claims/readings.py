"""What is asked of a claim's two sides, and what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.claims.prediction import Figure
from app.estimates.job_schemas import Job
from app.estimates.schemas import Supply, Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What every claim of a request is judged in."""

    snapshot: Snapshot
    terms: Terms
    as_of: date | None
    today: date
    book: PriceBook | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A job on a supply; ``at`` and ``supply_at`` are JSON pointers for errors."""

    job: Job | None
    supply: Supply | None
    at: str
    supply_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A figure, or why there is none.

    Parameters
    ----------
    infeasible : bool
        The job cannot run there at all.
    sellers : mapping of str to Figure
        The same figure by provider, where it is money.
    """

    figure: Figure | None
    why: str | None = None
    infeasible: bool = False
    run: Mapping[str, Any] | None = None
    option: Mapping[str, Any] | None = None
    sellers: Mapping[str, Figure] = field(default_factory=dict)
    evidence: tuple[Mapping[str, Any], ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
