"""Every quarantine rule of the catalog, one test each, named after it; and the way out: a person's decision."""

from decimal import Decimal

import pytest

from app.catalog import service
from app.catalog.imports.checks import CheckContext, find_doubts
from app.catalog.imports.staged import RejectedRow
from app.catalog.resolve import Outcome, resolve_price
from app.catalog.seeding import shipped_bands, shipped_regions
from tests.catalog.test_imports import HEAD, TODAY, own, run, staged

H100 = "aws,p5.48xlarge,H100-SXM5-80GB,8,node,us-east-1,{},{},2026-11-20,x"
OPEN = "price,currency,price_unit,valid_from,valid_to"


def found(shipped, *rows: str, head: str = HEAD, regions=None) -> list[str]:
    """Reasons for which rows are held back, as the import plan finds them."""
    read = staged(shipped, own("\n".join([head, *rows]) + "\n"))
    rejected = [row.reason for row in read if isinstance(row, RejectedRow)]
    prices = [row for row in read if not isinstance(row, RejectedRow)]
    context = CheckContext(bands=shipped_bands(), fx=shipped.fx, held=lambda _: (), regions=regions)
    return [*rejected, *(reason for reasons in find_doubts(prices, context).values() for reason, _ in reasons)]


@pytest.mark.parametrize("amount", ["0", "-1", "0.00"])
def test_an_amount_that_is_not_above_zero(shipped, amount):
    assert found(shipped, H100.format("on_demand", amount)) == ["non_positive_price"]


def test_a_currency_that_is_missing(shipped):
    head = HEAD.replace("price_usd_per_hour", "price,currency,price_unit")
    assert found(shipped, H100.format("on_demand", "55.04,,hour"), head=head) == ["missing_currency"]


@pytest.mark.parametrize("unit", ["", "fortnight", "Hour"])
def test_a_time_unit_that_is_missing_or_unknown(shipped, unit):
    head = HEAD.replace("price_usd_per_hour", "price,currency,price_unit")
    assert found(shipped, H100.format("on_demand", f"55.04,USD,{unit}"), head=head) == ["missing_unit"]


@pytest.mark.parametrize("unit", ["", "machine"])
def test_a_sold_unit_that_is_missing_or_unknown(shipped, unit):
    row = H100.format("on_demand", "55.04").replace(",node,", f",{unit},")
    assert found(shipped, row) == ["missing_unit"]


def test_an_unknown_accelerator(shipped):
    row = H100.format("on_demand", "55.04").replace("H100-SXM5-80GB", "H100 Ultra")
    assert found(shipped, row) == ["unknown_accelerator"]


def test_an_unknown_region(shipped):
    known = shipped_regions("aws")
    assert {"us-east-1", "eu-west-3", "global"} <= known
    assert found(shipped, H100.format("on_demand", "55.04"), regions=known) == []
    row = H100.format("on_demand", "55.04").replace("us-east-1", "us-east-7")
    assert found(shipped, row, regions=known) == ["unknown_region"]


def test_a_key_twice_in_one_file(shipped):
    rows = (H100.format("on_demand", "55.04"), H100.format("on_demand", "56.04"))
    assert found(shipped, *rows) == ["duplicate_key", "duplicate_key"]
    assert found(shipped, rows[0], rows[0]) == ["duplicate_row"]


@pytest.mark.parametrize("spot", ["55.04", "60"])
def test_spot_that_is_not_below_on_demand(shipped, spot):
    assert found(shipped, H100.format("on_demand", "55.04"), H100.format("spot", spot)) == ["spot_not_below_on_demand"]


def test_spot_below_a_tenth_of_on_demand(shipped):
    assert found(shipped, H100.format("on_demand", "55.04"), H100.format("spot", "5.50")) == ["spot_below_floor"]


@pytest.mark.parametrize(("amount", "reason"), [("0.50", "below_band"), ("5504", "above_band")])
def test_a_price_outside_its_accelerators_band(shipped, amount, reason):
    assert found(shipped, H100.format("on_demand", amount)) == [reason]


def test_a_price_per_accelerator_on_a_machine_of_eight(shipped):
    assert found(shipped, H100.format("on_demand", "6.88")) == ["per_accelerator_price_suspected"]


def test_the_price_of_a_machine_on_a_slice_of_one_accelerator(shipped):
    """Eight B200 slices of 8.055 USD are 64.44 USD: written on one slice it is a machine's price."""
    sku = "A4 Nvidia B200 (1 gpu slice) attached to DWS Defined Duration VMs running in Americas"
    row = f"gcp,{sku},B200-SXM-180GB,1,gpu,us-central1,on_demand,{{}},2026-11-20,x"
    assert found(shipped, row.format("8.055")) == []
    assert found(shipped, row.format("64.44")) == ["machine_price_suspected"]


