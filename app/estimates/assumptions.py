"""What an estimate assumed because nobody said otherwise: value, unit, source, and which part of the total it moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.pricing.line_items import Line
from app.pricing.money import CONTEXT, ZERO, plain

# kinds of cost lines that an assumption about ... moves
HOURS = ("compute", "failures", "campaign", "unit_rounding", "commitment", "spare", "ownership", "energy")
STORAGE = ("storage",)
EGRESS = ("egress",)
OWNERSHIP = ("ownership", "energy")
NOTHING: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One assumed value.

    Parameters
    ----------
    moves : tuple of str
        Kinds of cost lines whose amount depends on it.
    """

    id: str
    value: str | float | int | bool
    unit: str
    source: str
    moves: tuple[str, ...] = NOTHING

    def as_json(self, share: str | None) -> dict[str, object]:
        """The shape an option shows; ``share_of_total`` is the part of the net that depends on the value."""
        return {
            "id": self.id,
            "value": self.value,
            "unit": self.unit,
            "source": self.source,
            "share_of_total": share,
        }

    def stored(self) -> dict[str, object]:
        """The shape kept among engine outputs, so that money can be replayed without the engine."""
        return {
            "id": self.id,
            "value": self.value,
            "unit": self.unit,
            "source": self.source,
            "moves": list(self.moves),
        }


def read_stored(rows: Sequence[Mapping[str, object]]) -> tuple[Assumption, ...]:
    """Read :meth:`Assumption.stored` back."""
    return tuple(
        Assumption(
            id=str(row["id"]),
            value=row["value"],  # type: ignore[arg-type]
            unit=str(row["unit"]),
            source=str(row["source"]),
            moves=tuple(row["moves"]),  # type: ignore[arg-type]
        )
        for row in rows
    )


def with_shares(assumptions: Sequence[Assumption], lines: Sequence[Line]) -> list[dict[str, object]]:
    """The assumptions with the share of the net that each moves, to three decimals; None where nothing is priced."""
    everything = sum((line.net.amount for line in lines), ZERO)
    by_kind: dict[str, Decimal] = {}
    for line in lines:
        by_kind[line.kind] = by_kind.get(line.kind, ZERO) + line.net.amount
    result = []
    for assumption in assumptions:
        moved = sum((by_kind.get(kind, ZERO) for kind in assumption.moves), ZERO)
        share = plain(round(CONTEXT.divide(moved, everything), 3)) if everything else None
        result.append(assumption.as_json(share))
    return result
