"""Owned hardware from catalog facts: which price each part of the cost comes from, and what is assumed."""

from dataclasses import dataclass
from decimal import Decimal

from app.catalog.rates import PriceRange
from app.catalog.snapshot import Snapshot
from app.engine.hardware import Accelerator
from app.engine.run.energy import SERVER_OVER_ACCELERATORS, TRAINING_SHARE_OF_RATED, WATTS_PER_KILOWATT
from app.estimates.assumptions import OWNERSHIP, Assumption
from app.estimates.fields import Price
from app.estimates.schemas import Ownership
from app.estimates.terms import PricedTerms
from app.pricing.money import CONTEXT, Money, plain, quantity, quantity_from_float
from app.pricing.outcome import Unpriced
from app.pricing.ownership import OwnedHour, OwnershipPrices, OwnershipTerms, owned_hour

# Straight-line server lives of large operators: Meta 5.5 years, Amazon 5; see DEFAULT_SOURCES.
DEFAULT_DEPRECIATION_MONTHS = 60
# No public residual for five-year-old accelerators that a buyer could rely on: the owner may state one.
DEFAULT_RESIDUAL = Decimal(0)
# The weighted cost of capital of a financed buyer; state your own.
DEFAULT_COST_OF_CAPITAL = Decimal("0.10")
DEFAULT_NETWORK_SHARE = Decimal("0.20")
# Spare parts held beside the fleet.
DEFAULT_SPARES = Decimal("0.02")
# Hours that do useful work: goodput of large runs is 0.90 to 0.97 (reliability facts), queues and repairs take more.
DEFAULT_UTILIZATION = Decimal("0.80")
# Where a default comes from; one without an entry is a house figure and says that it is unverified.
DEFAULT_SOURCES = {
    "depreciation_months": "Meta 5.5 years from 2025 (10-K 2025, property and equipment: sec.gov/Archives/edgar/data/"
    "1326801/000162828026003942/R15.htm), Amazon 5 years from 2025 (its 10-K, quoted by deepquarry.substack.com); read "
    "2026-12-01",
    "residual_value": "nothing is counted on, since no residual of five-year-old accelerators was found",
    "network_share": "servers.json fabric_cost_rules: about 20 %; Morgan Stanley 19 to 23 % via press",
}
UNVERIFIED = "unverified: a house figure, no source read"
# The published own-cost figures are per owned hour, whether used or not.
PUBLISHED_UTILIZATION = Decimal(1)
STREET_PRICE = "ownership.accelerator_street_price"
# Kinds of price readings that can stand for a purchase, best first; "used" and parts lists cannot.
PRICE_KINDS = ("launch_list_from", "secondary_list", "press_estimate", "street_estimate", "msrp_field")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedCost:
    """The cost of an owned accelerator-hour, with what it rests on."""

    hour: OwnedHour
    assumptions: tuple[Assumption, ...]
    currencies: tuple[str, ...]


