"""Stored revisions made up with the pricing room's own arithmetic, for what the catalog has no offers or taxes for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from app.estimates import service as estimates
from app.pricing.line_items import DocumentDiscount, priced_line, with_contingency, with_discount
from app.pricing.money import Money
from app.pricing.rounding import POLICIES, TaxRule
from app.pricing.totals import totals
from app.pricing.waterfall import Adjustments, waterfall
from app.quotes.content import seal
from app.quotes.lifecycle import Status
from app.quotes.options import money
from app.quotes.records import Acceptance, Quote, Revision, RevisionHead
from app.quotes.service import Shown
from app.quotes.validity import Validity

REVISION_ID = "rev_0123456789abcdef0123456789abcdef"
QUOTE_ID = "quo_0123456789abcdef0123456789abcdef"
ISSUED_AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Raw:
    """One line before pricing."""

    quantity: str
    list_price: str
    unit: str = "node_hour"
    charge: str = "usage"
    kind: str = "compute"
    en: str = "Accelerator time, training"


@dataclass(frozen=True, kw_only=True)
class RawItem:
    """One item before pricing."""

    lines: Sequence[Raw]
    id: str = "pretrain"
    months: str | None = None
    label: str = "8 x H100, aws p5.48xlarge in us-east-1, on demand"
    purchase_model: str = "on_demand"
    off: str | None = None
    duration_hours: float | None = 88.7
    rule: str = "list"


def shown(
    items: Sequence[RawItem],
    *,
    currency: str = "USD",
    markup: str = "0",
    discount: str = "0",
    contingency: str = "0",
    tax: str | None = "0.06",
    inclusive: bool = False,
    policy: str = "line_half_up/tax_by_rate",
    status: Status = Status.ISSUED,
    title: str | None = "Risk-control model",
    customer: Mapping[str, Any] | None = None,
    timezone: str = "Asia/Shanghai",
    acceptance: Acceptance | None = None,
) -> Shown:
    """A stored revision."""
    rules = () if tax is None else (_rule(tax, inclusive),)
    adjustments = Adjustments(
        negotiated_off=Decimal(discount), negotiated_source="terms.discount", markup=Decimal(markup),
        markup_source="terms.markup",
    )  # fmt: skip
    built = [_item(item, currency, adjustments, Decimal(contingency), policy, rules) for item in items]
    added, completeness = estimates.content_totals(built, currency, policy)
    period = Validity(valid_from_on=date(2026, 12, 1), valid_through_on=date(2026, 12, 31), timezone=timezone)
    sealed = seal(
        {
            "spec": {"title": title, "terms": {"markup": markup, "currency": currency}, "items": []},
            "items": built,
            "totals": added,
            "fx": [],
            "lifetime": None,
            "pins": {"catalog_revision": "cat_x", "engine_version": "1.1.0", "rounding_policy": policy},
            "validity": period.as_content(),
            "parties": {"seller": "ten_seller", "customer": customer or {"external_ref": "acme", "name": "ACME"}},
            "completeness": completeness,
        }
    )
    head = _head(sealed.sha256, status, currency, None if added is None else money(added["net"]).amount, period)
    return Shown(
        quote=_quote(head, None if head.issued_at is None else "Q-2026-000007"),
        revision=Revision(head=head, content_text=sealed.text, engine_outputs_text="{}"),
        acceptance=acceptance,
        now=ISSUED_AT,
    )


def _rule(rate: str, inclusive: bool) -> TaxRule:
    return TaxRule(
        jurisdiction="CN", category="standard", rate=Decimal(rate), inclusive=inclusive,
        valid_from=date(2016, 5, 1), valid_to=None, source="VAT: test",
    )  # fmt: skip


def _item(
    item: RawItem, currency: str, adjustments: Adjustments, contingency: Decimal, policy: str, rules: Any
) -> dict[str, Any]:
    lines = tuple(
        priced_line(
            number=10 * (i + 1),
            kind=raw.kind,
            charge=raw.charge,
            description={"en": raw.en, "zh-CN": "加速器时长：训练"},
            billed=Decimal(raw.quantity),
            unit=raw.unit,
            priced=waterfall(Money.parse(raw.list_price, currency), Decimal(raw.quantity), adjustments),
            hours_basis="730" if raw.charge == "recurring" else "contract_hours",
            evidence={"offer_id": "ofr_1", "price_id": "prc_1", "rule": item.rule, "stale": False},
        )
        for i, raw in enumerate(item.lines)
    )
    if item.off is not None:
        off = DocumentDiscount(amount=Money.parse(item.off, currency), charge="usage", source="campaign")
        lines = with_discount(lines, off)
    lines = with_contingency(lines, contingency, "terms.contingency")
    months = None if item.months is None else Decimal(item.months)
    found = totals(lines, currency, POLICIES[policy], rules, months)
    net = found.net.as_json()
    option = {
        "id": "opt_1",
        "label": {"en": item.label, "zh-CN": item.label},
        "offer": {
            "id": "ofr_0123456789abcdef0123456789abcdef", "provider": "aws", "instance_type": "p5.48xlarge",
            "region": "us-east-1", "purchase_model": item.purchase_model, "term_months": None,
        },
        "configuration": {"accelerators": 8},
        "performance": {
            "duration_hours": None if item.duration_hours is None else {"p50": item.duration_hours}
        },
        "cost": {
            "lines": [line.as_json() for line in lines],
            "totals": found.as_json(),
            "net": {"p10": net, "p50": net, "p90": net},
        },
        "completeness": {"complete": True, "unpriced_lines": [], "stale_lines": []},
    }  # fmt: skip
    return {"id": item.id, "kind": "training", "options": [option], "selected_option_id": "opt_1"}


def _head(sha256: str, status: Status, currency: str, net: Decimal | None, period: Validity) -> RevisionHead:
    issued = status not in (Status.DRAFT, Status.IN_REVIEW, Status.APPROVED, Status.CANCELLED)
    return RevisionHead(
        tenant_id="ten_seller", id=REVISION_ID, quote_id=QUOTE_ID, n=2, edit=1, status=status, pricing="new",
        based_on_n=None, amends_n=None, content_sha256=sha256, complete=True, currency=currency, net_total=net,
        valid_from_on=period.valid_from_on, valid_through_on=period.valid_through_on, timezone=period.timezone,
        expires_at=period.expires_at, catalog_revision="cat_x", engine_version="1.1.0", authors=("seller",), edits=(),
        submitted_sha256=None, review=None, approval=None, created_by="seller", created_at=ISSUED_AT,
        updated_at=ISSUED_AT, issued_by="seller" if issued else None, issued_at=ISSUED_AT if issued else None,
        closed_by=None, closed_at=None, closed_reason=None,
    )  # fmt: skip


def _quote(head: RevisionHead, number: str | None) -> Quote:
    return Quote(
        tenant_id=head.tenant_id, id=head.quote_id, number=number, title=None, customer_ref="acme",
        customer_name="ACME", external_ref=None, owner="seller", tags=(), status=head.status, current_n=head.n,
        latest_n=head.n, expires_at=head.expires_at, currency=head.currency, net_total=head.net_total, version=1,
        created_by="seller", created_at=ISSUED_AT, updated_at=ISSUED_AT,
    )  # fmt: skip


TRAINING = RawItem(
    lines=(
        Raw(quantity="31.43008", list_price="104.915952380952"),
        Raw(quantity="0.019358320", list_price="104.915952380952", kind="failures",
            en="Accelerator time lost to failures and restarts"),
        Raw(quantity="16.06", list_price="0.085", unit="gb", kind="egress", en="Data leaving the provider"),
        Raw(quantity="0.41", list_price="0.12", unit="gb_month", kind="storage", en="Storage of checkpoints"),
    )
)  # fmt: skip
SERVING = RawItem(
    id="chat",
    months="12",
    duration_hours=None,
    purchase_model="reserved",
    lines=(
        Raw(quantity="730", list_price="2.19545112782", charge="recurring", en="The fleet, a month"),
        Raw(quantity="14600", list_price="2.19545112782", charge="one_off", kind="commitment",
            en="Committed hours beyond the service's months"),
    ),
)  # fmt: skip
LONG = RawItem(lines=tuple(Raw(quantity=f"{1 + i}.333333333", list_price=f"0.{i + 1:03d}715") for i in range(200)))
OWNED = RawItem(
    rule="owned",
    purchase_model="owned",
    lines=tuple(
        Raw(quantity="2514.4064", list_price=price, unit="accelerator_hour", kind="ownership", en=part)
        for part, price in (
            ("Staff", "0.314159265358"),
            ("Cost of capital", "0.271828182845"),
            ("Colocation", "0.161803"),
        )
    ),
)
OWNED_BY_THE_MONTH = replace(OWNED, months="6", lines=tuple(replace(raw, charge="recurring") for raw in OWNED.lines))
# Whole yen and thousandths of a dinar: as in the table of currencies.
CURRENCIES = ("USD", "CNY", "JPY", "KWD")


def variants() -> dict[str, Shown]:
    """Every kind of revision that a format has to hold."""
    both = (TRAINING, SERVING)
    found = {f"both {currency}": shown(both, currency=currency, contingency="0.1") for currency in CURRENCIES}
    found |= {f"200 lines {currency}": shown((LONG,), currency=currency) for currency in CURRENCIES}
    found |= {f"included tax {currency}": shown(both, currency=currency, inclusive=True) for currency in CURRENCIES}
    found |= {
        "one item": shown((TRAINING,)),
        "no tax known": shown(both, tax=None, contingency="0.1"),
        "zero rated": shown(both, tax="0"),
        "tax per line": shown((LONG,), policy="line_half_up/tax_per_line"),
        "discount and markup": shown(both, discount="0.05", markup="0.15", contingency="0.1"),
        "discount": shown(both, discount="0.05"),
        "fixed discount": shown((RawItem(lines=TRAINING.lines, off="33.33"),), contingency="0.1"),
        "all of it": shown(both, discount="0.07", markup="0.15", contingency="0.125", inclusive=True, currency="CNY"),
        "included tax per line": shown((LONG,), policy="line_half_up/tax_per_line", inclusive=True),
        "draft": shown(both, status=Status.DRAFT),
        "owned": shown((OWNED,), markup="0.15", contingency="0.1"),
        "owned by the month": shown((OWNED_BY_THE_MONTH,)),
    }
    return found


VARIANTS = variants()
