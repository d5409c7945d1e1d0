"""Prices of LLM APIs from the data of the genai-prices library: input, cached input and output are lines of their own.

Amounts are USD per million tokens. A price that is absent or zero is unknown, not free (litellm counts 222 such chat
entries), and one outside the bounds is held back: per-thousand and per-million figures get stored as per-token ones
(litellm#38167).
"""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from app.catalog.imports.staged import RejectedRow, StagedPrice, StagedRow, source_of
from app.catalog.offers import OfferKey
from app.catalog.record import Record

# The dearest public model in the data costs 600 USD a million output tokens (o1-pro), the cheapest lines 0.001.
BOUNDS = (Decimal("0.0005"), Decimal("1000"))
LINES = {
    "input_mtok": "input",
    "cache_read_mtok": "cached_input",
    "cache_write_mtok": "cache_write",
    "output_mtok": "output",
}
CITATION = "PyPI genai-prices {version} (bundled data)"


def read_tokens(providers: Iterable[Any], version: str, observed_on: date) -> Iterator[StagedRow]:
    """Stage every priced line of every model."""
    source = source_of(CITATION.format(version=version), "tracker", observed_on, "MIT")
    for provider in providers:
        for model in provider.models:
            for starts_on, hours, prices in _dated(model.prices):
                for attribute, line in LINES.items():
                    value = getattr(prices, attribute, None)
                    if value is None:
                        continue
                    yield from _line(
                        provider.id, model.id, line, _first_tier(value), starts_on, hours, source, observed_on
                    )


def token_provider_records(providers: Iterable[Any], known: Iterable[str]) -> Iterator[Record]:
    """Give a record for each API provider the catalog does not know yet."""
    held = set(known)
    for provider in providers:
        if provider.id not in held:
            payload = {"id": provider.id, "name": provider.name, "kind": "token_api", "aliases": []}
            yield Record(kind="provider", key=provider.id, payload=payload)


def _dated(prices: Any) -> Iterator[tuple[date | None, str, Any]]:
    if not isinstance(prices, list):
        yield None, "", prices
        return
    for entry in prices:
        constraint = entry.constraint
        start = getattr(constraint, "start_date", None)
        clock = ""
        if hasattr(constraint, "start_time"):
            clock = f"@{constraint.start_time:%H:%M}-{constraint.end_time:%H:%M}Z"
        yield start, clock, entry.prices


def _first_tier(value: Any) -> Decimal:
    base = getattr(value, "base", value)
    return Decimal(base)


def _line(
    provider: str,
    model: str,
    line: str,
    amount: Decimal,
    starts_on: date | None,
    hours: str,
    source: Any,
    observed_on: date,
) -> Iterator[StagedRow]:
    if amount <= 0:
        detail = f"{provider}/{model} {line} is {amount}: unknown, not free"
        raw = {"model": model, "line": line, "amount": str(amount)}
        yield RejectedRow(line=0, reason="non_positive_price", detail=detail, raw=raw, provider=provider)
        return
    doubts: tuple[tuple[str, str], ...] = ()
    if not BOUNDS[0] <= amount <= BOUNDS[1]:
        detail = f"{amount} USD a million tokens is outside {BOUNDS[0]} to {BOUNDS[1]}: check the unit"
        doubts = (("token_price_out_of_bounds", detail),)
    yield StagedPrice(
        line=0,
        key=OfferKey(
            provider=provider,
            sku=model,
            accelerator_label="none",
            region="global",
            purchase_model="on_demand",
            product=line + hours,
        ),
        scope="bundle",
        sold_unit="token",
        accelerator_id=None,
        accelerator_count=1,
        amount=amount,
        currency="USD",
        price_unit="per_mtok",
        observed_on=observed_on,
        valid_from=starts_on or observed_on,
        valid_to=None,
        valid_from_published=starts_on is not None,
        source=source,
        kind="list",
        confidence="medium",
        excluded_reason="token_price",
        jump_confirmed=starts_on is not None,
        doubts=doubts,
    )