def owned_cost(
    snapshot: Snapshot, accelerator: Accelerator, asked: Ownership | None, terms: PricedTerms
) -> OwnedCost | Unpriced:
    """What an owned accelerator-hour costs in the terms' currency, or which prices are missing."""
    asked = asked or Ownership()
    book = _Book(terms=terms)
    server, count = _server_price(snapshot, accelerator, asked, book)
    prices = OwnershipPrices(
        server=server,
        accelerators_per_server=count,
        storage_per_accelerator=_storage(asked, book),
        electricity_per_kwh=_electricity(snapshot, asked, book),
        colocation_per_kw_month=_colocation(snapshot, asked, book),
        staff_per_accelerator_month=_staff(asked, book),
    )
    provisioned, load = _power(snapshot, accelerator, book)
    if provisioned is None or load is None:
        return Unpriced(
            outcome="unknown_price",
            reason=f"no source states the power of a server with {accelerator.id}; owning it cannot be priced",
            missing=("power",),
        )
    ratios = OwnershipTerms(
        network_share=book.number("network_share", asked.network_share, DEFAULT_NETWORK_SHARE, "share of capital"),
        spares_share=book.number("spares", asked.spares, DEFAULT_SPARES, "share of servers"),
        depreciation_months=int(
            book.number(
                "depreciation_months",
                None if asked.depreciation_months is None else Decimal(asked.depreciation_months),
                Decimal(DEFAULT_DEPRECIATION_MONTHS),
                "month",
            )
        ),
        residual_share=book.number("residual_value", asked.residual_value, DEFAULT_RESIDUAL, "share of capital"),
        cost_of_capital=book.number("cost_of_capital", asked.cost_of_capital, DEFAULT_COST_OF_CAPITAL, "per year"),
        provisioned_kw_per_accelerator=provisioned,
        load_kw_per_accelerator=load,
        pue=_pue(snapshot, asked, book),
        utilization=book.number("utilization", asked.utilization, DEFAULT_UTILIZATION, "share of hours"),
    )
    hour = owned_hour(prices, ratios)
    if isinstance(hour, Unpriced):
        return hour
    return OwnedCost(hour=hour, assumptions=tuple(book.assumed), currencies=tuple(sorted(book.currencies)))


class _Book:
    """Collects assumptions while prices are looked up."""

    def __init__(self, terms: PricedTerms) -> None:
        self.terms = terms
        self.assumed: list[Assumption] = []
        self.currencies: set[str] = set()

    def number(self, name: str, asked: Decimal | None, default: Decimal, unit: str) -> Decimal:
        """The caller's figure, else the default with a note."""
        if asked is not None:
            return asked
        source = f"{DEFAULT_SOURCES.get(name, UNVERIFIED)}; state your own"
        self.note(f"ownership.{name}", plain(default), unit, source)
        return default

    def note(self, name: str, value: str, unit: str, source: str) -> None:
        """Remember one assumption."""
        self.assumed.append(Assumption(id=name, value=value, unit=unit, source=source, moves=OWNERSHIP))

    def stated(self, price: Price | None) -> Money | None:
        """The caller's own price in the terms' currency."""
        return None if price is None else self.convert(price.money)

    def convert(self, price: Money) -> Money:
        """A price in the terms' currency."""
        if price.currency != self.terms.currency:
            self.currencies.add(price.currency)
        return self.terms.conversion(price.currency).convert_unit(price)


def _server_price(
    snapshot: Snapshot, accelerator: Accelerator, asked: Ownership, book: _Book
) -> tuple[Money | None, int]:
    if asked.server_price is not None:
        return book.stated(asked.server_price), accelerator.accelerators_per_node
    offered: list[tuple[PriceRange, str, int]] = []
    for server in sorted(snapshot.servers.values(), key=lambda s: s.id):
        if server.accelerator_id == accelerator.id:
            offered.extend(
                (p, f"ownership.server_price ({server.name})", server.accelerator_count) for p in _newest(server.prices)
            )
    street = tuple(p for p in snapshot.street_prices if p.subject_id == accelerator.id)
    offered.extend((p, STREET_PRICE, 1) for p in _newest(street))
    if not offered:
        return None, accelerator.accelerators_per_node
    # a server cannot cost less than its accelerators do on the street: the dearer of the two readings per accelerator
    best = max(offered, key=lambda o: (CONTEXT.divide(_middle(o[0]), Decimal(o[2])), o[1]))
    return _noted(best[0], best[1], book), best[2]


def _newest(ranges: tuple[PriceRange, ...]) -> list[PriceRange]:
    """The newest reading of the best kind there is, if any."""
    for kind in PRICE_KINDS:
        found = [r for r in ranges if r.kind == kind]
        if found:
            return [max(found, key=lambda r: (r.as_of or "", r.source))]
    return []


def _middle(found: PriceRange) -> Decimal:
    return CONTEXT.divide(CONTEXT.add(found.amount_low, found.amount_high), Decimal(2))


