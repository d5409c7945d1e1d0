"""What the engine found for an item: enough of every run to rank it, and the rest when it is shown."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.engine.outcome import Infeasible
from app.estimates.physics import quantized


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One feasible run.

    Parameters
    ----------
    light : mapping
        Identity, accelerators, hours and energy: what ranking looks at.
    rest : callable
        The other fields of the run.
    """

    light: Mapping[str, Any]
    rest: Callable[[], Mapping[str, Any]]

    def complete(self) -> dict[str, Any]:
        """The whole run, as it is stored with a quote."""
        return {**self.light, **quantized(self.rest())}


Runs = tuple[list[Found], dict[str, Infeasible]]
