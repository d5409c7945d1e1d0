"""What an owned accelerator-hour costs beside the published band, part by part: ``python -m benchmarks.own_cost``.

The band (SemiAnalysis) comes without its purchase prices, rates and lives; public are its two ends and the all-in
utility power behind them. So the power is put in as published, and the band is turned into the purchase price per
accelerator it implies under our other rates, to hold the public price readings against.
"""

import tempfile
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

from app.catalog import service
from app.catalog.snapshot import Snapshot
from app.estimates.ownership import PUBLISHED_UTILIZATION, OwnedCost, owned_cost
from app.estimates.schemas import Ownership, Terms
from app.estimates.terms import priced_terms
from app.foundation.database import Database
from app.foundation.migrations import migrate
from app.pricing.money import Money
from app.pricing.ownership import OwnedHour, OwnershipPrices, OwnershipTerms, owned_hour

DAY = date(2026, 11, 30)


def our_hour(snapshot: Snapshot, accelerator_id: str) -> OwnedCost:
    """An owned hour of an accelerator under our own inputs, every hour counted as the published figures do."""
    spec = snapshot.accelerators[accelerator_id].spec
    assert spec is not None
    asked = Ownership(utilization=PUBLISHED_UTILIZATION)
    cost = owned_cost(snapshot, spec, asked, priced_terms(snapshot, Terms(), DAY))
    assert isinstance(cost, OwnedCost), cost
    return cost


def implied_prices(snapshot: Snapshot, accelerator_id: str) -> tuple[Decimal, Decimal]:
    """Purchase prices per accelerator [USD] at which our formula gives the two ends of the published band.

    The published power is utility power, PUE in it. An hour is linear in the price, so two prices give the line.
    """
    published = snapshot.own_cost[accelerator_id]
    assumed = {a.id.removeprefix("ownership."): a.value for a in our_hour(snapshot, accelerator_id).assumptions}
    terms = OwnershipTerms(
        network_share=Decimal(assumed["network_share"]),
        spares_share=Decimal(assumed["spares"]),
        depreciation_months=int(assumed["depreciation_months"]),
        residual_share=Decimal(assumed["residual_value"]),
        cost_of_capital=Decimal(assumed["cost_of_capital"]),
        provisioned_kw_per_accelerator=Decimal(assumed["kw_per_accelerator"]),
        load_kw_per_accelerator=published.all_in_kw_per_accelerator,
        pue=Decimal(1),
        utilization=PUBLISHED_UTILIZATION,
    )
    prices = OwnershipPrices(
        server=Money.parse("10000", "USD"),
        accelerators_per_server=1,
        storage_per_accelerator=Money.zero("USD"),
        electricity_per_kwh=Money.parse(assumed["electricity_price"], "USD"),
        colocation_per_kw_month=Money.parse(assumed["colocation_price"], "USD"),
        staff_per_accelerator_month=Money.zero("USD"),
    )
    hours = [owned_hour(replace(prices, server=Money.parse(price, "USD")), terms) for price in ("10000", "20000")]
    first, second = (hour.per_accelerator_hour.amount for hour in hours if isinstance(hour, OwnedHour))
    each = (second - first) / 10_000
    ends = (published.usd_per_accelerator_hour_own_hyperscaler, published.usd_per_accelerator_hour_own_neocloud)
    low, high = (10_000 + (end - first) / each for end in ends)
    return low, high


def main() -> None:
    """Print one line for each accelerator that has a published figure and a purchase price."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'own.db'}"
        migrate(url)
        database = Database(url)
        database.transact_now(service.seed_when_empty)
        snapshot = database.read_now(service.current_snapshot)
        database.close()
    for name, published in sorted(snapshot.own_cost.items()):
        spec = snapshot.accelerators[name].spec
        if published.placeholder or spec is None:
            continue
        cost = owned_cost(
            snapshot, spec, Ownership(utilization=PUBLISHED_UTILIZATION), priced_terms(snapshot, Terms(), DAY)
        )
        low, high = published.usd_per_accelerator_hour_own_hyperscaler, published.usd_per_accelerator_hour_own_neocloud
        if not isinstance(cost, OwnedCost):
            print(f"{name}: {cost.reason}; published {low} to {high} USD")
            continue
        parts = ", ".join(f"{part} {cost.hour.share_per_hour(part).amount:.4f}" for part in cost.hour.monthly)
        implied = implied_prices(snapshot, name)
        print(
            f"{name}: {cost.hour.per_accelerator_hour.amount:.4f} USD (published {low} to {high}) = {parts}; "
            f"the band implies {implied[0]:,.0f} to {implied[1]:,.0f} USD an accelerator, ours is "
            f"{cost.hour.capital_per_accelerator['server'].amount:,.0f}"
        )


if __name__ == "__main__":
    main()
