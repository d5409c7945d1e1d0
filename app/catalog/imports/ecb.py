"""ECB euro reference rates (``eurofxref-hist.csv``): one row a business day, quote currency units for one euro."""

from datetime import date

from app.catalog.imports.own_csv import csv_rows, decode_text
from app.catalog.imports.staged import FileError, decimal_of, read_currency
from app.catalog.rates import FxFixing

CITATION = "European Central Bank, euro foreign exchange reference rates"


def read_ecb(content: bytes, citation: str = CITATION) -> tuple[FxFixing, ...]:
    """Read fixings in date order; "N/A" and blank mean no fixing, never zero."""
    header, rows = csv_rows(decode_text(content))
    if header[0].strip() != "Date":
        raise FileError("missing_column", f"an ECB file starts with the column Date, this one with {header[0]!r}")
    fixings: dict[date, FxFixing] = {}
    for line, row in rows:
        try:
            day = date.fromisoformat(row["Date"].strip())
            rates = {
                read_currency(code): decimal_of(text.strip())
                for code, text in row.items()
                if code.strip() not in ("Date", "") and text.strip() not in ("N/A", "")
            }
        except (ValueError, ArithmeticError):
            raise FileError("malformed_row", f"line {line} is not a date and decimal rates", line=line) from None
        if any(rate <= 0 for rate in rates.values()):
            raise FileError("non_positive_rate", f"line {line} has a rate that is not positive", line=line)
        if day in fixings:
            raise FileError("duplicate_key", f"line {line} repeats {day}", line=line)
        fixings[day] = FxFixing(fixed_on=day, per_euro=rates, source=citation)
    return tuple(fixings[day] for day in sorted(fixings))
