"""Prices of LLM APIs: input, cached input, cache write and output are lines of their own, each with all its tiers.

Two sources: the data of the genai-prices library (USD per million tokens), and litellm's ``model_prices`` JSON (USD per
token). A price that is absent or zero is unknown, not free (litellm counts 222 such chat entries), and one outside the
bounds is held back: per-thousand and per-million figures get stored as per-token ones (litellm#38167).

A tier above ``n`` tokens is an offer of its own, product ``input_above_200000``: a request whose prompt is longer than
that pays the tier's price for all its tokens, not only for those above (both sources describe it so).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from app.catalog.imports.own_csv import load_json
from app.catalog.imports.staged import (
    LONGEST,
    FileError,
    RejectedRow,
    RowError,
    StagedPrice,
    StagedRow,
    check_texts,
    decimal_of,
    read_amount,
    source_of,
)
from app.catalog.offers import OfferKey, Source
from app.catalog.record import Record
from app.catalog.token_prices import product_of

# The dearest public model in the data costs 600 USD a million output tokens (o1-pro), the cheapest lines 0.001.
BOUNDS = (Decimal("0.0005"), Decimal("1000"))
TOKENS_PER_MTOK = Decimal(1_000_000)
LINES = {
    "input_mtok": "input",
    "cache_read_mtok": "cached_input",
    "cache_write_mtok": "cache_write",
    "output_mtok": "output",
}
CITATION = "PyPI genai-prices {version} (bundled data)"
# Service tiers as litellm's cost keys end: a batch or priority price is another offer than the standard one.
SERVICE_TIERS = {None: "standard", "_batches": "batch", "_priority": "priority", "_flex": "flex"}
# Cost keys of litellm that are prices per token, by line.
LITELLM_LINES = {
    "input_cost_per_token": "input",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_write",
    "output_cost_per_token": "output",
}
LITELLM_KEY = re.compile(
    rf"(?P<line>{'|'.join(LITELLM_LINES)})(_above_(?P<thousands>[0-9]+)k_tokens)?(?P<service>_batches|_priority|_flex)?",
    re.ASCII,
)
LITELLM_CITATION = "github.com/BerriAI/litellm model_prices_and_context_window.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """One price of one model as a source states it, in USD per million tokens."""

    provider: str
    model: str
    product: str
    amount: Decimal
    starts_on: date | None = None
    tier: str = "standard"


def read_tokens(providers: Iterable[Any], version: str, observed_on: date) -> Iterator[StagedRow]:
    """Stage every priced line of every model of genai-prices."""
    source = source_of(CITATION.format(version=version), "tracker", observed_on, "MIT")
    return (_staged(line, source, observed_on) for provider in providers for line in _library_lines(provider))


def read_litellm(content: bytes, observed_on: date, provider: str = "", citation: str = "") -> Iterator[StagedRow]:
    """Stage every price per token of litellm's JSON; other costs (images, seconds, queries) are passed over."""
    try:
        entries = load_json(content, number=Decimal)
        lines = [line for model, facts in entries.items() for line in _litellm_lines(model, facts, provider)]
    except (ValueError, TypeError, AttributeError, ArithmeticError) as error:
        raise FileError("malformed_json", f"this is not litellm's model_prices JSON: {error!r}") from None
    source = source_of(citation or LITELLM_CITATION, "tracker", observed_on, "MIT")
    return (_staged(line, source, observed_on) for line in lines)


def token_provider_records(names: Mapping[str, str], known: Iterable[str]) -> Iterator[Record]:
    """Give a record for each API provider (id and name) the catalog does not know yet."""
    held = set(known)
    for provider, name in names.items():
        if provider not in held:
            payload = {"id": provider, "name": name, "kind": "token_api", "aliases": []}
            yield Record(kind="provider", key=provider, payload=payload)


def _library_lines(provider: Any) -> Iterator[_Line]:
    for model in provider.models:
        for starts_on, hours, prices in _dated(model.prices):
            for attribute, name in LINES.items():
                value = getattr(prices, attribute, None)
                for above, amount in () if value is None else _tiers(value):
                    product = product_of(name, above) + hours
                    yield _Line(
                        provider=provider.id, model=model.id, product=product, amount=amount, starts_on=starts_on
                    )


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


def _tiers(value: Any) -> Iterator[tuple[int, Decimal]]:
    """Give each tier: the prompt length [token] above which it holds, and its price."""
    yield 0, Decimal(getattr(value, "base", value))
    for tier in getattr(value, "tiers", ()):
        yield int(tier.start), Decimal(tier.price)


def _litellm_lines(model: str, facts: Mapping[str, Any], wanted: str) -> Iterator[_Line]:
    provider = str(facts.get("litellm_provider", ""))
    if len(provider) > LONGEST["provider"]:
        raise ValueError(f"the provider {provider[:40]!r} of {model[:40]!r} is longer than {LONGEST['provider']}")
    if not provider or model == "sample_spec" or wanted not in ("", provider):
        return
    for key, amount in facts.items():
        match = LITELLM_KEY.fullmatch(key)
        if match is None or not isinstance(amount, Decimal):
            continue
        yield _Line(
            provider=provider,
            model=model,
            product=product_of(LITELLM_LINES[match["line"]], int(match["thousands"] or 0) * 1_000),
            amount=decimal_of(amount) * TOKENS_PER_MTOK,
            tier=SERVICE_TIERS[match["service"]],
        )


def _check(line: _Line) -> None:
    if line.amount <= 0:
        detail = f"{line.provider}/{line.model} {line.product} is {line.amount}: unknown, not free"
        raise RowError("non_positive_price", detail)
    read_amount(format(line.amount, "f"))
    check_texts({"instance_type": line.model, "product": line.product})


def _staged(line: _Line, source: Source, observed_on: date) -> StagedRow:
    try:
        _check(line)
    except RowError as error:
        raw = {"model": line.model, "line": line.product, "amount": str(line.amount)}
        return RejectedRow(line=0, reason=error.reason, detail=error.detail, raw=raw, provider=line.provider)
    doubts: tuple[tuple[str, str], ...] = ()
    if not BOUNDS[0] <= line.amount <= BOUNDS[1]:
        detail = f"{line.amount} USD a million tokens is outside {BOUNDS[0]} to {BOUNDS[1]}: check the unit"
        doubts = (("token_price_out_of_bounds", detail),)
    return StagedPrice(
        line=0,
        key=OfferKey(
            provider=line.provider,
            sku=line.model,
            accelerator_label="none",
            region="global",
            purchase_model="on_demand",
            product=line.product,
            tier=line.tier,
        ),
        scope="bundle",
        sold_unit="token",
        accelerator_id=None,
        accelerator_count=1,
        amount=line.amount,
        currency="USD",
        price_unit="per_mtok",
        observed_on=observed_on,
        valid_from=line.starts_on or observed_on,
        valid_to=None,
        valid_from_published=line.starts_on is not None,
        source=source,
        kind="list",
        confidence="medium",
        excluded_reason="token_price",
        jump_confirmed=line.starts_on is not None,
        doubts=doubts,
    )
