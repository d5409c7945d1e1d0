"""What an owned accelerator-hour costs: capital, power, place and people, each figure shown (TCO).

Monthly cost per accelerator over the hours it does useful work. Capital follows an annuity with a residual value;
power is what the meter reads (load x PUE); a colocation contract is paid for provisioned kilowatts, whatever runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from app.pricing.errors import PricingError
from app.pricing.money import CONTEXT, ONE, ZERO, Money, total
from app.pricing.outcome import Unpriced
from app.pricing.waterfall import check_share

# 8,760 hours of a common year over twelve months; the basis "730" of every month in this module
HOURS_PER_MONTH = Decimal(730)
MONTHS_PER_YEAR = Decimal(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipPrices:
    """Prices behind an owned accelerator, one currency; None = not known, which is an answer and not zero.

    Parameters
    ----------
    server : Money or None
        One server or rack.
    accelerators_per_server : int
    storage_per_accelerator : Money or None
        Capital for shared storage; zero only if the owner says there is none.
    electricity_per_kwh : Money or None
    colocation_per_kw_month : Money or None
        Space, cooling and power provisioning, electricity apart.
    staff_per_accelerator_month : Money or None
    """

    server: Money | None
    accelerators_per_server: int
    storage_per_accelerator: Money | None
    electricity_per_kwh: Money | None
    colocation_per_kw_month: Money | None
    staff_per_accelerator_month: Money | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnershipTerms:
    """Rates and ratios of ownership, all explicit.

    Parameters
    ----------
    network_share : Decimal
        Share of the network in the cluster's capital (servers + network + storage).
    spares_share : Decimal
        Spare parts bought with the servers, as a share of the server price.
    depreciation_months : int
    residual_share : Decimal
        Value left at the end, as a share of the capital.
    cost_of_capital : Decimal
        Per year, nominal; 0 = straight-line depreciation only.
    provisioned_kw_per_accelerator : Decimal
        IT power a place must be provisioned with (nameplate share of the server).
    load_kw_per_accelerator : Decimal
        IT power drawn on average.
    pue : Decimal
        Power usage effectiveness, at least 1.
    utilization : Decimal
        Useful share of the hours, above 0.
    """

    network_share: Decimal
    spares_share: Decimal
    depreciation_months: int
    residual_share: Decimal
    cost_of_capital: Decimal
    provisioned_kw_per_accelerator: Decimal
    load_kw_per_accelerator: Decimal
    pue: Decimal
    utilization: Decimal

    def __post_init__(self) -> None:
        for share in (self.network_share, self.spares_share, self.residual_share, self.cost_of_capital):
            check_share(share)
        if self.network_share == 1:
            raise PricingError("a cluster cannot be all network")
        if not 1 <= self.depreciation_months <= 240:
            raise PricingError(f"depreciation takes 1 to 240 months, got {self.depreciation_months}")
        if not ZERO < self.utilization <= ONE:
            raise PricingError(f"utilization is above 0 and at most 1, got {self.utilization}")
        if self.pue < 1:
            raise PricingError(f"PUE is at least 1, got {self.pue}")
        if self.provisioned_kw_per_accelerator < 0 or self.load_kw_per_accelerator < 0:
            raise PricingError("power is not negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedHour:
    """Cost of one useful accelerator-hour.

    Parameters
    ----------
    capital_per_accelerator : mapping of str to Money
        ``server``, ``spares``, ``network``, ``storage``.
    monthly : mapping of str to Money
        Per accelerator and month: ``depreciation``, ``cost_of_capital``, ``electricity``, ``colocation``, ``staff``.
    per_accelerator_hour : Money
        Monthly total over ``HOURS_PER_MONTH x utilization``.
    """

    capital_per_accelerator: Mapping[str, Money]
    monthly: Mapping[str, Money]
    useful_hours_per_month: Decimal
    per_accelerator_hour: Money

    def share_per_hour(self, part: str) -> Money:
        """One monthly part per useful accelerator-hour."""
        return self.monthly[part].per(self.useful_hours_per_month)

    @property
    def capital(self) -> Money:
        """Capital of one accelerator with its share of everything bought."""
        parts = list(self.capital_per_accelerator.values())
        return total(parts, parts[0].currency)

    @property
    def monthly_total(self) -> Money:
        """All monthly parts of one accelerator."""
        parts = list(self.monthly.values())
        return total(parts, parts[0].currency)


def owned_hour(prices: OwnershipPrices, terms: OwnershipTerms) -> OwnedHour | Unpriced:
    """Cost of an owned accelerator-hour, or which prices are missing."""
    missing = tuple(
        name
        for name in (
            "server",
            "storage_per_accelerator",
            "electricity_per_kwh",
            "colocation_per_kw_month",
            "staff_per_accelerator_month",
        )
        if getattr(prices, name) is None
    )
    if missing:
        return Unpriced(
            outcome="unknown_price",
            reason="owning needs a price for " + ", ".join(m.replace("_", " ") for m in missing),
            missing=missing,
        )
    capital = _capital(prices, terms)
    monthly = _monthly(prices, terms, total(capital.values(), next(iter(capital.values())).currency))
    useful = CONTEXT.multiply(HOURS_PER_MONTH, terms.utilization)
    everything = total(monthly.values(), next(iter(monthly.values())).currency)
    return OwnedHour(
        capital_per_accelerator=capital,
        monthly=monthly,
        useful_hours_per_month=useful,
        per_accelerator_hour=everything.per(useful),
    )


def _capital(prices: OwnershipPrices, terms: OwnershipTerms) -> dict[str, Money]:
    assert prices.server is not None
    assert prices.storage_per_accelerator is not None
    server = prices.server.per(Decimal(prices.accelerators_per_server))
    spares = server.times_unit(terms.spares_share)
    equipped = server + spares + prices.storage_per_accelerator
    # the network is a share of the whole, so whole = rest / (1 - share)
    network = equipped.times_unit(CONTEXT.divide(terms.network_share, ONE - terms.network_share))
    return {"server": server, "spares": spares, "network": network, "storage": prices.storage_per_accelerator}


def _monthly(prices: OwnershipPrices, terms: OwnershipTerms, capital: Money) -> dict[str, Money]:
    assert prices.electricity_per_kwh is not None
    assert prices.colocation_per_kw_month is not None
    assert prices.staff_per_accelerator_month is not None
    depreciable = capital.times_unit(ONE - terms.residual_share)
    depreciation = depreciable.per(Decimal(terms.depreciation_months))
    payment = annuity(capital, terms.residual_share, terms.cost_of_capital, terms.depreciation_months)
    drawn_kwh = CONTEXT.multiply(CONTEXT.multiply(terms.load_kw_per_accelerator, terms.pue), HOURS_PER_MONTH)
    return {
        "depreciation": depreciation,
        "cost_of_capital": payment - depreciation,
        "electricity": prices.electricity_per_kwh.times_unit(drawn_kwh),
        "colocation": prices.colocation_per_kw_month.times_unit(terms.provisioned_kw_per_accelerator),
        "staff": prices.staff_per_accelerator_month,
    }


def annuity(capital: Money, residual_share: Decimal, rate_per_year: Decimal, months: int) -> Money:
    """Equal monthly payment that repays the capital at the rate and leaves the residual value at the end.

    payment = (C - R / (1 + i)^n) i / (1 - (1 + i)^-n), i = rate / 12; without a rate, (C - R) / n.
    """
    if rate_per_year == 0:
        return capital.times_unit(ONE - residual_share).per(Decimal(months))
    monthly = CONTEXT.divide(rate_per_year, MONTHS_PER_YEAR)
    discount = CONTEXT.power(ONE + monthly, -months)
    left = CONTEXT.subtract(ONE, CONTEXT.multiply(residual_share, discount))
    factor = CONTEXT.divide(CONTEXT.multiply(left, monthly), CONTEXT.subtract(ONE, discount))
    return capital.times_unit(factor)
