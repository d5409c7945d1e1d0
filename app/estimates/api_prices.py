"""Public API token prices of the model asked for, from the optional library genai-prices; none without it.

The library says itself that its prices are not always right; each row carries the library's version and stands beside
the fleet's own cost as a comparison, never inside it.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from app.pricing.money import plain

# Words that do not make it another model: instruction tuning and how the provider runs it.
_SAME_MODEL = frozenset(
    {"meta", "instruct", "chat", "it", "turbo", "fast", "fp8", "fp4", "bf16", "hf", "versatile", "lite"}
    | {"preview", "specdec", "maas", "v1", "latest", "basic"}
)
_NAMES = re.compile(r"[a-z]+[0-9.]*|[0-9][0-9.]*[a-z]*")
MOST_ROWS = 20


def api_prices(model_ref: str | None) -> list[dict[str, Any]]:
    """Flat input and output prices per million tokens of a catalog model at public APIs, cheapest sum first."""
    if model_ref is None:
        return []
    return [dict(row) for row in _rows(model_ref)]


@lru_cache(maxsize=256)
def _rows(model_ref: str) -> tuple[dict[str, Any], ...]:
    wanted = _words(model_ref)
    found = [row for row in _library() if _is_same(wanted, _words(row["model"].rsplit("/", 1)[-1]))]
    ranked = sorted(found, key=lambda r: (Decimal(r["input"]) + Decimal(r["output"]), r["provider"], r["model"]))
    return tuple(ranked[:MOST_ROWS])


@lru_cache(maxsize=1)
def _library() -> tuple[dict[str, Any], ...]:
    try:
        from genai_prices import __version__, data
    except ImportError:
        return ()
    return tuple(_flat(data.providers, __version__))


def _flat(providers: Any, version: str) -> Iterator[dict[str, Any]]:
    """Rows with one undated price; zero means unknown there, tiers and time-of-day prices are left out."""
    for provider in providers:
        for model in provider.models:
            prices = model.prices
            if isinstance(prices, list):
                plain_ones = [p.prices for p in prices if p.constraint is None]
                prices = plain_ones[-1] if plain_ones else None
            into, out = getattr(prices, "input_mtok", None), getattr(prices, "output_mtok", None)
            if isinstance(into, Decimal) and isinstance(out, Decimal) and into > 0 and out > 0:
                yield {
                    "provider": provider.id,
                    "model": model.id,
                    "input": plain(into),
                    "output": plain(out),
                    "currency": "USD",
                    "source": f"genai-prices {version}",
                }


def _words(name: str) -> tuple[str, ...]:
    """ "Llama-3.3-70B-Instruct" and "llama3-70b" as words: (llama, 3.3, 70b, instruct), (llama, 3, 70b)."""
    words: list[str] = []
    for word in _NAMES.findall(name.lower().replace("_", "-")):
        match = re.fullmatch(r"([a-z]{2,})([0-9][0-9.]*)", word)
        words.extend(match.groups() if match else (word,))
    return tuple(w.strip(".") for w in words)


def _is_same(wanted: tuple[str, ...], offered: tuple[str, ...]) -> bool:
    """Whether the offered name holds every wanted word (3.3 counts as a 3) and nothing that makes it another model."""
    rest = list(offered)
    for word in wanted:
        hit = next((o for o in rest if o == word or (word[-1].isdigit() and o.startswith(word + "."))), None)
        if hit is None:
            return False
        rest.remove(hit)
    return all(word in _SAME_MODEL for word in rest)