def test_no_shipped_slice_carries_the_price_of_its_machine(shipped):
    slices = [offer for offer in shipped.offers.values() if "gpu slice" in offer.key.sku]
    amounts = {offer.id: [row.amount for row in shipped.prices_of(offer.id)] for offer in slices}
    assert len(slices) == 9
    assert all(offer.accelerator_count == 1 and offer.sold_unit == "gpu" for offer in slices)
    assert max(max(found) for found in amounts.values()) == Decimal("16.11")


def test_a_jump_of_more_than_thirty_percent(shipped):
    before = H100.format("on_demand", "55.04").replace("2026-11-20", "2026-11-01")
    assert found(shipped, before, H100.format("on_demand", "38.60")) == []
    assert found(shipped, before, H100.format("on_demand", "38.50")) == ["price_jump"]
    assert found(shipped, before, H100.format("on_demand", "71.60")) == ["price_jump"]


def test_a_row_count_that_falls_by_more_than_a_fifth(seeded, clock):
    row = "nebius,gpu-{}x,H100-SXM5-80GB,1,node,eu-north1,on_demand,2.95,2026-11-{},x"
    full = own("\n".join([HEAD, *(row.format(n, 20) for n in range(10))]) + "\n", complete=True)
    assert run(seeded, clock, full)["nebius"].status == "committed"
    cut = own("\n".join([HEAD, *(row.format(n, 21) for n in range(7))]) + "\n", complete=True)
    report = run(seeded, clock, cut)["nebius"]
    assert (report.status, report.detail.split(":")[0]) == ("refused", "row_count_fell")
    short = own("\n".join([HEAD, *(row.format(n, 21) for n in range(8))]) + "\n", complete=True)
    assert run(seeded, clock, short)["nebius"].status == "committed"


def test_valid_ranges_that_overlap(shipped):
    head = HEAD.replace("price_usd_per_hour", OPEN)
    first = H100.format("on_demand", "55.04,USD,hour,2026-01-01,2026-06-01")
    second = H100.format("on_demand", "50.04,USD,hour,{},2026-09-01")
    assert found(shipped, first, second.format("2026-03-01"), head=head) == ["valid_range_overlap"] * 2
    assert found(shipped, first, second.format("2026-06-01"), head=head) == []


def test_a_valid_range_that_ends_before_it_starts(shipped):
    head = HEAD.replace("price_usd_per_hour", OPEN)
    row = H100.format("on_demand", "55.04,USD,hour,2026-06-01,2026-06-01")
    assert found(shipped, row, head=head) == ["malformed_date"]


def test_a_component_sold_as_a_bundle(shipped):
    sku = "Nvidia H100 80GB GPU running in Americas"
    row = f"gcp,{sku},H100-SXM5-80GB,1,gpu,us-central1,on_demand,9.7966,2026-11-20,x"
    assert found(shipped, row) == ["component_as_bundle"]


def test_an_unknown_region_becomes_known_by_accepting_one_of_its_rows(seeded, clock):
    """Not offered and not priced before; the accepted row prices, and the next row of the region is taken at once."""
    row = "nebius,gpu-h100-8x,H100-SXM5-80GB,8,node,eu-south9,on_demand,{},2026-11-{},x"

    def answer():
        snapshot = seeded.read_now(service.current_snapshot)
        (offer,) = snapshot.find_offers(providers=["nebius"], regions=["eu-south9"])
        return snapshot, offer, resolve_price(snapshot, offer, TODAY)

    assert [
        held["reason"] for held in run(seeded, clock, own(f"{HEAD}\n{row.format('23.6', 20)}\n"))["nebius"].quarantined
    ] == ["unknown_region"]
    snapshot, offer, before = answer()
    assert (before.outcome, before.amount) == (Outcome.QUARANTINED, None)
    (held,) = snapshot.quarantined_of(offer.id)
    seeded.transact_now(
        lambda connection: service.decide_quarantined(
            connection, held.id, decision="accepted", reason="announced by the vendor", actor="t", now=clock.now()
        )
    )
    assert answer()[2].amount == Decimal("23.6")
    assert run(seeded, clock, own(f"{HEAD}\n{row.format('24.0', 25)}\n"))["nebius"].quarantined == ()
    assert answer()[2].amount == Decimal("24.0")
