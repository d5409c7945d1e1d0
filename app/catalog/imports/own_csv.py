"""Our own price files: CSV (the header of ``cloud_prices.csv`` plus optional columns) and the same rows as JSON.

The unit of a price is part of its column's name or of the ``currency``/``price_unit`` columns, because a file whose
units are written down nowhere is how prices get imported eight times too low (opencost#2840, dstack#1890).
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from io import StringIO
from sys import intern
from typing import Any

from app.catalog.imports.labels import Labels, region_code
from app.catalog.imports.purchase import read_purchase
from app.catalog.imports.staged import (
    LONGEST,
    FileError,
    RejectedRow,
    RowError,
    StagedPrice,
    StagedRow,
    check_texts,
    read_amount,
    read_count,
    read_currency,
    read_date,
    read_word,
    source_of,
)
from app.catalog.imports.trust import Trust, TrustTable
from app.catalog.offers import CONFIDENCES, METHODS, PRICE_KINDS, PRICE_UNITS, SCOPES, SOLD_UNITS, OfferKey
from app.foundation.strict_json import storable

REQUIRED = frozenset(
    {"provider", "instance_type", "accelerator", "accelerator_count", "sold_unit", "region", "purchase_model"}
)
OPTIONAL = frozenset(
    {
        "vcpus",
        "memory_gib",
        "effective_date",
        "source",
        "currency",
        "price_unit",
        "scope",
        "tier",
        "tenancy",
        "os",
        "product",
        "term_months",
        "payment_option",
        "valid_from",
        "valid_to",
        "observed_on",
        "method",
        "kind",
        "confidence",
        "min_quantity",
        "quantity_step",
        "indicative",
        "note",
    }
)
# Price columns whose names state currency and unit, and the one that needs the two columns beside it.
PRICE_COLUMNS: Mapping[str, tuple[str | None, str | None]] = {
    "price_usd_per_hour": ("USD", "hour"),
    "price_native_per_hour": (None, "hour"),
    "price": (None, None),
}
MAX_ROWS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a known instance type holds, for feeds that name the type only."""

    accelerator_label: str
    accelerator_count: int
    vcpus: int | None
    memory_gib: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a reader needs besides the file: names, trust, known shapes, and the day an undated price counts from.

    ``provider``, ``observed_on`` and ``default_source`` stand in where a format leaves them to its file name.
    """

    labels: Labels
    trust: TrustTable
    undated_from: date
    default_source: str = ""
    provider: str = ""
    observed_on: date | None = None
    shapes: Mapping[tuple[str, str], Shape] = field(default_factory=dict)


def decode_text(content: bytes) -> str:
    """Decode a file as UTF-8, the only encoding accepted."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileError(
            "wrong_encoding",
            f"byte {error.start} is not UTF-8; save the file as UTF-8 and import it again",
            line=content[: error.start].count(b"\n") + 1,
        ) from None
    if "\x00" in text:
        at = text.index("\x00")
        raise FileError(
            "wrong_encoding", f"character {at} is a NUL; is it a text file?", line=text.count("\n", 0, at) + 1
        )
    return text


