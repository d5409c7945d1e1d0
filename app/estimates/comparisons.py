"""Questions that set options against each other: rent or own, serve or call an API, serve for years or train once."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.estimates.bill import Run
from app.estimates.costs import Cost
from app.estimates.ownership import OwnedCost
from app.estimates.purchase import HourlyPrice
from app.estimates.terms import PricedTerms
from app.pricing.commitment import rent_or_own
from app.pricing.money import CONTEXT, Money, plain, quantity_from_float

MILLION = Decimal(1_000_000)
DIGITS = 6


def rent_or_own_rows(
    priced: Sequence[tuple[Run, HourlyPrice | OwnedCost, str]], terms: PricedTerms
) -> list[dict[str, Any]]:
    """Per accelerator that is both rented and owned among the options: where owning starts to be cheaper.

    Parameters
    ----------
    priced : sequence of (run, price, option id)
    """
    rows = []
    seen: set[str] = set()
    for run, owned, option_id in priced:
        accelerator = run["accelerator"]
        if not isinstance(owned, OwnedCost) or accelerator in seen:
            continue
        rents = [
            (terms.converted(price.net).per(Decimal(price.offer.accelerator_count)), other_id)
            for other, price, other_id in priced
            if isinstance(price, HourlyPrice) and other["accelerator"] == accelerator
        ]
        if not rents:
            continue
        seen.add(accelerator)
        rent, rented_id = min(rents, key=lambda r: (r[0].amount, r[1]))
        even = rent_or_own(owned.hour, rent)
        recovered = even.months_to_recover_capital
        rows.append(
            {
                "accelerator": accelerator,
                "owned_option_id": option_id,
                "rented_option_id": rented_id,
                "owned_per_accelerator_hour": owned.hour.per_accelerator_hour.as_json(),
                "rented_per_accelerator_hour": rent.as_json(),
                "capital_per_accelerator": owned.hour.capital.as_json(),
                "break_even_utilization": _short(even.utilization),
                "months_to_recover_capital": None if recovered is None else _short(recovered),
                "owning_can_pay": even.utilization <= 1,
            }
        )
    return rows


def serve_or_call(
    run: Run, cost: Cost | None, api_prices: Sequence[Mapping[str, Any]], terms: PricedTerms
) -> list[dict[str, Any]]:
    """The same traffic at public API token prices beside the fleet's monthly cost, and the volume where they meet."""
    if cost is None or cost.totals is None or run["kind"] != "inference" or not terms.has_rate("USD"):
        return []
    own = cost.totals.recurring_monthly
    monthly = {name: quantity_from_float(value) for name, value in run["monthly"].items()}
    rows = []
    for price in api_prices:
        at_api = _at_api(price, monthly, terms)
        if at_api.amount == 0 or monthly["requests"] == 0:
            continue
        per_request = at_api.per(monthly["requests"])
        rows.append(
            {
                **price,
                "monthly": at_api.as_json(),
                "own_monthly": own.as_json(),
                "cheaper": "own" if own < at_api else "api",
                "break_even_requests_per_month": _short(CONTEXT.divide(own.amount, per_request.amount)),
                "break_even_share_of_traffic": _short(CONTEXT.divide(own.amount, at_api.amount)),
            }
        )
    return rows


def _at_api(price: Mapping[str, Any], monthly: Mapping[str, Decimal], terms: PricedTerms) -> Money:
    total = Money.zero(terms.currency)
    for side in ("input", "output"):
        unit = terms.converted(Money.parse(price[side], price["currency"]))
        total = total + unit.times(CONTEXT.divide(monthly[f"{side}_tokens"], MILLION))
    return total


def lifetime(items: Sequence[Mapping[str, Any]], terms: PricedTerms) -> dict[str, Any] | None:
    """Inference over its months against training, of the recommended options; None without both."""
    nets: dict[str, Decimal] = {}
    months: list[str] = []
    for item in items:
        option = next((o for o in item["options"] if o["id"] == item["selected_option_id"]), None)
        if option is None or option["cost"]["totals"] is None:
            return None
        totals = option["cost"]["totals"]
        nets[item["kind"]] = nets.get(item["kind"], Decimal(0)) + Decimal(totals["net"]["amount"])
        months.extend([totals["tco_horizon_months"]] if totals["tco_horizon_months"] else [])
    if len(nets) < 2 or nets["training"] == 0:
        return None
    return {
        "training_net": terms.settled(nets["training"]).as_json(),
        "inference_net": terms.settled(nets["inference"]).as_json(),
        "months": sorted(set(months)),
        "lifetime_inference_over_training": _short(CONTEXT.divide(nets["inference"], nets["training"])),
    }


def _short(number: Decimal) -> str:
    """Six significant digits."""
    return plain(number.quantize(Decimal(1).scaleb(number.adjusted() - DIGITS + 1), context=CONTEXT))
