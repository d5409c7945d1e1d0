"""Lines of a priced document: quantity x unit price rounded once, discounts and contingency spread over lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal

from app.pricing.errors import PricingError
from app.pricing.money import Money, plain, quantity, total
from app.pricing.outcome import Unpriced
from app.pricing.rounding import allocate
from app.pricing.waterfall import Waterfall, check_share

Charge = Literal["one_off", "recurring", "usage"]
HoursBasis = Literal["730", "calendar", "contract_hours"]
CHARGES: tuple[Charge, ...] = ("one_off", "recurring", "usage")
STANDARD_TAX = "standard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One priced line.

    Parameters
    ----------
    id : str
        At most ten characters (OCI catalogues).
    kind : str
        ``compute``, ``failures``, ``storage``, ``egress``, ``energy``, ``ownership``, ``contingency`` ...
    charge : str
        ``one_off``, ``recurring`` (net is per month) or ``usage``; never added to each other without a horizon.
    quantity, unit : Decimal, str
    hours_basis : str or None
        How hours become months, on every line where they do.
    waterfall : Waterfall
        From list to net unit price, in the document's currency.
    native_net : Money or None
        The same line in the currency it was priced in, when that is another one.
    net : Money
        Quantity x net unit price rounded once, less ``discount``.
    discount : Money or None
        The line's part of a document discount.
    evidence : mapping
        Offer, price row, dates and source behind the list price.
    """

    id: str
    kind: str
    charge: Charge
    description: Mapping[str, str]
    quantity: Decimal
    unit: str
    waterfall: Waterfall
    net: Money
    hours_basis: HoursBasis | None = None
    native_net: Money | None = None
    discount: Money | None = None
    tax_category: str = STANDARD_TAX
    evidence: Mapping[str, object] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """The shape a revision stores."""
        return {
            "id": self.id,
            "kind": self.kind,
            "charge": self.charge,
            "description": dict(self.description),
            "quantity": plain(self.quantity),
            "unit": self.unit,
            "hours_basis": self.hours_basis,
            "list_unit_price": self.waterfall.list_unit_price.as_json(),
            "waterfall": [s.as_json() for s in self.waterfall.steps],
            "net_unit_price": self.waterfall.net_unit_price.as_json(),
            "discount": self.discount.as_json() if self.discount else None,
            "net": self.net.as_json(),
            "native_net": self.native_net.as_json() if self.native_net else None,
            "tax_category": self.tax_category,
            "price_evidence": dict(self.evidence),
            "status": "priced",
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UnpricedLine:
    """A line that is needed but has no price; its document has no total."""

    id: str
    kind: str
    charge: Charge
    description: Mapping[str, str]
    quantity: Decimal | None
    unit: str
    unpriced: Unpriced

    def as_json(self) -> dict[str, object]:
        """The shape a revision stores; there is no amount to read as zero."""
        return {
            "id": self.id,
            "kind": self.kind,
            "charge": self.charge,
            "description": dict(self.description),
            "quantity": None if self.quantity is None else plain(self.quantity),
            "unit": self.unit,
            "net": None,
            "status": self.unpriced.outcome,
            "reason": self.unpriced.reason,
            "missing": list(self.unpriced.missing),
        }


def priced_line(
    *, number: int, kind: str, charge: Charge, description: Mapping[str, str], billed: Decimal, unit: str,
    priced: Waterfall, hours_basis: HoursBasis | None = None, tax_category: str = STANDARD_TAX,
    evidence: Mapping[str, object] | None = None, native_net: Money | None = None,
) -> Line:  # fmt: skip
    """A line whose net is quantity x net unit price, rounded once."""
    if billed < 0:
        raise PricingError(f"line {number}: a billed quantity is not negative, got {plain(billed)}")
    if ("hour" in unit or "month" in unit or charge == "recurring") and hours_basis is None:
        raise PricingError(f"line {number}: {charge} {unit} needs an hours basis")
    amount = quantity(billed)
    return Line(
        id=str(number),
        kind=kind,
        charge=charge,
        description=description,
        quantity=amount,
        unit=unit,
        waterfall=priced,
        net=priced.net_unit_price.times(amount),
        hours_basis=hours_basis,
        tax_category=tax_category,
        evidence=evidence or {},
        native_net=native_net,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDiscount:
    """A fixed amount off all lines of one charge, spread over them by largest remainder."""

    amount: Money
    charge: Charge
    source: str


def with_contingency(lines: Sequence[Line], share: Decimal, source: str) -> tuple[Line, ...]:
    """The lines and, per charge and tax category, one contingency line on their nets (after markup, before tax)."""
    check_share(share)
    if share == 0 or not lines:
        return tuple(lines)
    number = max(int(line.id) for line in lines)
    extra: list[Line] = []
    for charge in CHARGES:
        for category in sorted({line.tax_category for line in lines if line.charge == charge}):
            chosen = [line for line in lines if line.charge == charge and line.tax_category == category]
            base = total((line.net for line in chosen), chosen[0].net.currency)
            number += 10
            extra.append(
                priced_line(
                    number=number,
                    kind="contingency",
                    charge=charge,
                    description={"en": f"Contingency, {plain(share * 100)} % of the net", "zh-CN": "不可预见费"},
                    billed=share,
                    unit="share",
                    priced=Waterfall(list_unit_price=base),
                    hours_basis=chosen[0].hours_basis if charge == "recurring" else None,
                    tax_category=category,
                    evidence={"source": source},
                )
            )
    return (*lines, *extra)


def with_discount(lines: Sequence[Line], discount: DocumentDiscount) -> tuple[Line, ...]:
    """Spread a document discount over the lines of its charge so that they add up to it exactly."""
    chosen = [line for line in lines if line.charge == discount.charge]
    before = total((line.net for line in chosen), discount.amount.currency)
    if discount.amount.amount < 0 or before < discount.amount:
        raise PricingError(f"{discount.amount.text} off does not fit {before.text} of {discount.charge} lines")
    if discount.amount.amount == 0:
        return tuple(lines)
    shares = allocate(discount.amount, [line.net.amount for line in chosen])
    parts = dict(zip((line.id for line in chosen), shares, strict=True))
    return tuple(
        replace(line, net=line.net - parts[line.id], discount=parts[line.id]) if line.id in parts else line
        for line in lines
    )
