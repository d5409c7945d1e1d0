"""What a caller without ``costs:read`` does not get to see: the way from cost to price, wherever it stands."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.pricing.money import Money, total

# The seller's own figures: what is put on top, what hardware was bought for, what owning costs beside renting.
_OF_THE_SELLER = frozenset({"markup", "ownership", "rent_or_own"})
# With a mark-up on a line, the list price and every step before are the seller's cost.
_BEFORE_MARKUP = frozenset({"list_unit_price", "waterfall", "native_net", "price_evidence"})
_OWNERSHIP = "ownership."


def without_costs(answer: Any) -> Any:
    """Give an answer or stored content without mark-up, what it was put on, and what owned hardware costs inside.

    Prices, totals and unit costs to the customer stay, and lines still add up to their totals: the parts of an owned
    accelerator-hour become one line. A hash in the answer stays that of the whole content.
    """
    if isinstance(answer, Mapping):
        shown = {name: without_costs(value) for name, value in answer.items() if name not in _OF_THE_SELLER}
        if isinstance(shown.get("lines"), list):
            shown["lines"] = _lines(shown["lines"])
        if isinstance(shown.get("assumptions"), list):
            shown["assumptions"] = [row for row in shown["assumptions"] if not _is_of_ownership(row)]
        return shown
    if isinstance(answer, list | tuple):
        return [without_costs(value) for value in answer]
    return answer


def without_list_prices(answer: Any) -> Any:
    """Give an answer about prices with a mark-up on them without the dated price rows that they were put on."""
    if isinstance(answer, Mapping):
        return {name: without_list_prices(value) for name, value in answer.items()}
    if isinstance(answer, list | tuple):
        rows = [row for row in answer if not (isinstance(row, Mapping) and "native_price" in row)]
        return [without_list_prices(row) for row in rows]
    return answer


def _is_of_ownership(row: Any) -> bool:
    return isinstance(row, Mapping) and str(row.get("id", "")).startswith(_OWNERSHIP)


def _lines(lines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    owned: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for line in lines:
        if _is_owned(line):
            owned.setdefault((line["charge"], line["tax_category"], line["quantity"]), []).append(line)
    merged = {id(parts[0]): _one_line(parts) for parts in owned.values()}
    return [_line(merged.get(id(line), line)) for line in lines if not _is_owned(line) or id(line) in merged]


def _is_owned(line: Any) -> bool:
    return isinstance(line, Mapping) and (line.get("price_evidence") or {}).get("rule") == "owned"


def _one_line(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The parts of an owned accelerator-hour as one price; its net is the sum of their rounded nets."""
    first = parts[0]
    return {
        **{name: value for name, value in first.items() if name not in _BEFORE_MARKUP},
        "kind": "ownership",
        "description": {"en": "Owned hardware, everything included", "zh-CN": "自有硬件（全部费用）"},
        "net_unit_price": _sum(parts, "net_unit_price"),
        "net": _sum(parts, "net"),
    }


def _sum(parts: Sequence[Mapping[str, Any]], name: str) -> dict[str, str]:
    currency = parts[0][name]["currency"]
    return total((Money(amount=Decimal(part[name]["amount"]), currency=currency) for part in parts), currency).as_json()


def _line(line: Mapping[str, Any]) -> Mapping[str, Any]:
    if any(step["step"] == "markup" for step in line.get("waterfall") or ()):
        return {name: value for name, value in line.items() if name not in _BEFORE_MARKUP}
    return line
