"""Units of our lines in the words of other systems.

Codes: UN/ECE Recommendation 20 (HUR hour, MON month, E34 gigabyte, E62 gibibyte, C62 one, ZZ mutually defined). A
machine's hour is an hour there; which machine stands in the description. FOCUS names: FOCUS 1.2, attribute UnitFormat.
"""

from app.proposals.document import LUMP, MONTH

MUTUALLY_DEFINED = "ZZ"
_CODES = {MONTH: "MON", LUMP: "C62", "gb": "E34", "gib": "E62"}
_FOCUS = {"gb": "GB", "gb_month": "GB-Months", "gib_month": "GiB-Months", "share": "Shares"}


def rec20(unit: str) -> str:
    """Give the code of a unit; ``ZZ`` where the recommendation has none."""
    if unit.endswith("_hour"):
        return "HUR"
    return _CODES.get(unit, MUTUALLY_DEFINED)


def focus_unit(unit: str) -> str:
    """Give a unit in FOCUS's form: ``Node-Hours``."""
    if unit.endswith("_hour"):
        return f"{unit.removesuffix('_hour').replace('_', ' ').title()}-Hours"
    return _FOCUS.get(unit, unit.replace("_", " ").title())
