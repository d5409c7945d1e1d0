"""What the room asks of estimates: an answer whose money can be worked out again without the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

import app.engine
from app.catalog import service as catalog
from app.catalog.pricebooks import PriceBook
from app.catalog.snapshot import Snapshot
from app.engine.version import ENGINE_VERSION
from app.estimates import service as estimates
from app.estimates import studies
from app.estimates.schemas import EstimateRequest
from app.foundation.canonical import canonical_sha256, sha256_hex


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    """Items with ranked, priced options, and what they depend on.

    Parameters
    ----------
    items : sequence of mapping
        Each with ``id``, ``options`` and the recommended option first.
    engine_outputs : JSON value
        What can run, quantised; money follows from it, the spec and the pinned catalog alone.
    pins : mapping
        As :mod:`app.estimates.service` states them.
    """

    items: Sequence[Mapping[str, Any]]
    engine_outputs: Any
    fx: Sequence[Mapping[str, Any]]
    lifetime: Mapping[str, Any] | None
    currency: str
    pins: Mapping[str, Any]
    engine_version: str
    engine_build: str

    @property
    def as_of(self) -> date:
        """Day whose prices were taken."""
        return date.fromisoformat(self.pins["as_of"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculator:
    """The running engine over one catalog revision and one version of a tenant's price book."""

    snapshot: Snapshot
    book: PriceBook | None

    @property
    def engine_version(self) -> str:
        """Version of the engine that runs here."""
        return ENGINE_VERSION

    @property
    def engine_build(self) -> str:
        """Hash of the engine's source and of the fitted parameters of this catalog revision."""
        known = _builds.get(self.snapshot.content_sha256)
        if known is None:
            parts = {"source": _engine_source(), "parameters": canonical_sha256(dict(self.snapshot.calibration))}
            known = _builds[self.snapshot.content_sha256] = canonical_sha256(parts)
        return known

    def calculate(
        self, spec: Mapping[str, Any], *, as_of: date, today: date, keep: Mapping[str, estimates.Kept]
    ) -> Calculation:
        """Run engine and pricing; raises a ``Problem`` where the spec cannot be answered.

        ``as_of`` is the pricing day of a spec that names none; no day after ``today`` is taken. ``keep`` is the supply
        by item that has to be among the options.
        """
        answer = estimates.estimate(self.snapshot, _on_day(spec, as_of), today, self.book, keep)
        return self._calculation(answer.content, answer.engine_outputs, answer.pins)

    def price_again(
        self, spec: Mapping[str, Any], engine_outputs: Any, *, as_of: date, keep: Mapping[str, estimates.Kept]
    ) -> Calculation:
        """Work out the money of stored engine outputs, without the engine."""
        request = _on_day(spec, as_of)
        content = estimates.price(self.snapshot, request, engine_outputs, as_of, self.book, keep)
        pins = estimates.pins(self.snapshot, request, as_of, self.book)
        return self._calculation(content, engine_outputs, pins)

    def replay(self, spec: Mapping[str, Any], engine_outputs: Any, *, as_of: date) -> Any:
        """What the running engine says of the runs in stored outputs."""
        return estimates.replay(self.snapshot, _on_day(spec, as_of), engine_outputs)

    def improvements(
        self, spec: Mapping[str, Any], item_id: str, option: Mapping[str, Any], *, as_of: date
    ) -> list[dict[str, Any]]:
        """Changes to one option that save money or time, each worked out by the running engine, most money first."""
        request = _on_day(spec, as_of)
        item = next(item for item in request.items if item.id == item_id)
        return studies.advice_of(self.snapshot, request, item, option, as_of, self.book)

    def _calculation(self, content: Mapping[str, Any], engine_outputs: Any, pins: Mapping[str, Any]) -> Calculation:
        return Calculation(
            items=content["items"],
            engine_outputs=engine_outputs,
            fx=content["fx"],
            lifetime=content["lifetime"],
            currency=content["currency"],
            pins=pins,
            engine_version=self.engine_version,
            engine_build=self.engine_build,
        )


def calculator_for(
    connection: Connection,
    tenant_id: str,
    spec: Mapping[str, Any],
    *,
    catalog_revision: str | None = None,
    price_book_version: str | None = None,
) -> Calculator:
    """Read what a spec is priced with: the pinned catalog revision and price book, else what the spec names.

    ``price_book_version`` has the form of the pin, ``<id>@v<number>``.
    """
    request = EstimateRequest.model_validate(spec)
    version = None if price_book_version is None else int(price_book_version.rpartition("@v")[2])
    book = estimates.price_book_of(connection, tenant_id, request, version)
    revision = catalog_revision or request.catalog_revision
    return Calculator(snapshot=catalog.snapshot(connection, revision, pointer="/catalog_revision"), book=book)


def _on_day(spec: Mapping[str, Any], as_of: date) -> EstimateRequest:
    request = EstimateRequest.model_validate(spec)
    return request if request.as_of is not None else request.model_copy(update={"as_of": as_of})


# Engine build by catalog content: a process sees a handful of catalog revisions.
_builds: dict[str, str] = {}


@lru_cache(maxsize=1)
def _engine_source() -> dict[str, str]:
    root = Path(app.engine.__file__).parent
    return {path.relative_to(root).as_posix(): sha256_hex(path.read_bytes()) for path in sorted(root.rglob("*.py"))}
