"""The lines of one bill while it is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.estimates.assumptions import Assumption
from app.estimates.terms import PricedTerms
from app.pricing.line_items import Charge, HoursBasis, Line, UnpricedLine, priced_line
from app.pricing.money import Money
from app.pricing.outcome import Unpriced
from app.pricing.waterfall import Waterfall

Run = Mapping[str, Any]
"""One engine output: what a configuration does, as stored (see ``runs``)."""


@dataclass(slots=True)
class Bill:
    """Lines in the making."""

    terms: PricedTerms
    lines: list[Line] = field(default_factory=list)
    unpriced: list[UnpricedLine] = field(default_factory=list)
    excluded: list[Mapping[str, object]] = field(default_factory=list)
    assumptions: list[Assumption] = field(default_factory=list)

    @property
    def next_number(self) -> int:
        """Line numbers go up in tens, so that a line can be put between."""
        return 10 * (len(self.lines) + len(self.unpriced) + 1)

    def add(
        self, *, kind: str, charge: Charge, en: str, zh: str, billed: Decimal, unit: str, priced: Waterfall,
        native_unit: Money | None = None, hours_basis: HoursBasis | None = None,
        evidence: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """One priced line; nothing is added for a quantity of zero."""
        if billed == 0:
            return
        self.lines.append(
            priced_line(
                number=self.next_number,
                kind=kind,
                charge=charge,
                description={"en": en, "zh-CN": zh},
                billed=billed,
                unit=unit,
                priced=priced,
                hours_basis=hours_basis,
                native_net=native_unit.times(billed) if native_unit is not None else None,
                evidence=evidence,
            )
        )

    def lack(
        self, *, kind: str, charge: Charge, en: str, zh: str, billed: Decimal | None, unit: str, unpriced: Unpriced
    ) -> None:
        """One line that is needed and has no price; the bill then has no total."""
        self.unpriced.append(
            UnpricedLine(
                id=str(self.next_number),
                kind=kind,
                charge=charge,
                description={"en": en, "zh-CN": zh},
                quantity=billed,
                unit=unit,
                unpriced=unpriced,
            )
        )
