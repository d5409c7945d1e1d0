"""Why a total moved: the change between two priced revisions, split into the causes in ``EFFECTS``.

Each line's total is read as ``quantity x list unit price x contract factor x exchange rate``. The factors are moved
one after the other in that order on the supply selected before; changing to another supply comes last. So every effect
is a difference of two real totals and together they add up to the whole change with nothing left over. The order is a
convention (a price effect is valued at the new quantity), stated in every report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext

EFFECTS = ("spec", "engine", "list_price", "contract", "fx", "selection")

_CONTEXT = Context(prec=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftLine:
    """One line of a selected option, as the split needs it.

    Parameters
    ----------
    key : str
        What makes it the same line in both revisions.
    quantity : Decimal
    list_unit_price : Decimal
        In ``native_currency``, before any contract.
    exchange_rate : Decimal
        Presentation currency per unit of ``native_currency``.
    total : Decimal
        Net total in the presentation currency, contract and mark-up included.
    contract_factor : Decimal or None
        Net unit price over list unit price. None = what the total says, rounding of the line included.
    """

    key: str
    quantity: Decimal
    list_unit_price: Decimal
    native_currency: str
    exchange_rate: Decimal
    total: Decimal
    contract_factor: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftSide:
    """One revision in the comparison.

    Parameters
    ----------
    lines : sequence of DriftLine
        On the same supply in both revisions.
    selection : Decimal
        What selecting another supply adds to ``lines``; part of ``total``.
    """

    lines: Sequence[DriftLine]
    total: Decimal
    currency: str
    spec_sha256: str
    engine: str
    selection: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The change of a total and its parts, in the currency's smallest unit exact to the last digit."""

    currency: str
    before: Decimal
    after: Decimal
    effects: Mapping[str, Decimal]
    notes: tuple[str, ...]

    @property
    def change(self) -> Decimal:
        """After minus before; the effects add up to it."""
        return self.after - self.before


def split_drift(
    before: DriftSide, after: DriftSide, *, quantum: Decimal, between: Mapping[str, Decimal] | None = None
) -> Drift:
    """Split the change of the total between two revisions of the same presentation currency.

    Parameters
    ----------
    quantum : Decimal
        Smallest amount of the currency (0.01 for USD, 1 for JPY); effects are rounded to it so that they still add
        up (largest remainder).
    between : mapping of str to Decimal, or None
        Quantity by line key of the earlier spec on the later engine: tells the two apart where both changed.
    """
    if before.currency != after.currency:
        raise ValueError(f"totals in {before.currency} and {after.currency} have no difference")
    spec_changed = before.spec_sha256 != after.spec_sha256
    engine_changed = before.engine != after.engine
    quantity_effect = "spec" if spec_changed else "engine"
    separable = between if spec_changed and engine_changed else None
    effects = dict.fromkeys(EFFECTS, Decimal(0))
    with localcontext(_CONTEXT):
        old = {line.key: line for line in before.lines}
        new = {line.key: line for line in after.lines}
        for key in sorted(old.keys() | new.keys()):
            _add_line(effects, old.get(key), new.get(key), quantity_effect, (separable or {}).get(key))
        effects["selection"] += after.selection - before.selection
        # What is not in any line (contingency on the whole, document rounding) follows the lines' own proportions.
        change = after.total - before.total
        _spread(effects, change - sum(effects.values(), Decimal(0)))
        rounded = _round_to_sum(effects, change, quantum)
    return Drift(
        currency=after.currency,
        before=before.total,
        after=after.total,
        effects=rounded,
        notes=_notes(
            old, new, spec_changed=spec_changed, engine_changed=engine_changed, separable=separable is not None
        ),
    )


def _add_line(
    effects: dict[str, Decimal],
    old: DriftLine | None,
    new: DriftLine | None,
    quantity_effect: str,
    between: Decimal | None,
) -> None:
    if old is None or new is None:
        effects[quantity_effect] += (new.total if new else Decimal(0)) - (old.total if old else Decimal(0))
        return
    gross_old, gross_new = _gross(old), _gross(new)
    if not gross_old or not gross_new or old.native_currency != new.native_currency:
        # No chain of factors leads from one to the other: the line was replaced, not moved.
        effects[quantity_effect] += new.total - old.total
        return
    contract_old, contract_new = _contract(old, gross_old), _contract(new, gross_new)
    rate, quantity = old.exchange_rate, new.quantity
    middle = old.quantity if between is None else between
    effects["engine"] += (middle - old.quantity) * old.list_unit_price * contract_old * rate
    effects[quantity_effect] += (quantity - middle) * old.list_unit_price * contract_old * rate
    effects["list_price"] += quantity * (new.list_unit_price - old.list_unit_price) * contract_old * rate
    effects["contract"] += quantity * new.list_unit_price * (contract_new - contract_old) * rate
    effects["fx"] += quantity * new.list_unit_price * contract_new * (new.exchange_rate - rate)


def _contract(line: DriftLine, gross: Decimal) -> Decimal:
    return line.total / gross if line.contract_factor is None else line.contract_factor


def _gross(line: DriftLine) -> Decimal:
    return line.quantity * line.list_unit_price * line.exchange_rate


def _spread(effects: dict[str, Decimal], rest: Decimal) -> None:
    if not rest:
        return
    weight = sum((abs(value) for value in effects.values()), Decimal(0))
    if not weight:
        effects["contract"] += rest
        return
    for name, value in list(effects.items()):
        effects[name] = value + rest * abs(value) / weight


def _round_to_sum(effects: Mapping[str, Decimal], total: Decimal, quantum: Decimal) -> dict[str, Decimal]:
    units = {name: value / quantum for name, value in effects.items()}
    floors = {name: value.to_integral_value(rounding=ROUND_FLOOR) for name, value in units.items()}
    left = int((total / quantum).to_integral_value() - sum(floors.values(), Decimal(0)))
    by_remainder = sorted(units, key=lambda name: (floors[name] - units[name], EFFECTS.index(name)))
    for name in by_remainder[:left]:
        floors[name] += 1
    return {name: (floors[name] * quantum).quantize(quantum) for name in EFFECTS}


def _notes(
    old: Mapping[str, DriftLine],
    new: Mapping[str, DriftLine],
    *,
    spec_changed: bool,
    engine_changed: bool,
    separable: bool,
) -> tuple[str, ...]:
    notes = [
        "order: engine, spec, list price, contract, fx on the supply selected before, then selection; each effect "
        "valued at the new level of those before it"
    ]
    if spec_changed and engine_changed and not separable:
        notes.append(
            "spec and engine both changed: quantities are counted as spec, the engine's share is not separable"
        )
    if (
        not spec_changed
        and not engine_changed
        and any(key in old and old[key].quantity != line.quantity for key, line in new.items())
    ):
        notes.append("quantities moved with the catalog revision (hardware facts or calibration); counted as engine")
    if old.keys() != new.keys():
        notes.append("the selected options differ in their lines")
    return tuple(notes)
