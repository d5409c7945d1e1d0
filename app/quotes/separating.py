"""Telling engine and spec apart where both changed: the earlier job once more, on the later engine and catalog."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection

from app.foundation.problems import Problem
from app.quotes.calculation import Calculation, Calculator
from app.quotes.comparing import compare, engine_of, job_sha256
from app.quotes.content import open_content
from app.quotes.drafting import Prepared
from app.quotes.keeping import supply_of
from app.quotes.options import Json, selected_options
from app.quotes.reading import pinned_calculator
from app.quotes.records import Revision

Pair = tuple[Json, Json, Calculator]
Named = tuple[Revision, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Revisions to compare, with what is needed to tell engine and spec apart; read from the database at once."""

    revisions: Sequence[Named]
    pairs: Sequence[Pair | None]


def read_sides(connection: Connection, revisions: Sequence[Named]) -> Sides:
    """Read the calculator of each later neighbour whose engine and spec both differ from the earlier one's."""
    pairs = [_pair(connection, before, after) for (before, _), (after, _) in pairwise(revisions)]
    return Sides(revisions=revisions, pairs=pairs)


def compare_sides(sides: Sides, *, with_costs: bool) -> dict[str, Any]:
    """Compare what was read; slow where an engine runs again, touches no database."""
    return compare(sides.revisions, with_costs=with_costs, between=[_between(pair) for pair in sides.pairs])


def _pair(connection: Connection, before: Revision, after: Revision) -> Pair | None:
    old, new = open_content(before.content_text), open_content(after.content_text)
    if job_sha256(old) == job_sha256(new) or engine_of(old) == engine_of(new):
        return None
    return old, new, pinned_calculator(connection, after)


def _between(pair: Pair | None) -> Calculation | None:
    if pair is None:
        return None
    old, new, calculator = pair
    if new["pins"]["engine_version"] != calculator.engine_version:
        return None
    return _earlier_job(old, calculator, as_of=date.fromisoformat(new["pins"]["as_of"]))


def between_draft(before: Revision, prepared: Prepared, calculator: Calculator) -> Calculation | None:
    """Run the job of an earlier revision on the engine and catalog of a new draft, where both differ."""
    old, made = open_content(before.content_text), prepared.calculation
    version, build = prepared.engine or (made.engine_version, made.engine_build)
    if job_sha256(old) == job_sha256({"spec": prepared.spec}) or engine_of(old) == f"{version}+{build}":
        return None
    return None if prepared.engine else _earlier_job(old, calculator, as_of=made.as_of)


def _earlier_job(before: Json, calculator: Calculator, *, as_of: date) -> Calculation | None:
    """Calculate what a revision asked for; None where that cannot be answered any more."""
    spec = {**before["spec"], "as_of": None, "catalog_revision": None}
    keep = supply_of(selected_options(before["items"]))
    try:
        return calculator.calculate(spec, as_of=as_of, today=as_of, keep=keep)
    except Problem:
        return None
