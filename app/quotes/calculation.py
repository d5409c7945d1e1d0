"""What the room needs from estimates: an answer whose money can be worked out again without the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    """Items with ranked, priced options, and what they depend on.

    Parameters
    ----------
    items : sequence of mapping
        Each with ``id``, ``options`` and the recommended option first.
    engine_outputs : JSON value
        What can run, quantised; money follows from it, the spec and the pinned catalog alone.
    incomplete : sequence of mapping
        Lines or items without a price: ``item``, ``line``, ``outcome``, ``reason``.
    """

    items: Sequence[Mapping[str, Any]]
    engine_outputs: Any
    as_of: date
    catalog_revision: str
    price_book_version: str | None
    fx_snapshot: str | None
    tax_rules_version: str | None
    engine_version: str
    engine_build: str
    rounding_policy: str
    currency: str
    incomplete: Sequence[Mapping[str, Any]] = ()


class Calculator(Protocol):
    """The running engine and catalog, as quotes use them."""

    @property
    def engine_version(self) -> str:
        """Version of the engine that runs here."""
        ...

    @property
    def engine_build(self) -> str:
        """Hash of the engine's data tables."""
        ...

    def calculate(self, spec: Mapping[str, Any], *, today: date, catalog_revision: str | None = None) -> Calculation:
        """Run engine and pricing for a spec; raises a ``Problem`` where the spec cannot be answered.

        ``today`` is the pricing date of a spec that names none; ``catalog_revision`` pins a spec that does not.
        """
        ...

    def price_again(
        self, spec: Mapping[str, Any], engine_outputs: Any, *, as_of: date, catalog_revision: str
    ) -> Calculation:
        """Work out the money of stored engine outputs at a pinned catalog revision, without the engine."""
        ...
