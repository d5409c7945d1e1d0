"""What a token of an LLM API costs: the line (input, cached input, output), in the tier of the prompt's length."""

import re
from collections.abc import Iterable
from datetime import date

from app.catalog.offers import Offer
from app.catalog.resolve import MissingOffer, Outcome, Resolution, resolve_price
from app.catalog.snapshot import Snapshot

LINES = ("input", "cached_input", "cache_write", "output")
_PRODUCT = re.compile(r"(?P<line>[a-z_]+?)(_above_(?P<above>[0-9]+))?", re.ASCII)


def product_of(line: str, above_tokens: int) -> str:
    """Name a line's tier: ``input``, and ``input_above_200000`` for prompts longer than that."""
    return f"{line}_above_{above_tokens}" if above_tokens else line


def token_tiers(
    snapshot: Snapshot, provider: str, model: str, line: str, service: str = "standard"
) -> dict[int, Offer]:
    """Find the tiers of a line by the prompt length [token] above which each holds; 0 = from the first token.

    Prices of certain hours of the day are offers of their own and not among them.
    """
    found = {}
    for offer in snapshot.offers_of_sku(provider, model):
        match = _PRODUCT.fullmatch(offer.key.product)
        stands = offer.sold_unit == "token" and offer.key.tier == service
        if stands and match is not None and match["line"] == line:
            found[int(match["above"] or 0)] = offer
    return dict(sorted(found.items()))


def reached_tier(tiers: Iterable[int], prompt_tokens: int) -> int | None:
    """Find the highest tier that a prompt's length is above; None where the line has no price at all."""
    return max((above for above in tiers if above == 0 or prompt_tokens > above), default=None)


def token_price(
    snapshot: Snapshot,
    provider: str,
    model: str,
    line: str,
    prompt_tokens: int,
    as_of: date,
    *,
    service: str = "standard",
) -> Resolution | MissingOffer:
    """Find the price per million tokens of a line for a prompt of a length, which all tokens of the request pay.

    Parameters
    ----------
    prompt_tokens : int [token]
        Input, with what comes from a cache. A tier holds above its start: a prompt of just 200,000 pays the tier below.
    service : str
        ``standard``, ``batch``, ``priority`` or ``flex``.
    """
    tiers = token_tiers(snapshot, provider, model, line, service)
    reached = reached_tier(tiers, prompt_tokens)
    if reached is None:
        message = f"the catalog holds no {line} price of {model!r} at {provider!r} for {prompt_tokens} tokens"
        return MissingOffer(outcome=Outcome.UNKNOWN_PRICE, message=message)
    return resolve_price(snapshot, tiers[reached], as_of)
