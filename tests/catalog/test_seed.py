"""What the shipped catalog holds, how often it is seeded, and the prices it must answer."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from app.catalog import repository, service, tables
from app.catalog.resolve import per_accelerator, resolve_price

GOLDEN = yaml.safe_load((Path(__file__).parents[1] / "golden" / "catalog_prices.yaml").read_text())


@pytest.mark.parametrize("case", GOLDEN, ids=[case["name"] for case in GOLDEN])
def test_golden_prices(shipped, case):
    asked = dict(case["inputs"])
    accelerator = asked.pop("accelerator", None)
    offers = shipped.find_offers(
        providers=[asked["provider"]],
        instance_type=asked["instance_type"],
        regions=[asked["region"]],
        purchase_models=[asked["purchase_model"]],
        accelerators=None if accelerator is None else [accelerator],
    )
    assert len(offers) == 1
    offer = offers[0]
    answer = resolve_price(shipped, offer, asked["as_of"])
    found = {
        "outcome": str(answer.outcome),
        "amount": None if answer.amount is None else format(answer.amount.normalize(), "f"),
        "currency": answer.row and answer.row.currency,
        "per_accelerator": answer.row and format(per_accelerator(answer.row.amount, offer).normalize(), "f"),
        "stale": answer.stale,
        "age_days": answer.age_days,
        "before": answer.before and str(answer.before.amount),
        "after": answer.after and str(answer.after.amount),
        "sold_unit": offer.sold_unit,
        "accelerator_count": offer.accelerator_count,
        "min_quantity": offer.min_quantity,
        "quantity_step": offer.quantity_step,
    }
    assert {name: found[name] for name in case["expected"]} == case["expected"]


def test_the_seed_holds_every_shipped_row(shipped):
    assert len(shipped.accelerators) == 46
    assert len(shipped.node_shapes) == 18
    assert len(shipped.servers) == 19
    prices = sum(len(rows) for rows in shipped.prices.values())
    held = [entry for entry in shipped.quarantine if entry.row is not None]
    assert prices + len(held) == 1321 + 94 + 15 + 69


def test_benchmark_only_shapes_are_not_offered(shipped):
    assert "llama3-70b" in shipped.models
    assert not any("proxy" in name for name in shipped.models)


def test_an_accelerator_without_a_bf16_peak_is_listed_but_not_quotable(shipped):
    unquotable = {entry.id for entry in shipped.accelerators.values() if not entry.quotable}
    assert {"b100", "a10g", "l40"} <= unquotable
    assert shipped.accelerators["b200-sxm-180"].spec.memory_bytes == 183359 * 2**20


def test_labels_without_a_form_factor_stay_out_of_automatic_quotes(shipped):
    unstated = [offer for offer in shipped.offers.values() if offer.key.accelerator_label in ("H100-80GB", "A100-80GB")]
    assert len(unstated) == 14
    assert all(offer.accelerator_id is None and not offer.automatic for offer in unstated)


def test_a_component_is_never_a_whole_machine(shipped):
    components = [offer for offer in shipped.offers.values() if offer.scope == "component"]
    assert len(components) == 60
    assert not any(offer.automatic for offer in components)
    h100 = shipped.find_offers(accelerators=["h100-sxm5-80"], providers=["gcp"], automatic_only=True)
    assert h100
    assert all(offer.scope == "bundle" for offer in h100)


def test_an_alibaba_price_in_dollars_comes_from_a_dated_rate(shipped):
    rate = shipped.fx.rate("CNY", "USD", date(2026, 10, 31))
    assert rate.rate_on == date(2026, 10, 30)
    assert (Decimal("297.476") * rate.rate).quantize(Decimal("0.01")) == Decimal("44.71")


def test_a_saturday_takes_the_rate_of_friday_and_says_so(shipped):
    rate = shipped.fx.rate("USD", "CNY", date(2026, 10, 31))
    assert (rate.requested_on, rate.rate_on, rate.via) == (date(2026, 10, 31), date(2026, 10, 30), "EUR")
    assert rate.rate.quantize(Decimal("0.000001")) == Decimal("6.652882")
    assert not rate.stale
    assert shipped.fx.rate("USD", "CNY", date(2026, 12, 1)).stale


def test_there_is_no_rate_before_the_first_fixing_or_for_an_absent_currency(shipped):
    assert shipped.fx.rate("USD", "CNY", date(2022, 12, 31)) is None
    assert shipped.fx.rate("USD", "TWD", date(2026, 10, 30)) is None
    assert shipped.fx.rate("USD", "KWD", date(2026, 10, 30)) is None


def test_every_price_names_its_source(shipped):
    rows = [row for found in shipped.prices.values() for row in found]
    assert all(row.source.citation and row.source.method and row.currency for row in rows)


def test_tracker_rows_stand_in_files_of_their_own(shipped):
    main = Path("app/catalog/data/cloud_prices.csv").read_text()
    for name in ("sooddvs", "cherielilili", "renshuBTC", "silybench", "datareceipts", "skypilot-catalog"):
        assert name not in main


def test_server_prices_of_parts_and_without_source_are_held_back(shipped):
    assert {entry.raw["server"] for entry in shipped.quarantine if entry.provider == "servers"} == {
        "gb300-nvl72",
        "vr200-nvl72",
    }
    assert [price.amount_low for price in shipped.servers["gb300-nvl72"].prices] == [Decimal(4000000)]


def test_a_source_that_says_same_means_the_row_above(shipped):
    planned = shipped.reliability["llama3-planned"]
    assert planned.source == "Llama 3 paper via Glenn K. Lockwood notes and DatacenterDynamics"


def test_seeding_again_changes_nothing(seeded, clock):
    assert seeded.transact_now(lambda connection: service.seed(connection, clock=clock)) is None
    assert seeded.read_now(service.current_revision).number == 1


def test_the_same_seed_has_the_same_content_hash_everywhere(seeded, shipped):
    there = seeded.read_now(service.current_snapshot)
    assert (there.content_sha256, there.revision_id) == (shipped.content_sha256, shipped.revision_id)
    assert there.prices.keys() == shipped.prices.keys()


def test_a_snapshot_is_loaded_once_and_shared(seeded):
    assert seeded.read_now(service.current_snapshot) is seeded.read_now(service.current_snapshot)


@pytest.mark.parametrize("table", tables.APPEND_ONLY[:7], ids=lambda table: table.name)
@pytest.mark.parametrize("action", ["DELETE FROM {}", "UPDATE {} SET {}"])
def test_published_rows_cannot_be_changed_or_deleted(seeded, table, action):
    column = next(column.name for column in table.columns if not column.primary_key)
    statement = action.format(table.name, f"{column} = {column}")
    before = seeded.read_now(lambda connection: repository.count_rows(connection, table))
    with pytest.raises(DatabaseError):
        seeded.transact_now(lambda connection: connection.execute(text(statement)))
    assert seeded.read_now(lambda connection: repository.count_rows(connection, table)) == before > 0


# SQLite has no exclusion constraints; the import plan keeps the steps apart there
@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_postgresql_refuses_two_prices_of_one_series_on_one_day(seeded):
    overlapping = (
        "INSERT INTO catalog_price SELECT id || 'x', offer_id, source_id, kind, amount, currency, price_unit,"
        " valid_from + 1, valid_to, observed_on, recorded_at, recorded_revision, confidence, note"
        " FROM catalog_price WHERE valid_to IS NULL LIMIT 1"
    )
    with pytest.raises(DatabaseError, match="ex_catalog_price_no_overlap"):
        seeded.transact_now(lambda connection: connection.execute(text(overlapping)))
