"""From a calculation to the content and columns of a revision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from app.quotes.calculation import Calculation
from app.quotes.content import Pins, Sealed, canonical_text, seal
from app.quotes.errors import bad_field
from app.quotes.options import money, selected_options, stale_lines, sum_totals
from app.quotes.policy import ApprovalPolicy
from app.quotes.validity import Validity, is_zone, local_today


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
    selections: Mapping[str, str] | None = None,
    engine: tuple[str, str] | None = None,
) -> Composed:
    """Put the parts of a revision together and hash them.

    ``engine`` names version and build of the engine that made the outputs, where it is not the running one.
    """
    outputs = canonical_text(calculation.engine_outputs)
    items = _with_selections(calculation.items, selections or {})
    chosen = [option for option in selected_options(items).values() if option is not None]
    totals = sum_totals(chosen, calculation.currency) if len(chosen) == len(items) else None
    unpriced = unpriced_parts(items, calculation.incomplete)
    content = {
        "spec": dict(spec),
        "items": items,
        "totals": None if unpriced else totals,
        "pins": _pins(calculation, outputs.sha256, engine).as_content(),
        "validity": validity.as_content(),
        "parties": {"seller": tenant_id, "customer": spec.get("customer")},
        "completeness": {
            "complete": totals is not None and not unpriced,
            "unpriced_lines": unpriced,
            "stale_lines": stale_lines(items, calculation.as_of),
        },
    }
    return _composed(content, outputs.text, validity, calculation)


def _pins(calculation: Calculation, outputs_sha256: str, engine: tuple[str, str] | None) -> Pins:
    version, build = engine or (calculation.engine_version, calculation.engine_build)
    return Pins(
        as_of=calculation.as_of.isoformat(),
        catalog_revision=calculation.catalog_revision,
        price_book_version=calculation.price_book_version,
        fx_snapshot=calculation.fx_snapshot,
        tax_rules_version=calculation.tax_rules_version,
        engine_version=version,
        engine_build=build,
        engine_outputs_sha256=outputs_sha256,
        rounding_policy=calculation.rounding_policy,
    )


def _composed(content: Mapping[str, Any], outputs_text: str, validity: Validity, calculation: Calculation) -> Composed:
    totals = content["totals"]
    return Composed(
        content=content,
        sealed=seal(content),
        engine_outputs_text=outputs_text,
        validity=validity,
        complete=content["completeness"]["complete"],
        currency=calculation.currency,
        net_total=None if totals is None else money(totals["net"]).amount,
        catalog_revision=calculation.catalog_revision,
        engine_version=calculation.engine_version,
    )


def with_validity(content: Mapping[str, Any], validity: Validity) -> tuple[dict[str, Any], Sealed]:
    """Give the same content with another period, and its new hash."""
    changed = {**content, "validity": validity.as_content()}
    return changed, seal(changed)


def unpriced_parts(items: Sequence[Mapping[str, Any]], reported: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """List what keeps the selected options from having a total, each with its price outcome."""
    parts: list[dict[str, Any]] = []
    for item_id, option in selected_options(items).items():
        if option is None:
            reasons = [dict(row) for row in reported if row.get("item") == item_id]
            parts += reasons or [
                {"item": item_id, "line": None, "outcome": "not_offered", "reason": "no option has a price"}
            ]
            continue
        parts += [
            {"item": item_id, "line": line["id"], "outcome": line["status"], "reason": line.get("reason")}
            for line in option["cost"]["lines"]
            if line["status"] != "priced"
        ]
    return parts


def _with_selections(items: Sequence[Mapping[str, Any]], selections: Mapping[str, str]) -> list[dict[str, Any]]:
    chosen = check_selections(items, selections)
    return [{**item, "selected_option_id": chosen.get(item["id"], item["selected_option_id"])} for item in items]


def check_selections(items: Sequence[Mapping[str, Any]], selections: Mapping[str, str]) -> Mapping[str, str]:
    """Let selections pass that name an item and one of its options; refuse others with a pointer."""
    known = {item["id"]: [option["id"] for option in item["options"]] for item in items}
    for item_id, option_id in selections.items():
        if item_id not in known:
            raise bad_field(
                f"/selections/{item_id}", "unknown_item", f"There is no item {item_id!r}. Items: {', '.join(known)}."
            )
        if option_id not in known[item_id]:
            raise bad_field(
                f"/selections/{item_id}",
                "unknown_option",
                f"Item {item_id!r} has no option {option_id!r}. Options: {', '.join(known[item_id]) or 'none'}.",
            )
    return selections


def validity_for(
    terms: Mapping[str, Any],
    policy: ApprovalPolicy,
    *,
    now: datetime,
    at: str = "/terms",
) -> Validity:
    """Work out the period: as the terms say, else the policy's usual length from today on (in the terms' zone)."""
    timezone = terms.get("timezone", "UTC")
    if not is_zone(timezone):
        raise bad_field(
            f"{at}/timezone", "unknown_time_zone", f"{timezone!r} is not an IANA time zone such as Asia/Shanghai."
        )
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
