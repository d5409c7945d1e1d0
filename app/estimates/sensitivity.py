"""What moves the total of an option: one at a time, all at once, and how likely deadline and budget are kept."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.snapshot import Snapshot
from app.engine.law import NORMAL_P90, log_deviation
from app.estimates.physics import quantized
from app.estimates.remembered import Remembered
from app.estimates.sobol import sobol_indices
from app.pricing.money import Money

Array = NDArray[np.float64]
SAMPLES = 4096
KEPT_VOLATILITIES = 64
DAYS_PER_YEAR = 365.25
# Kinds of lines whose amount goes with the hours of the campaign, and with the price of the machines.
TOTAL_NOTE = (
    "estimate is the option's own net at the 10th, 50th and 90th percentile of its hours, prices held. total is the "
    "distribution of the same net when hours and prices vary together. Their medians differ because the spreads are "
    "not symmetric: a run can be later by more than it can be earlier, so the middle of the joint distribution lies "
    "beside total.middle, the net with every factor at its own median."
)
HOURS_LINES = frozenset({"compute", "failures", "campaign", "unit_rounding", "spare", "ownership", "energy", "storage"})
PRICE_LINES = frozenset({"compute", "failures", "campaign", "unit_rounding", "spare", "commitment", "ownership"})
# Fewer price changes than this say nothing about a way of buying; then all ways are taken together.
FEWEST_CHANGES = 8
MIDDLE = 0.5
TAILS = (0.1, 0.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One uncertain input.

    Parameters
    ----------
    name, basis : str
        What it is, and where its spread comes from.
    down, up : float [log ratio]
        10th and 90th percentile over the middle.
    moves_hours : bool
        Whether the calendar time goes with it.
    """

    name: str
    basis: str
    down: float
    up: float
    moves_hours: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """A priced option reduced to what the inputs move.

    Parameters
    ----------
    with_both, with_hours, with_price, fixed : float [money]
        Net amounts that go with hours and machine price, with one of them, or with neither.
    hours : float or None [h]
        Calendar time of the middle; None where time is not a result (a service).
    """

    with_both: float
    with_hours: float
    with_price: float
    fixed: float
    hours: float | None
    currency: str

    @property
    def middle(self) -> float:
        """Total at the middle of every input."""
        return self.with_both + self.with_hours + self.with_price + self.fixed


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What must be kept, where it was asked for."""

    deadline_hours: float | None = None
    budget: float | None = None


def sensitivity(
    snapshot: Snapshot, option: Mapping[str, Any], limits: Limits, samples: int = SAMPLES
) -> dict[str, Any]:
    """Sensitivity of one priced option as an estimate or a stored revision shows it.

    Parameters
    ----------
    option : mapping
        ``options[i]`` of an estimate; the engine is not asked again.
    limits : Limits
        Deadline, and budget in the option's currency.
    samples : int
        Rows of each base matrix of the global study.
    """
    bill = bill_of(option)
    factors = factors_of(snapshot, option)
    if bill is None:
        return {"status": "not_priced", "factors": [], "total": None, "probability": {}}
    figure = partial(_total, bill, factors)
    indices, totals = sobol_indices(figure, [f.name for f in factors], samples)
    p10, p50, p90 = (float(v) for v in np.quantile(totals, (TAILS[0], MIDDLE, TAILS[1])))
    rows = [_row(bill, factors, factor, indices[factor.name]) for factor in factors]
    return {
        "status": "computed",
        "currency": bill.currency,
        "total": {
            "p10": _money(p10, bill),
            "p50": _money(p50, bill),
            "p90": _money(p90, bill),
            "middle": _money(bill.middle, bill),
        },
        "estimate": dict(option["cost"]["net"]),
        "note": TOTAL_NOTE,
        "factors": sorted(rows, key=lambda r: (-r["swing_share"], r["name"])),
        "probability": _probability(bill, factors, totals, limits, samples),
        "samples": samples,
        "method": "Saltelli 2010 and Jansen 1999 on a fixed Sobol sequence",
    }


def bill_of(option: Mapping[str, Any]) -> Bill | None:
    """The lines of an option by what moves them; None where it has no total."""
    totals = option["cost"].get("totals")
    if totals is None:
        return None
    sums = {"both": 0.0, "hours": 0.0, "price": 0.0, "fixed": 0.0}
    for line in option["cost"]["lines"]:
        hours, price = line["kind"] in HOURS_LINES, line["kind"] in PRICE_LINES
        key = ("both" if price else "hours") if hours else ("price" if price else "fixed")
        sums[key] += float(line["net"]["amount"])
    net = option["cost"]["net"]["p50"]
    lines = sum(sums.values())
    # monthly lines of a service are billed for its months: the parts keep their shares of the net
    scale = float(net["amount"]) / lines if lines else 0.0
    duration = option["performance"].get("duration_hours")
    return Bill(
        with_both=sums["both"] * scale,
        with_hours=sums["hours"] * scale,
        with_price=sums["price"] * scale,
        fixed=sums["fixed"] * scale,
        hours=duration["p50"] if duration else None,
        currency=net["currency"],
    )


def factors_of(snapshot: Snapshot, option: Mapping[str, Any]) -> list[Factor]:
    """The uncertain inputs of an option, each with the basis of its spread."""
    performance = option["performance"]
    basis = f"residuals of the calibration ({performance['interval_basis']})"
    duration = performance.get("duration_hours")
    if duration is not None:
        rate = performance["tokens_per_second"]
        fast, slow = _logs(rate)[1], _logs(rate)[0]
        down, up = _logs(duration)
        rest = (_rest(down, fast), _rest(up, slow))
        found = [
            Factor(name="engine_speed", basis=basis, down=min(down, fast), up=min(up, slow), moves_hours=True),
            Factor(
                name="operations",
                basis="failure rate, restart time, and a stack that nobody named",
                down=rest[0],
                up=rest[1],
                moves_hours=True,
            ),
        ]
    else:
        net = option["cost"].get("net") or {}
        spread = {q: float(net[q]["amount"]) for q in ("p10", "p50", "p90")} if net.get("p50") else None
        down, up = _logs(spread) if spread else (0.0, 0.0)
        found = [Factor(name="engine_speed", basis=basis, down=down, up=up, moves_hours=False)]
    price = _price_factor(snapshot, option)
    return [*found, price] if price is not None else found


def _price_factor(snapshot: Snapshot, option: Mapping[str, Any]) -> Factor | None:
    """How far a price may have moved since it was seen, or what a server may cost."""
    for assumed in option["assumptions"]:
        if str(assumed["id"]).startswith(("ownership.server_price", "ownership.accelerator_street_price")):
            low, _, high = str(assumed["value"]).partition(" to ")
            half = 0.5 * math.log(float(high) / float(low)) if high and float(low) > 0.0 else 0.0
            return Factor(name="price", basis=str(assumed["source"]), down=half, up=half, moves_hours=False)
    ages = [
        proof.get("age_days") if proof.get("age_days") is not None else proof.get("max_age_days")
        for line in option["cost"]["lines"]
        if "price_id" in (proof := line["price_evidence"])
    ]
    known = [age for age in ages if age is not None]
    if not known:
        return None
    bought = str(option["offer"]["purchase_model"])
    yearly, changes = price_volatility(snapshot, bought)
    half = NORMAL_P90 * yearly * math.sqrt(max(known) / DAYS_PER_YEAR)
    basis = f"{changes} price changes in the catalog ({yearly:.0%} a year), price seen {max(known)} days ago"
    return Factor(name="price", basis=basis, down=half, up=half, moves_hours=False)


def price_volatility(snapshot: Snapshot, purchase_model: str) -> tuple[float, int]:
    """Yearly volatility of prices of a way of buying from the catalog's own history, and the changes behind it."""
    key = (snapshot.content_sha256, purchase_model)
    known = _known_volatility.get(key)
    return known if known is not None else _known_volatility.put(key, _volatility(snapshot, purchase_model))


