"""Twenty public bug reports about price catalogs, one test each, named after its lesson."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from app.catalog.importing import ImportOrder, parse_import
from app.catalog.imports.checks import CheckContext, find_doubts
from app.catalog.imports.formats.tokens import read_tokens
from app.catalog.imports.own_csv import price_column
from app.catalog.imports.staged import FileError, RejectedRow
from app.catalog.offers import PriceRow
from app.catalog.pricebooks import PriceBook, PriceRule, contracted_price
from app.catalog.resolve import Outcome, explain_missing, per_accelerator, resolve_price
from app.catalog.seeding import shipped_bands
from tests.catalog.builders import RECORDED_AT, make_offer, make_row, make_snapshot
from tests.catalog.test_imports import HEAD, gpuhunt_zip, own, run, staged

DAY = date(2026, 11, 30)


def doubts(shipped, *rows: str) -> list[str]:
    found = staged(shipped, own("\n".join([HEAD, *rows]) + "\n"))
    context = CheckContext(bands=shipped_bands(), fx=shipped.fx, held=lambda _: ())
    return [reason for reasons in find_doubts(found, context).values() for reason, _ in reasons]


def test_01_skypilot_catalog_31_a_host_without_its_accelerator_is_under_the_floor(shipped):
    assert doubts(shipped, "gcp,a2-highgpu-1g,A100-SXM4-40GB,1,node,us-east9,on_demand,0.94,2026-11-20,x") == [
        "below_band"
    ]


def test_02_skypilot_4914_spot_dearer_than_on_demand_is_quarantined(shipped):
    rows = (
        "runpod,secure/H100-SXM,H100-SXM5-80GB,1,node,any,on_demand,2.99,2026-11-20,typed in",
        "runpod,secure/H100-SXM,H100-SXM5-80GB,1,node,any,spot,3.29,2026-11-20,typed in",
    )
    assert doubts(shipped, *rows) == ["spot_not_below_on_demand"]
    (first, _) = staged(shipped, own("\n".join([HEAD, *rows]) + "\n"))
    assert (first.source.method, first.confidence) == ("manual", "low")


def test_03_skypilot_9156_a_minimum_bid_is_not_a_price(shipped):
    assert doubts(shipped, "runpod,bid,B200-SXM-180GB,1,node,any,spot,0.01,2026-11-20,x") == ["below_band"]


def test_04_skypilot_1367_a_row_twice_is_reported_and_kept_once(shipped):
    row = "gcp,a3-highgpu-8g,H100-SXM5-80GB,8,node,us-east9,on_demand,88.0,2026-11-20,x"
    assert doubts(shipped, row, row) == ["duplicate_row"]


def test_05_skypilot_1438_a_spot_price_of_yesterday_is_old_and_says_so(shipped):
    offer = make_offer(purchase_model="spot")
    snapshot = make_snapshot([offer], [make_row("2.00", "2026-11-28")])
    answer = resolve_price(snapshot, offer, DAY)
    assert (answer.stale, answer.age_days, answer.max_age_days) == (True, 2, 1)


def test_06_skypilot_3111_the_cheapest_region_depends_on_the_purchase_model(shipped):
    def cheapest(model: str) -> str:
        offers = shipped.find_offers(providers=["gcp"], instance_type="a3-highgpu-8g", purchase_models=[model])
        priced = [(resolve_price(shipped, offer, date(2026, 8, 6)), offer) for offer in offers]
        return min((a.amount, o.region) for a, o in priced if a.outcome is Outcome.PRICED)[1]

    assert cheapest("on_demand") != cheapest("spot")


def test_07_gpuhunt_63_and_251_one_broken_provider_leaves_the_others_and_its_own_last_prices(seeded, clock):
    header = b"instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot\n"
    good = header + b"l40s.1x,r1,1.0,8,147,1,L40S,48,False\n"
    content = gpuhunt_zip(crusoe=good, nebius=b"instance_name,price\nx,1\n")
    what = ImportOrder(file_format="gpuhunt", content=content, filename="v2.zip", observed_on=DAY)
    reports = run(seeded, clock, what)
    assert reports["crusoe"].status == "committed"
    assert reports["nebius"].status == "refused"
    assert "the last good prices stay" in reports["nebius"].detail


def test_08_dstack_1886_a_community_price_is_another_offer_than_a_secure_one(shipped):
    tiers = {
        offer.key.tier: resolve_price(shipped, offer, date(2026, 9, 25)).amount
        for offer in shipped.find_offers(providers=["runpod"], accelerators=["h100-sxm5-80"])
        if offer.key.tier in ("secure", "community")
    }
    assert tiers == {"secure": Decimal("3.49"), "community": Decimal("2.69")}


def test_09_dstack_1890_a_price_per_accelerator_on_a_machine_of_eight_is_suspected(shipped):
    assert doubts(shipped, "aws,p5.48xlarge,H100-SXM5-80GB,8,node,us-east-9,on_demand,6.88,2026-11-20,x") == [
        "per_accelerator_price_suspected"
    ]
    assert per_accelerator(Decimal("55.04"), make_offer()) == Decimal("6.88")


def test_10_infracost_2437_and_410_a_missing_price_is_an_outcome_never_zero(shipped):
    offer = make_offer()
    answer = resolve_price(make_snapshot([offer], []), offer, DAY)
    assert (answer.outcome, answer.amount) == (Outcome.UNKNOWN_PRICE, None)
    with pytest.raises(ValueError, match="positive"):
        make_row("0", "2026-11-01")


def test_11_infracost_3090_a_yuan_amount_stays_yuan(shipped):
    (offer,) = shipped.find_offers(providers=["aws-cn"], instance_type="g5.48xlarge")
    answer = resolve_price(shipped, offer, date(2024, 11, 6))
    assert answer.row.currency == "CNY"
    assert "currency" in PriceRow.__dataclass_fields__


def test_12_infracost_3359_not_sold_there_is_not_a_broken_price(shipped):
    why = explain_missing(shipped, "azure", "Standard_ND128isr_NDR_GB200_v6", "francecentral", "on_demand")
    assert why.outcome is Outcome.NOT_OFFERED
    unknown = explain_missing(shipped, "azure", "Standard_ND128isr_NDR_GB200_v6", "eastus", "spot")
    assert unknown.outcome is Outcome.UNKNOWN_PRICE


def test_13_opencost_3725_no_purchase_model_stands_in_for_another(shipped):
    (offer,) = shipped.find_offers(
        providers=["gcp"], instance_type="a3-highgpu-8g", regions=["europe-north1"], purchase_models=["spot"]
    )
    answer = resolve_price(shipped, offer, date(2026, 8, 6))
    assert (answer.outcome, answer.amount) == (Outcome.QUARANTINED, None)


def test_14_opencost_3160_2029_3219_a_negotiated_price_wins_and_the_rule_is_named():
    offer = make_offer()
    book = PriceBook(
        id="pb_1",
        version=3,
        name="acme",
        currency="USD",
        valid_from=date(2026, 1, 1),
        valid_to=None,
        priority=1,
        rules=(PriceRule(action="fixed", amount=Decimal("4.5"), basis="accelerator", contract="EDP-7"),),
        recorded_at=RECORDED_AT,
        actor="tester",
    )
    priced = contracted_price([book], offer, Decimal("55.04"), "USD", DAY)
    assert (priced.contracted_unit_price, priced.list_unit_price) == (Decimal("36.0"), Decimal("55.04"))
    assert (priced.source, priced.rule.contract) == ("pb_1@v3", "EDP-7")


def test_15_opencost_2840_a_header_without_units_is_refused():
    with pytest.raises(FileError, match="currency and unit"):
        price_column([*HEAD.replace("price_usd_per_hour", "amount").split(",")])


def test_16_gcp_pricing_calculator_249_a_renamed_accelerator_fails_loudly(shipped):
    rows = (
        "gcp,a3-megagpu-8g,H100 80GB Plus,8,node,us-east9,on_demand,90,2026-11-20,x",
        "gcp,a3-megagpu-8g,H100 80GB Ultra Plus,8,node,us-east9,on_demand,90,2026-11-20,x",
    )
    known, renamed = staged(shipped, own("\n".join([HEAD, *rows]) + "\n"))
    assert known.accelerator_id == "h100-sxm5-80"
    assert isinstance(renamed, RejectedRow)
    assert renamed.reason == "unknown_accelerator"


def test_17_karpenter_aws_3183_a_quarantined_row_can_be_accepted_it_is_not_deleted(seeded, clock):
    text = "\n".join(
        [
            HEAD,
            "aws,p9.large,H100-SXM5-80GB,1,node,us-east-1,on_demand,7.00,2026-11-20,x",
            "aws,p9.large,H100-SXM5-80GB,1,node,us-east-1,spot,7.50,2026-11-20,x",
        ]
    )
    from app.catalog import service

    run(seeded, clock, own(text + "\n"))
    snapshot = seeded.read_now(service.current_snapshot)
    (spot,) = snapshot.find_offers(instance_type="p9.large", purchase_models=["spot"])
    (held,) = snapshot.quarantined_of(spot.id)
    seeded.transact_now(
        lambda connection: service.decide_quarantined(
            connection, held.id, decision="accepted", reason="seen on the spot market", actor="t", now=clock.now()
        )
    )
    answer = resolve_price(seeded.read_now(service.current_snapshot), spot, date(2026, 11, 20))
    assert (answer.outcome, answer.amount) == (Outcome.PRICED, Decimal("7.50"))


def test_18_karpenter_gcp_178_a_computed_price_loses_to_every_read_one():
    offer = make_offer(purchase_model="spot")
    computed = make_row("22.00", "2026-11-30", method="generated", kind="estimate", id="computed")
    read = make_row("25.00", "2026-11-30", method="tracker", id="read")
    answer = resolve_price(make_snapshot([offer], [computed, read]), offer, DAY)
    assert answer.row.id == "read"
    assert [lost.reason for lost in answer.lost] == ["lower_rank:estimate"]


class _Prices:
    def __init__(self, **lines: Decimal) -> None:
        self.__dict__.update(lines)


class _Model:
    def __init__(self, prices: _Prices) -> None:
        self.id, self.prices = "m", prices


class _Provider:
    def __init__(self, *models: _Model) -> None:
        self.id, self.name, self.models = "api", "API", models


def test_19_litellm_38167_a_token_price_in_the_wrong_unit_is_held_back(shipped):
    wrong = _Provider(_Model(_Prices(input_mtok=Decimal("15000"), output_mtok=Decimal("0.0000006"))))
    rows = list(read_tokens([wrong], "0", DAY))
    assert {reason for row in rows for reason, _ in row.doubts} == {"token_price_out_of_bounds"}
    free = _Provider(_Model(_Prices(input_mtok=Decimal(0))))
    (row,) = read_tokens([free], "0", DAY)
    assert (row.reason, "unknown, not free" in row.detail) == ("non_positive_price", True)


def test_20_litellm_9049_cached_tokens_have_a_line_of_their_own():
    prices = _Prices(input_mtok=Decimal("3"), cache_read_mtok=Decimal("0.3"), output_mtok=Decimal("15"))
    rows = list(read_tokens([_Provider(_Model(prices))], "0", DAY))
    assert {row.key.product: row.amount for row in rows} == {
        "input": Decimal("3"),
        "cached_input": Decimal("0.3"),
        "output": Decimal("15"),
    }


def test_fixture_nebius_h100_has_three_prices_and_the_choice_is_explained(shipped):
    """Sources disagree about one thing: all are held, each as the offer its source describes, with its rank."""
    offers = shipped.find_offers(providers=["nebius"], accelerators=["h100-sxm5-80"], purchase_models=["on_demand"])
    answers = {offer.key.sku: resolve_price(shipped, offer, DAY) for offer in offers if offer.accelerator_count == 1}
    assert {sku: answer.amount for sku, answer in answers.items()} == {
        "gpu-h100-sxm_1gpu-16vcpu-200gb": Decimal("2.95"),
        "median_per_gpu": Decimal("2.15"),
        "per_gpu": Decimal("3.85"),
    }
    assert {sku: answer.rule for sku, answer in answers.items()} == {
        "gpu-h100-sxm_1gpu-16vcpu-200gb": "list_tracker",
        "median_per_gpu": "marketplace_stat",
        "per_gpu": "list_tracker",
    }
    assert next(offer for offer in offers if offer.key.sku == "median_per_gpu").indicative


def test_fixture_a_component_price_is_never_compared_with_a_bundle(shipped):
    (component,) = [
        offer
        for offer in shipped.offers.values()
        if offer.scope == "component" and any(row.amount == Decimal("9.7966") for row in shipped.prices_of(offer.id))
    ]
    assert component.excluded_reason == "component_without_host"
    wrongly = replace(component, scope="bundle")
    assert wrongly != component
    row = f"gcp,{component.key.sku},H100-SXM5-80GB,1,node,us-central1,on_demand,9.7966,2026-11-20,x"
    assert doubts(shipped, row) == ["component_as_bundle"]


def test_fixture_parsing_needs_no_database(shipped):
    parsed = parse_import(
        shipped, own(f"{HEAD}\naws,p5.48xlarge,H100-SXM5-80GB,8,node,us-east-1,on_demand,55.04,2026-11-20,x\n"), DAY
    )
    assert parsed.providers == ("aws",)
