"""Purchase models as sources abbreviate them, opened into model, product, term and payment."""

from dataclasses import dataclass

from app.catalog.imports.staged import RowError


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """How something is bought."""

    model: str
    product: str = "standard"
    term_months: int = 0
    payment_option: str = "none"


_PLAIN = {
    "on_demand": Purchase(model="on_demand"),
    "spot": Purchase(model="spot"),
    "marketplace": Purchase(model="marketplace"),
    "reserved_1y": Purchase(model="reserved", term_months=12, payment_option="unstated"),
    "reserved_3y": Purchase(model="reserved", term_months=36, payment_option="unstated"),
}


def read_purchase(text: str, citation: str, provider: str, product: str, term: str, payment: str) -> Purchase:
    """Read a purchase model and its optional details.

    ``committed`` is what trackers call several different products; which one, only the source text tells, and a
    source that does not tell is refused (one tracker sold DWS as a 36-month term).
    """
    name = text.strip().lower()
    plain = _committed(citation) if name == "committed" and not product else _PLAIN.get(name)
    if plain is None and name in ("reserved", "capacity_block", "owned"):
        plain = Purchase(model=name)
    if plain is None:
        raise RowError("unknown_purchase_model", f"{text!r} does not say how it is bought")
    months = plain.term_months
    if term.strip():
        if not term.strip().isdigit():
            raise RowError("malformed_term", f"term_months {term!r} is not a whole number of months")
        months = int(term)
    if plain.model == "reserved" and months < 1:
        raise RowError("missing_term", "a reserved price needs term_months")
    return Purchase(
        model=_folded_model(plain.model, provider),
        product=product.strip() or _product_of(plain, citation),
        term_months=months if plain.model == "reserved" else 0,
        payment_option=payment.strip() or plain.payment_option,
    )


def _folded_model(model: str, provider: str) -> str:
    return "marketplace" if model == "on_demand" and provider == "vast" else model


def _product_of(plain: Purchase, citation: str) -> str:
    if "savings plan" in citation:
        return "savings_plan"
    if "reserved/savings" in citation:
        return "reserved_or_savings_plan"
    if "bare-metal price per year" in citation:
        return "bare_metal_annual"
    return plain.product


def _committed(citation: str) -> Purchase:
    text = citation.lower()
    if "capacityblocks" in text:
        return Purchase(model="capacity_block", product="capacity_block", payment_option="all_upfront")
    if "6-month" in text:
        return Purchase(model="reserved", product="commitment", term_months=6, payment_option="unstated")
    if "dws defined-duration" in text:
        return Purchase(model="capacity_block", product="dws_defined_duration", payment_option="unstated")
    if "dws calendar" in text:
        return Purchase(model="capacity_block", product="dws_calendar", payment_option="unstated")
    raise RowError("ambiguous_commitment", "'committed' without a product or a source that names one")