def _noted(found: PriceRange, name: str, book: _Book) -> Money:
    shown = f"{plain(found.amount_low)} to {plain(found.amount_high)}"
    alone = " (the accelerator alone: its share of a host is not in it)" if name == STREET_PRICE else ""
    book.note(name, shown, found.currency, f"{found.kind}, confidence {found.confidence}: {found.source}{alone}")
    return book.convert(Money.unit(_middle(found), found.currency))


def _storage(asked: Ownership, book: _Book) -> Money:
    if asked.storage_price is not None:
        return book.convert(asked.storage_price.money)
    book.note("ownership.storage_price", "0", "per accelerator", "no shared storage bought; state a price to add it")
    return Money.zero(book.terms.currency)


def _staff(asked: Ownership, book: _Book) -> Money:
    if asked.staff_price is not None:
        return book.convert(asked.staff_price.money)
    book.note(
        "ownership.staff_price", "0", "per accelerator-month", "your staff is not counted; state a price to add it"
    )
    return Money.zero(book.terms.currency)


def _electricity(snapshot: Snapshot, asked: Ownership, book: _Book) -> Money | None:
    if asked.electricity_price is not None:
        return book.stated(asked.electricity_price)
    country = "CN" if book.terms.currency == "CNY" else "US"
    priced = [t for t in snapshot.tariffs if t.country == country and t.sector == "industrial" and t.amount is not None]
    if not priced:
        return None
    middle = sorted(priced, key=lambda t: (t.amount, t.region))[len(priced) // 2]
    assert middle.amount is not None
    source = f"median of {len(priced)} industrial tariffs ({country}): {middle.region}, {middle.source}"
    book.note("ownership.electricity_price", plain(middle.amount), f"{middle.currency}/kWh", source)
    return book.convert(Money.unit(middle.amount, middle.currency))


def _colocation(snapshot: Snapshot, asked: Ownership, book: _Book) -> Money | None:
    if asked.colocation_price is not None:
        return book.stated(asked.colocation_price)
    if not snapshot.colocation:
        return None
    newest = max(snapshot.colocation, key=lambda c: (c.scope.startswith("North America"), c.as_of))
    source = f"{newest.scope}, {newest.as_of}: {newest.source}"
    book.note("ownership.colocation_price", plain(newest.amount), f"{newest.currency}/(kW month)", source)
    return book.convert(Money.unit(newest.amount, newest.currency))


def _pue(snapshot: Snapshot, asked: Ownership, book: _Book) -> Decimal:
    if asked.pue is not None:
        return asked.pue
    if not snapshot.pue:
        return book.number("pue", None, Decimal(1), "facility power over IT power")
    newest = max(snapshot.pue, key=lambda p: p.year)
    book.note("ownership.pue", plain(newest.value), "facility power over IT power", f"{newest.scope}: {newest.source}")
    return newest.value


def _power(snapshot: Snapshot, accelerator: Accelerator, book: _Book) -> tuple[Decimal | None, Decimal | None]:
    """Provisioned and drawn IT kilowatts per accelerator: the server's nameplate share, and its usual load."""
    servers = [s for s in snapshot.servers.values() if s.accelerator_id == accelerator.id and s.power_kw is not None]
    if servers:
        server = min(servers, key=lambda s: (s.vendor != "NVIDIA", s.id))
        nameplate = _kw(CONTEXT.divide(server.power_kw or Decimal(0), Decimal(server.accelerator_count)))
        source = f"{server.name}: {server.power_kind} {plain(server.power_kw or Decimal(0))} kW"
    elif accelerator.thermal_design_power_w is not None:
        design_kw = accelerator.thermal_design_power_w * SERVER_OVER_ACCELERATORS / WATTS_PER_KILOWATT
        nameplate = quantity_from_float(design_kw)
        source = f"design power x {SERVER_OVER_ACCELERATORS} (DGX servers over their accelerators)"
    else:
        return None, None
    book.note("ownership.kw_per_accelerator", plain(nameplate), "kW", source)
    return nameplate, _kw(CONTEXT.multiply(nameplate, Decimal(str(TRAINING_SHARE_OF_RATED))))


def _kw(power: Decimal) -> Decimal:
    return quantity(power)
