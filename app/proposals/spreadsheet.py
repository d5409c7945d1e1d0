"""Cells that a spreadsheet reads as text, whatever people wrote in them (OWASP, CSV injection)."""

# The full-width forms are formulas too where the spreadsheet's language is Japanese or Chinese.
_FORMULA_STARTS = tuple("=+-@\t\r\n＝＋－＠")


def text_cell(text: str | None) -> str:
    """Give somebody's text with an apostrophe before what a spreadsheet would calculate; figures never come here."""
    if text is None:
        return ""
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