_known_volatility: Remembered[tuple[str, str], tuple[float, int]] = Remembered(KEPT_VOLATILITIES)


def _volatility(snapshot: Snapshot, purchase_model: str) -> tuple[float, int]:
    moves: dict[str, list[tuple[float, int]]] = {}
    for offer_id, rows in snapshot.prices.items():
        bought = snapshot.offers[offer_id].purchase_model
        for old, new in pairwise(rows):
            same = (old.currency, old.price_unit, old.kind) == (new.currency, new.price_unit, new.kind)
            days = (new.valid_from - old.valid_from).days
            if same and days > 0:
                moves.setdefault(bought, []).append((math.log(new.amount / old.amount), days))
    chosen = moves.get(purchase_model, [])
    if len(chosen) < FEWEST_CHANGES:
        chosen = [move for rows in moves.values() for move in rows]
    if not chosen:
        return 0.0, 0
    per_day = sum(move * move for move, _ in chosen) / sum(days for _, days in chosen)
    return math.sqrt(per_day * DAYS_PER_YEAR), len(chosen)


def _logs(band: Mapping[str, float]) -> tuple[float, float]:
    return math.log(band["p50"] / band["p10"]), math.log(band["p90"] / band["p50"])


def _rest(whole: float, part: float) -> float:
    return math.sqrt(max(0.0, whole * whole - min(whole, part) ** 2))