def load_json(content: bytes, *, number: Callable[[str], Any] | None = None) -> Any:
    """Parse a JSON file, its numbers with ``number``.

    Raises
    ------
    ValueError
        Not UTF-8, not JSON, nested too deeply, or with a text that no database keeps.
    """
    try:
        value = json.loads(decode_text(content), parse_float=number, parse_int=number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not storable(value):
        raise ValueError("a text holds a NUL or half a surrogate pair")
    return value


def csv_rows(text: str) -> tuple[list[str], Iterator[tuple[int, dict[str, str]]]]:
    """Open a CSV: its header and its rows with line numbers; a row with another number of cells ends the reading."""
    reader = csv.reader(StringIO(text), strict=True)
    try:
        header = next(reader, None)
    except csv.Error as error:
        raise FileError("malformed_csv", f"line {reader.line_num}: {error}", line=reader.line_num) from None
    if not header:
        raise FileError("empty_file", "the file has no header")
    if len(set(header)) != len(header):
        raise FileError("duplicate_column", f"the header repeats {sorted({c for c in header if header.count(c) > 1})}")

    def rows() -> Iterator[tuple[int, dict[str, str]]]:
        try:
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise FileError(
                        "truncated_row",
                        f"line {reader.line_num} has {len(cells)} cells, the header has {len(header)}: "
                        "the file is cut off or badly quoted, nothing of it is imported",
                        line=reader.line_num,
                    )
                yield reader.line_num, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            raise FileError("malformed_csv", f"line {reader.line_num}: {error}", line=reader.line_num) from None

    return header, rows()


def price_column(columns: Iterable[str]) -> str:
    """Find the one price column of a header and refuse a header that leaves unit or currency open."""
    names = set(columns)
    found = [name for name in PRICE_COLUMNS if name in names]
    if len(found) != 1:
        raise FileError(
            "missing_unit",
            f"exactly one of the columns {', '.join(PRICE_COLUMNS)} must be there, found {found or 'none'}: "
            "the name says currency and unit",
        )
    currency, unit = PRICE_COLUMNS[found[0]]
    if (currency is None and "currency" not in names) or (unit is None and "price_unit" not in names):
        raise FileError("missing_unit", f"column {found[0]} needs the columns currency and price_unit beside it")
    if "sold_unit" not in names:
        raise FileError(
            "missing_unit",
            f"column sold_unit must say what one price is for: {', '.join(SOLD_UNITS)}; a machine of eight and one "
            "accelerator of it look the same otherwise",
        )
    missing = sorted(REQUIRED - names)
    if missing:
        raise FileError("missing_column", f"the header lacks {', '.join(missing)}")
    unknown = sorted(names - REQUIRED - OPTIONAL - set(PRICE_COLUMNS))
    if unknown:
        raise FileError("unknown_column", f"the header has columns nobody reads: {', '.join(unknown)}")
    return found[0]


def read_csv(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage every row of a CSV in our own format."""
    header, rows = csv_rows(decode_text(content))
    column = price_column(header)
    return (stage(line, row, column, reading) for line, row in rows)


def read_json(content: bytes, reading: Reading) -> Iterator[StagedRow]:
    """Stage every row of ``{"prices": [...]}``; values are strings, so that no float touches a price."""
    try:
        rows = load_json(content, number=str)["prices"]
        columns = set().union(*(row.keys() for row in rows))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FileError("malformed_json", f"expected an object with a list 'prices' of objects: {error}") from None
    if not rows:
        return iter(())
    column = price_column(columns)
    texts = ({name: _cell(value) for name, value in row.items()} for row in rows)
    return (stage(line, row, column, reading) for line, row in enumerate(texts, start=1))


def _cell(value: Any) -> Any:
    """Write null and the flags as a CSV has them."""
    return {None: "", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else value


def stage_all(rows: Iterable[tuple[int, Mapping[str, str]]], reading: Reading) -> Iterator[StagedRow]:
    """Stage rows that another format has put into our columns (``price`` with ``currency`` and ``price_unit``)."""
    return (stage(line, row, "price", reading) for line, row in rows)


def stage(line: int, row: Mapping[str, str], column: str, reading: Reading) -> StagedRow:
    """Normalise one row, or say why it cannot be."""
    try:
        check_texts(row)
        return _staged(line, row, column, reading)
    except RowError as error:
        reason, detail = error.reason, error.detail
    except ValueError as error:
        reason, detail = "malformed_row", str(error)
    name = str(row.get("provider", "")).strip().lower()[: LONGEST["provider"]]
    return RejectedRow(
        line=line,
        reason=reason,
        detail=detail,
        raw={name: str(value) for name, value in row.items()},
        provider=reading.labels.providers.get(name, name) or None,
    )


def _staged(line: int, row: Mapping[str, str], column: str, reading: Reading) -> StagedPrice:
    provider = reading.labels.provider(row["provider"])
    sku = row["instance_type"].strip()
    if not sku:
        raise RowError("missing_sku", "instance_type is blank")
    citation = row.get("source", "").strip() or reading.default_source
    if not citation:
        raise RowError("missing_source", "every price names its source")
    accelerator_id, excluded = reading.labels.accelerator(row["accelerator"])
    count = read_count(row["accelerator_count"], "accelerator_count")
    purchase = read_purchase(
        row["purchase_model"],
        citation,
        provider,
        row.get("product", ""),
        row.get("term_months", ""),
        row.get("payment_option", ""),
    )
    trust = stated_trust(row, reading.trust.of(citation, sku))
    observed = read_date(row.get("observed_on", "") or row.get("effective_date", ""), "effective_date")
    published = read_date(row.get("valid_from", ""), "valid_from")
    starts, ends = published or observed or reading.undated_from, read_date(row.get("valid_to", ""), "valid_to")
    if ends is not None and ends <= starts:
        raise RowError("malformed_date", f"valid_to {ends} is not after {starts}, where the price starts")
    currency, unit = PRICE_COLUMNS[column]
    statistic = trust.kind == "marketplace_stat" or purchase.model == "marketplace"
    return StagedPrice(
        line=line,
        key=OfferKey(
            provider=provider,
            sku=intern(sku),
            accelerator_label=intern(row["accelerator"].strip()),
            region=intern(region_code(row["region"])),
            purchase_model=purchase.model,
            product=purchase.product,
            term_months=purchase.term_months,
            payment_option=purchase.payment_option,
            tier=row.get("tier", "").strip() or tier_of(provider, sku, citation),
            tenancy=row.get("tenancy", "").strip() or "shared",
            os=row.get("os", "").strip() or "linux",
        ),
        scope=read_word(row.get("scope", "") or "bundle", SCOPES, "unknown_scope", "scope"),
        sold_unit=read_word(row["sold_unit"], SOLD_UNITS, "missing_unit", "sold_unit"),
        accelerator_id=accelerator_id,
        accelerator_count=count,
        amount=read_amount(row[column]),
        currency=currency or read_currency(row.get("currency", "")),
        price_unit=unit or read_word(row.get("price_unit", ""), PRICE_UNITS, "missing_unit", "price_unit"),
        observed_on=observed,
        valid_from=starts,
        valid_to=ends,
        valid_from_published=published is not None,
        source=source_of(citation, trust.method, observed, trust.licence),
        kind=trust.kind,
        confidence=trust.confidence,
        vcpus=read_count(row["vcpus"], "vcpus") if row.get("vcpus", "").strip() else None,
        memory_gib=read_amount(row["memory_gib"]) if row.get("memory_gib", "").strip() else None,
        min_quantity=read_count(row.get("min_quantity", "") or "1", "min_quantity"),
        quantity_step=read_count(row.get("quantity_step", "") or "1", "quantity_step"),
        indicative=row.get("indicative", "").strip().lower() == "true" or statistic,
        excluded_reason=excluded,
        note=row.get("note", "").strip() or None,
    )


def stated_trust(row: Mapping[str, str], trust: Trust) -> Trust:
    """Let a row's own columns override what its citation says."""
    method = row.get("method", "").strip() or trust.method
    confidence = row.get("confidence", "").strip() or trust.confidence
    if method not in METHODS or confidence not in CONFIDENCES:
        raise RowError("unknown_method", f"method {method!r} or confidence {confidence!r} is not in the vocabulary")
    kind = read_word(row.get("kind", "") or trust.kind, PRICE_KINDS, "unknown_kind", "kind")
    return Trust(method=method, kind=kind, confidence=confidence, licence=trust.licence)


def tier_of(provider: str, sku: str, citation: str) -> str:
    """Read the service tier where the source names one: a community price is not a secure one (dstack#1886)."""
    if "resold via Prime Intellect" in citation:
        return "resold_prime_intellect"
    if provider == "runpod":
        prefix, slash, _ = sku.partition("/")
        return prefix if slash and prefix in ("secure", "community") else "unstated"
    return "standard"
