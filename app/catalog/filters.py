"""Filters of the catalog lists: a value of a closed vocabulary that nobody knows is refused with the nearest known.

An empty list would say "not sold", where the truth is a typo.
"""

from collections.abc import Iterable
from difflib import get_close_matches

from app.catalog import errors
from app.catalog.offers import PURCHASE_MODELS
from app.catalog.snapshot import Snapshot

_TERMS = {"reserved_1y": ("reserved", 12), "reserved_3y": ("reserved", 36)}
_ANYWHERE = ("any", "na")
_SHOWN = 3


def provider_filter(snapshot: Snapshot, name: str | None) -> str | None:
    """Return the id of a provider, its other names folded."""
    if name is None:
        return None
    known = {
        *snapshot.providers,
        *(offer.provider for offer in snapshot.offers.values()),
        *(shape.provider for shape in snapshot.node_shapes.values()),
        *(entry.provider for entry in snapshot.quarantine),
    }
    found = snapshot.provider_id(name)
    if found not in known:
        _refuse("provider", name, {*known, *snapshot.provider_aliases}, "GET /v1/catalog/facts/providers lists them.")
    return found


def accelerator_filter(snapshot: Snapshot, accelerator_id: str | None) -> str | None:
    """Return the id of an accelerator."""
    if accelerator_id is not None and accelerator_id not in snapshot.accelerators:
        _refuse("accelerator", accelerator_id, snapshot.accelerators, "GET /v1/catalog/accelerators lists them.")
    return accelerator_id


def region_filter(snapshot: Snapshot, name: str | None, *, provider: str | None, exact: bool) -> str | None:
    """Return a region code; ``any`` and ``na`` are ``global``.

    A question that names everything (``exact``) passes: its answer says where the thing is sold instead.
    """
    if name is None:
        return None
    found = "global" if name in _ANYWHERE else name
    known = {offer.region for offer in snapshot.offers.values()}
    if found not in known and not exact:
        near = {offer.region for offer in snapshot.offers.values() if provider in (None, offer.provider)}
        _refuse("region", name, near or known, "GET /v1/catalog/regions lists them.")
    return found


def purchase_filter(name: str | None, term_months: int | None) -> tuple[str | None, int | None]:
    """Return purchase model and term; ``reserved_1y`` and ``reserved_3y`` are short for both."""
    if name is None:
        return None, term_months
    if name in _TERMS:
        return _TERMS[name]
    if name not in PURCHASE_MODELS:
        known = [*PURCHASE_MODELS, *_TERMS]
        _refuse("purchase_model", name, known, f"Known are {', '.join(known)}.")
    return name, term_months


def word_filter(parameter: str, word: str | None, known: Iterable[str]) -> str | None:
    """Return a word of a small vocabulary in lower case, whatever the case it was asked in."""
    if word is None:
        return None
    words = {value.lower(): value for value in known}
    if word.lower() not in words:
        _refuse(parameter, word, words.values(), f"Known are {', '.join(sorted(words.values()))}.")
    return word.lower()


def _refuse(parameter: str, value: str, known: Iterable[str], where: str) -> None:
    spelled = {name.lower(): name for name in known}
    nearest = [spelled[name] for name in get_close_matches(value.lower(), spelled, n=_SHOWN, cutoff=0.4)]
    raise errors.unknown_filter(parameter, value, nearest, where)