def _total(bill: Bill, factors: Sequence[Factor], levels: Mapping[str, Array]) -> Array:
    """Total at levels of the inputs; a service pays its speed through the number of machines."""
    hours, price = np.ones(1), np.ones(1)
    for factor in factors:
        deviation = np.exp(log_deviation(levels[factor.name], factor.down, factor.up))
        if factor.name == "price":
            price = price * deviation
        else:
            hours = hours * deviation
    total: Array = bill.with_both * hours * price + bill.with_hours * hours + bill.with_price * price + bill.fixed
    return total


def _hours(bill: Bill, factors: Sequence[Factor], levels: Mapping[str, Array]) -> Array:
    assert bill.hours is not None
    result = np.full_like(next(iter(levels.values())), bill.hours)
    for factor in factors:
        if factor.moves_hours:
            result = result * np.exp(log_deviation(levels[factor.name], factor.down, factor.up))
    return result


def _row(bill: Bill, factors: Sequence[Factor], factor: Factor, indices: tuple[float, float]) -> dict[str, Any]:
    """One input alone at its 10th and 90th percentile, and its share of the variance."""
    levels = {
        f.name: np.array([TAILS[0] if f is factor else MIDDLE, TAILS[1] if f is factor else MIDDLE]) for f in factors
    }
    low, high = (float(v) for v in _total(bill, factors, levels))
    return {
        "name": factor.name,
        "basis": factor.basis,
        "relative_p10": float(quantized(math.exp(-factor.down))),
        "relative_p90": float(quantized(math.exp(factor.up))),
        "total_at_p10": _money(low, bill),
        "total_at_p90": _money(high, bill),
        "swing_share": float(quantized(abs(high - low) / bill.middle)) if bill.middle else 0.0,
        "sobol_first_order": round(indices[0], 4),
        "sobol_total": round(indices[1], 4),
    }


def _probability(
    bill: Bill, factors: Sequence[Factor], totals: Array, limits: Limits, samples: int
) -> dict[str, float | None]:
    """Chance of keeping the deadline and the budget; None where none was asked for."""
    found: dict[str, float | None] = {"deadline": None, "budget": None}
    if limits.budget is not None:
        found["budget"] = round(float(np.mean(totals <= limits.budget)), 4)
    if limits.deadline_hours is not None and bill.hours is not None:
        _, hours = sobol_indices(partial(_hours, bill, factors), [f.name for f in factors], samples)
        found["deadline"] = round(float(np.mean(hours <= limits.deadline_hours)), 4)
    return found


def _money(amount: float, bill: Bill) -> dict[str, str]:
    """A sampled amount at the currency's minor unit, from six significant digits."""
    return Money.settled(Decimal(repr(quantized(amount))), bill.currency).as_json()
