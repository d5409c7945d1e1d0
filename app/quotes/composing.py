"""From a calculation to the content and columns of a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.estimates import service as estimates
from app.foundation.time_zones import is_zone
from app.quotes.calculation import Calculation
from app.quotes.content import Pins, Sealed, canonical_text, seal
from app.quotes.errors import bad_field
from app.quotes.keeping import Selections
from app.quotes.options import money, stale_lines
from app.quotes.policy import ApprovalPolicy
from app.quotes.validity import Validity, local_today


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """Content as it is stored, and what columns repeat of it."""

    content: Mapping[str, Any]
    sealed: Sealed
    engine_outputs_text: str
    validity: Validity
    complete: bool
    currency: str
    net_total: Decimal | None
    catalog_revision: str
    engine_version: str


def compose(
    spec: Mapping[str, Any],
    calculation: Calculation,
    *,
    validity: Validity,
    tenant_id: str,
    selections: Selections | None = None,
    engine: tuple[str, str] | None = None,
) -> Composed:
    """Put the parts of a revision together and hash them.

    ``engine`` names version and build of the engine that made the outputs, where it is not the running one.
    """
    outputs = canonical_text(calculation.engine_outputs)
    recommended = {item["id"]: item["selected_option_id"] for item in calculation.items}
    items = _with_selections(calculation.items, selections or {})
    chosen = {item["id"]: item["selected_option_id"] for item in items}
    pins = _pins(calculation, outputs.sha256, engine)
    totals, completeness = estimates.content_totals(items, calculation.currency, pins.rounding_policy, chosen)
    content = {
        "spec": dict(spec),
        "items": items,
        "totals": totals,
        "fx": list(calculation.fx),
        # Worked out for the recommended options; of others it would say something untrue.
        "lifetime": calculation.lifetime if chosen == recommended else None,
        "pins": pins.as_content(),
        "validity": validity.as_content(),
        "parties": {"seller": tenant_id, "customer": spec.get("customer")},
        "completeness": {**completeness, "stale_lines": stale_lines(items, calculation.as_of)},
    }
    return Composed(
        content=content,
        sealed=seal(content),
        engine_outputs_text=outputs.text,
        validity=validity,
        complete=completeness["complete"],
        currency=calculation.currency,
        net_total=None if totals is None else money(totals["net"]).amount,
        catalog_revision=pins.catalog_revision,
        engine_version=pins.engine_version,
    )


def _pins(calculation: Calculation, outputs_sha256: str, engine: tuple[str, str] | None) -> Pins:
    version, build = engine or (calculation.engine_version, calculation.engine_build)
    pinned = calculation.pins
    return Pins(
        as_of=pinned["as_of"],
        catalog_revision=pinned["catalog_revision"],
        catalog_content_sha256=pinned["catalog_content_sha256"],
        price_book_version=pinned["price_book_version"],
        fx_snapshot=pinned["fx_snapshot"],
        tax_rules_version=pinned["tax_rules_version"],
        engine_version=version,
        engine_build=build,
        engine_outputs_sha256=outputs_sha256,
        rounding_policy=pinned["rounding_policy"],
    )


def with_validity(content: Mapping[str, Any], validity: Validity) -> tuple[dict[str, Any], Sealed]:
    """Give the same content with another period, and its new hash."""
    changed = {**content, "validity": validity.as_content()}
    return changed, seal(changed)


def _with_selections(items: Sequence[Mapping[str, Any]], selections: Selections) -> list[dict[str, Any]]:
    check_selections(items, selections)
    return [{**item, "selected_option_id": selections.get(item["id"], item["selected_option_id"])} for item in items]


def check_selections(items: Sequence[Mapping[str, Any]], selections: Selections) -> None:
    """Let selections pass that name an item and one of its options; refuse others with a pointer."""
    known = {item["id"]: [option["id"] for option in item["options"]] for item in items}
    for item_id, option_id in selections.items():
        if item_id not in known:
            raise bad_field(
                f"/selections/{item_id}", "unknown_item", f"There is no item {item_id!r}. Items: {', '.join(known)}."
            )
        if option_id is not None and option_id not in known[item_id]:
            raise bad_field(
                f"/selections/{item_id}",
                "unknown_option",
                f"Item {item_id!r} has no option {option_id!r}. Options: {', '.join(known[item_id]) or 'none'}.",
            )


def check_zone(timezone: str, at: str) -> None:
    """Refuse what is no IANA time zone."""
    if not is_zone(timezone):
        raise bad_field(
            f"{at}/timezone", "unknown_time_zone", f"{timezone!r} is not an IANA time zone such as Asia/Shanghai."
        )


def validity_for(
    terms: Mapping[str, Any],
    policy: ApprovalPolicy,
    *,
    now: datetime,
    at: str = "/terms",
) -> Validity:
    """Work out the period: as the terms say, else the policy's usual length from today on (in the terms' zone)."""
    timezone = terms.get("timezone", "UTC")
    check_zone(timezone, at)
    today = local_today(now, timezone)
    given = terms.get("valid_through")
    through = date.fromisoformat(given) if given else today + timedelta(days=policy.default_validity_days)
    longest = today + timedelta(days=policy.longest_validity_days)
    if through < today:
        raise bad_field(f"{at}/valid_through", "in_the_past", f"{through} is over. The earliest last day is {today}.")
    if through > longest:
        raise bad_field(
            f"{at}/valid_through",
            "too_long",
            f"Offers stand for {policy.longest_validity_days} days at most. The latest last day is {longest}.",
        )
    return Validity(valid_from_on=today, valid_through_on=through, timezone=timezone)
