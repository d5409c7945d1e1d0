"""Does a stored revision still say what it said: its bytes, its money, and its engine figures, each on its own."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import orjson

from app.foundation.canonical import sha256_hex
from app.foundation.problems import Problem
from app.quotes.calculation import Calculation, Calculator
from app.quotes.composing import Composed, compose
from app.quotes.content import Pins, canonical_text, is_intact, open_content
from app.quotes.keeping import selections_of, supply_of
from app.quotes.mergepatch import changed_pointers
from app.quotes.options import amount_json, selected_options
from app.quotes.records import Revision
from app.quotes.validity import stored_validity

MATCH, MISMATCH, UNAVAILABLE = "match", "mismatch", "engine-unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What verification found.

    ``match`` holds when every part that could be replayed came out the same, to the byte.
    """

    stored_sha256: str
    recomputed_sha256: str
    content: str
    money: str
    engine: str
    differences: tuple[str, ...]
    pinned_engine: str
    running_engine: str
    same_build: bool

    @property
    def match(self) -> bool:
        """Whether nothing that could be checked differs."""
        return MISMATCH not in (self.content, self.money, self.engine)

    def as_json(self) -> dict[str, Any]:
        """Write the answer of ``verify``."""
        return {
            "match": self.match,
            "stored_sha256": self.stored_sha256,
            "recomputed_sha256": self.recomputed_sha256,
            "parts": {"content": self.content, "money": self.money, "engine": self.engine},
            "differences": list(self.differences),
            "engine": {
                "pinned": self.pinned_engine,
                "running": self.running_engine,
                "same_build": self.same_build,
            },
        }


def verify(revision: Revision, calculator: Calculator, *, engine_required: bool = False) -> Verdict:
    """Replay a revision from what it stores.

    The engine runs again where it has the pinned version: a version's figures do not change, whatever its build.

    Raises
    ------
    Problem
        ``engine-unavailable`` when the engine's part is required and the pinned engine is not the running one.
    """
    try:
        content = open_content(revision.content_text)
        pins = Pins.from_content(content["pins"])
        outputs = orjson.loads(revision.engine_outputs_text)
        offered = (content["totals"] or {}).get("net")
    except (ValueError, KeyError, TypeError, AttributeError):
        return _unreadable(revision, calculator)
    engine_runs = pins.engine_version == calculator.engine_version
    if engine_required and not engine_runs:
        raise _engine_unavailable(pins, calculator)
    intact = is_intact(revision.content_text, revision.head.content_sha256) and (
        sha256_hex(revision.engine_outputs_text.encode()) == pins.engine_outputs_sha256
    )
    as_of = date.fromisoformat(pins.as_of)
    keep = supply_of(selected_options(content["items"]))
    try:
        replayed = calculator.price_again(content["spec"], outputs, as_of=as_of, keep=keep)
        recomputed = _recompose(revision, content, pins, replayed)
    except (ValueError, KeyError, TypeError, AttributeError):
        if intact:
            raise
        return _unreadable(revision, calculator)
    engine = UNAVAILABLE
    if engine_runs:
        fresh = calculator.replay(content["spec"], outputs, as_of=as_of)
        same = canonical_text(fresh).text == revision.engine_outputs_text
        engine = MATCH if same else MISMATCH
    # the total that lists show stands beside the content
    listed = amount_json(revision.head.net_total, revision.head.currency) == offered
    money = MATCH if recomputed.sealed.sha256 == revision.head.content_sha256 else MISMATCH
    return Verdict(
        stored_sha256=revision.head.content_sha256,
        recomputed_sha256=recomputed.sealed.sha256,
        content=MATCH if intact and listed else MISMATCH,
        money=money,
        engine=engine,
        differences=(
            *(() if listed else ("/net_total",)),
            *(() if intact and money == MATCH else changed_pointers(content, open_content(recomputed.sealed.text))),
        ),
        pinned_engine=f"{pins.engine_version}+{pins.engine_build[:12]}",
        running_engine=f"{calculator.engine_version}+{calculator.engine_build[:12]}",
        same_build=(pins.engine_version, pins.engine_build) == (calculator.engine_version, calculator.engine_build),
    )


def _unreadable(revision: Revision, calculator: Calculator) -> Verdict:
    """What is stored cannot be read any more, so nothing of it can be replayed."""
    running = f"{calculator.engine_version}+{calculator.engine_build[:12]}"
    return Verdict(
        stored_sha256=revision.head.content_sha256,
        recomputed_sha256=sha256_hex(revision.content_text.encode()),
        content=MISMATCH,
        money=MISMATCH,
        engine=UNAVAILABLE,
        differences=("",),
        pinned_engine=revision.head.engine_version,
        running_engine=running,
        same_build=False,
    )


def _recompose(revision: Revision, content: Mapping[str, Any], pins: Pins, replayed: Calculation) -> Composed:
    return compose(
        content["spec"],
        replayed,
        validity=stored_validity(content),
        tenant_id=revision.head.tenant_id,
        selections=selections_of(content),
        engine=(pins.engine_version, pins.engine_build),
    )


def _engine_unavailable(pins: Pins, calculator: Calculator) -> Problem:
    return Problem(
        "engine-unavailable",
        f"The figures were made by engine {pins.engine_version}; this service runs {calculator.engine_version}. The "
        "stored result still stands; verify without requiring the engine to replay its money and its hash.",
        engine_version=pins.engine_version,
        running_engine_version=calculator.engine_version,
    )
