"""Imports of every format, from file to price, and everything that can go wrong on the way."""

import io
import zipfile
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from app.catalog import importing, repository, service, tables
from app.catalog.importing import ImportOrder, parse_import
from app.catalog.imports.staged import FileError, RejectedRow, StagedPrice
from app.catalog.resolve import Outcome, resolve_price

FILES = Path(__file__).parents[1] / "data" / "imports"
TODAY = date(2026, 11, 30)


def order(name: str, file_format: str, **more) -> ImportOrder:
    return ImportOrder(file_format=file_format, content=(FILES / name).read_bytes(), filename=name, **more)


def own(text: str, **more) -> ImportOrder:
    return ImportOrder(file_format="csv", content=text.encode(), filename="prices.csv", **more)


HEAD = (
    "provider,instance_type,accelerator,accelerator_count,sold_unit,region,purchase_model,price_usd_per_hour,"
    "effective_date,source"
)
P5 = "aws,p5.48xlarge,H100-SXM5-80GB,8,node,us-east-1,on_demand,{},{},AWS price page"


def staged(snapshot, what: ImportOrder):
    parsed = parse_import(snapshot, what, TODAY)
    return [row for rows in parsed.rows.values() for row in rows]


def run(database, clock, what: ImportOrder):
    parsed = parse_import(database.read_now(service.current_snapshot), what, TODAY)
    return {
        provider: database.transact_now(
            lambda connection, provider=provider: service.commit_import(
                connection, parsed, provider, now=clock.now(), actor="tester"
            )
        )
        for provider in parsed.providers
    }


def price_of(database, day=TODAY, **wanted):
    snapshot = database.read_now(service.current_snapshot)
    (offer,) = snapshot.find_offers(**wanted)
    return resolve_price(snapshot, offer, day)


def test_own_csv_renews_a_price_and_the_newest_of_the_best_rank_wins(seeded, clock):
    reports = run(seeded, clock, order("own_prices.csv", "csv"))
    assert {name: report.status for name, report in reports.items()} == {"aws": "committed", "coreweave": "committed"}
    answer = price_of(
        seeded,
        providers=["coreweave"],
        instance_type="hgx-h100-8x",
        purchase_models=["on_demand"],
    )
    assert (answer.amount, answer.stale, answer.age_days) == (Decimal("49.24"), False, 2)


def test_importing_the_same_file_again_changes_nothing(seeded, clock):
    run(seeded, clock, order("own_prices.csv", "csv"))
    before = seeded.read_now(service.current_revision).number
    reports = run(seeded, clock, order("own_prices.csv", "csv"))
    assert {report.status for report in reports.values()} == {"unchanged"}
    assert seeded.read_now(service.current_revision).number == before


def test_own_json_keeps_the_native_currency(seeded, clock):
    run(seeded, clock, order("own_prices.json", "json"))
    answer = price_of(seeded, providers=["alibaba"], instance_type="ecs.ebmgn7e.32xlarge", regions=["cn-beijing"])
    assert (answer.amount, answer.row.currency) == (Decimal("277.933"), "CNY")


def test_skypilot_rows_become_two_offers_and_a_blank_spot_price_none(shipped):
    rows = staged(shipped, order("skypilot_nebius.csv", "skypilot", provider="nebius"))
    found = {(row.accelerator_id, row.key.purchase_model): row.amount for row in rows}
    assert found == {
        ("h100-sxm5-80", "on_demand"): Decimal("2.95"),
        ("h100-sxm5-80", "spot"): Decimal("1.25"),
        ("h200-sxm-141", "on_demand"): Decimal("28.00"),
        ("h200-sxm-141", "spot"): Decimal("11.60"),
        ("b200-sxm-180", "on_demand"): Decimal("44.00"),
    }


def gpuhunt_zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.csv", content)
    return buffer.getvalue()


def test_gpuhunt_zip_is_read_a_provider_a_file(shipped):
    content = gpuhunt_zip(crusoe=(FILES / "gpuhunt_crusoe.csv").read_bytes())
    rows = staged(shipped, ImportOrder(file_format="gpuhunt", content=content, filename="v2.zip", observed_on=TODAY))
    assert {row.key.provider for row in rows} == {"crusoe"}
    eight = next(row for row in rows if row.accelerator_count == 8 and row.key.purchase_model == "on_demand")
    assert (eight.accelerator_id, eight.amount) == ("mi300x", Decimal("27.6"))
    unstated = next(row for row in rows if row.key.accelerator_label == "A100:80")
    assert (unstated.accelerator_id, unstated.excluded_reason) == (None, "form_factor_unstated")


def test_azure_items_become_on_demand_spot_savings_plan_and_reservation(shipped):
    rows = staged(shipped, order("azure_retail.json", "azure", observed_on=TODAY))
    found = {(row.key.purchase_model, row.key.product, row.key.term_months, row.currency): row for row in rows}
    assert found["on_demand", "standard", 0, "USD"].amount == Decimal("6.98")
    assert found["spot", "standard", 0, "USD"].amount == Decimal("2.8")
    assert found["reserved", "savings_plan", 12, "USD"].amount == Decimal("5.8067")
    assert found["reserved", "savings_plan", 36, "USD"].amount == Decimal("4.306")
    reservation = found["reserved", "reservation", 12, "USD"]
    assert reservation.amount == Decimal("5")
    assert "43800.0 USD for the whole term of 8760 h" in reservation.note
    assert found["on_demand", "standard", 0, "CNY"].indicative
    assert not found["on_demand", "standard", 0, "USD"].indicative
    assert len(rows) == 6


def test_aws_price_list_gives_on_demand_and_reserved_terms(shipped):
    rows = staged(shipped, order("aws_ec2_terms.json", "aws"))
    found = {(row.key.purchase_model, row.key.payment_option): row.amount for row in rows}
    assert found == {
        ("on_demand", "none"): Decimal("21.957642"),
        ("reserved", "none"): Decimal("13.9211"),
        ("reserved", "all_upfront"): Decimal("13"),
    }
    assert {row.accelerator_id for row in rows} == {"a100-sxm4-40"}


def test_a_true_aws_price_list_gives_its_price_and_no_free_capacity_block(shipped):
    (row,) = staged(shipped, order("aws_ec2.json", "aws"))
    assert (row.amount, row.key.purchase_model, row.valid_from) == (Decimal("32.7726"), "on_demand", date(2024, 5, 1))
    assert (row.accelerator_id, row.accelerator_count, row.sold_unit) == ("a100-sxm4-40", 8, "node")
    assert (row.vcpus, row.memory_gib, row.observed_on) == (96, Decimal(1152), date(2024, 5, 28))


def test_true_gcp_skus_make_the_machine_that_google_lists_at_29_39(shipped):
    rows = staged(shipped, order("gcp_skus.json", "gcp", observed_on=TODAY))
    machines = {row.key.region: row.amount for row in rows if row.scope == "bundle"}
    assert machines == dict.fromkeys(("us-central1", "us-east1", "us-west1"), Decimal("29.38708"))
    assert {row.amount for row in rows if row.scope == "component"} == {Decimal("2.933908")}


def test_gcp_machine_is_the_sum_of_its_skus_and_a_missing_part_gives_no_price(shipped):
    rows = staged(shipped, order("gcp_skus_incomplete.json", "gcp", observed_on=TODAY))
    machine = next(row for row in rows if isinstance(row, StagedPrice) and row.scope == "bundle")
    expected = 8 * Decimal("9.7966") + 208 * Decimal("0.0293") + 1872 * Decimal("0.00255")
    assert (machine.key.sku, machine.amount) == ("a3-highgpu-8g", expected)
    components = [row for row in rows if isinstance(row, StagedPrice) and row.scope == "component"]
    assert {row.amount for row in components} == {Decimal("9.7966"), Decimal("3.4369")}
    (broken,) = [row for row in rows if isinstance(row, RejectedRow)]
    assert (broken.reason, broken.raw["region"]) == ("incomplete_bundle", "asia-south1")


def test_ecb_rates_add_days_and_know_no_zero(seeded, clock):
    text = "Date,USD,CNY,KWD\n2026-11-27,1.1201,7.4401,N/A\n"
    what = ImportOrder(file_format="ecb", content=text.encode(), filename="eurofxref-hist.csv")
    assert run(seeded, clock, what)["ecb"].status == "committed"
    fx = seeded.read_now(service.current_snapshot).fx
    rate = fx.rate("EUR", "CNY", date(2026, 11, 29))
    assert (rate.rate, rate.rate_on) == (Decimal("7.4401"), date(2026, 11, 27))
    assert fx.rate("EUR", "KWD", date(2026, 11, 29)) is None
    # The whole file of the ECB has more currencies than ship; days that are held gain them, and once.
    assert fx.rate("EUR", "CZK", date(2026, 10, 30)) is None
    assert run(seeded, clock, order("ecb.csv", "ecb"))["ecb"].status == "committed"
    fx = seeded.read_now(service.current_snapshot).fx
    assert fx.rate("EUR", "CZK", date(2026, 10, 30)).rate == Decimal("24.353")
    assert fx.rate("EUR", "BGN", date(2026, 10, 30)) is None
    assert run(seeded, clock, order("ecb.csv", "ecb"))["ecb"].status == "unchanged"


def test_token_prices_keep_input_cached_input_and_output_apart(seeded, clock):
    what = ImportOrder(file_format="genai-prices", content=b"", filename="genai-prices", provider="fireworks")
    assert run(seeded, clock, what)["fireworks"].status == "committed"
    snapshot = seeded.read_now(service.current_snapshot)
    lines = {
        offer.key.product: resolve_price(snapshot, offer, TODAY).row
        for offer in snapshot.find_offers(providers=["fireworks"], instance_type="deepseek-v3p2")
    }
    assert {name: row.amount for name, row in lines.items()} == {
        "input": Decimal("0.56"),
        "cached_input": Decimal("0.28"),
        "output": Decimal("1.68"),
    }
    assert {row.price_unit for row in lines.values()} == {"per_mtok"}
    assert not any(offer.automatic for offer in snapshot.find_offers(providers=["fireworks"]))


def test_as_of_and_catalog_revision_ask_different_questions(seeded, clock):
    day = date(2026, 11, 20)
    wanted = {"providers": ["aws"], "instance_type": "p5.48xlarge", "regions": ["us-east-1"]}
    run(seeded, clock, own(f"{HEAD}\n{P5.format('50.00', '2026-11-20')}\n"))
    run(seeded, clock, own(f"{HEAD}\n{P5.format('52.00', '2026-11-20')}\n"))
    believed = []
    for number in (1, 2, 3):
        snapshot = seeded.read_now(lambda connection, number=number: service.snapshot(connection, number))
        (offer,) = snapshot.find_offers(**wanted, purchase_models=["on_demand"])
        typed_in = [row for row in snapshot.prices_of(offer.id) if row.source.citation == "AWS price page"]
        believed.append([row.amount for row in typed_in])
        assert resolve_price(snapshot, offer, date(2024, 6, 1)).amount == Decimal("98.32")
        assert resolve_price(snapshot, offer, day).amount == Decimal("55.04")
    assert believed == [[], [Decimal("50.00")], [Decimal("52.00")]]


def test_a_changed_price_closes_the_step_before_and_leaves_a_gap_where_nobody_looked(seeded, clock):
    run(seeded, clock, own(f"{HEAD}\n{P5.format('55.04', '2026-11-01')}\n", source="x"))
    run(seeded, clock, own(f"{HEAD}\n{P5.format('50.00', '2026-11-20')}\n"))
    snapshot = seeded.read_now(service.current_snapshot)
    (offer,) = snapshot.find_offers(
        providers=["aws"], instance_type="p5.48xlarge", regions=["us-east-1"], purchase_models=["on_demand"]
    )
    steps = [row for row in snapshot.prices_of(offer.id) if row.source.citation == "AWS price page"]
    assert [(row.valid_from, row.valid_to) for row in steps] == [
        (date(2026, 11, 1), date(2026, 11, 2)),
        (date(2026, 11, 20), None),
    ]


def test_a_jump_is_held_until_a_person_accepts_it_with_a_reason(seeded, clock):
    what = own(f"{HEAD}\n{P5.format('30.00', '2026-11-20')}\n")
    report = run(seeded, clock, what)["aws"]
    assert [held["reason"] for held in report.quarantined] == ["price_jump"]
    snapshot = seeded.read_now(service.current_snapshot)
    (entry,) = [
        held for held in snapshot.quarantine if held.holds and held.reason == "price_jump" and held.row.amount == 30
    ]
    revision = seeded.transact_now(
        lambda connection: service.decide_quarantined(
            connection,
            entry.id,
            decision="accepted",
            reason="confirmed on the vendor's page",
            actor="tester",
            now=clock.now(),
        )
    )
    after = seeded.read_now(service.current_snapshot)
    assert revision.number == after.number
    row = next(row for row in after.prices_of(entry.offer_id) if row.amount == Decimal("30"))
    assert "confirmed on the vendor's page" in row.note
    assert run(seeded, clock, what)["aws"].status == "unchanged"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty_file"),
        ((HEAD + "\n" + "aws,p5.48xl").encode(), "truncated_row"),
        (
            b"provider,instance_type,accelerator,accelerator_count,sold_unit,region,purchase_model,price\n",
            "missing_unit",
        ),
        ((HEAD + ",price\n").encode(), "missing_unit"),
        ((HEAD + ",colour\n").encode(), "unknown_column"),
        ((HEAD + "\n" + P5.format("55.04", "2026-11-20")).encode("utf-16"), "wrong_encoding"),
        ((HEAD + "\n" + P5.format('"55.04', "2026-11-20")).encode(), "malformed_csv"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_whole(shipped, text, reason):
    with pytest.raises(FileError) as refused:
        staged(shipped, ImportOrder(file_format="csv", content=text, filename="x"))
    assert refused.value.reason == reason


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (P5.format("-1", "2026-11-20"), "non_positive_price"),
        (P5.format("0", "2026-11-20"), "non_positive_price"),
        (P5.format("", "2026-11-20"), "missing_price"),
        (P5.format("1e400", "2026-11-20"), "malformed_price"),
        (P5.format("NaN", "2026-11-20"), "malformed_price"),
        (P5.format("1_000", "2026-11-20"), "malformed_price"),
        (P5.format("55.04", "20 November"), "malformed_date"),
        (P5.format("55.04", "2026-11-20").replace("H100-SXM5-80GB", "H100 Ultra"), "unknown_accelerator"),
        (P5.format("55.04", "2026-11-20").replace("aws,", "skynet,"), "unknown_provider"),
        (P5.format("55.04", "2026-11-20").replace("on_demand", "committed"), "ambiguous_commitment"),
        (P5.format("55.04", "2026-11-20").replace(",8,", ",0,"), "malformed_count"),
        (P5.format("55.04", "2026-11-20").replace("us-east-1", ""), "missing_region"),
    ],
)
def test_a_row_that_cannot_be_read_is_reported_with_its_reason(shipped, row, reason):
    (found,) = staged(shipped, own(f"{HEAD}\n{row}\n"))
    assert isinstance(found, RejectedRow)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("rows", "reasons"),
    [
        ([P5.format("6.88", "2026-11-20")], ["price_jump", "per_accelerator_price_suspected"]),
        ([P5.format("5504", "2026-11-20")], ["above_band"]),
        ([P5.format("55.04", "2026-11-20"), P5.format("56.04", "2026-11-20")], ["duplicate_key", "duplicate_key"]),
        (
            [P5.format("55.04", "2026-11-20"), P5.format("56.04", "2026-11-20").replace("on_demand", "spot")],
            ["spot_not_below_on_demand"],
        ),
    ],
)
def test_a_price_that_is_not_plausible_is_quarantined(seeded, clock, rows, reasons):
    report = run(seeded, clock, own("\n".join([HEAD, *rows]) + "\n"))["aws"]
    assert len(report.quarantined) >= 1
    assert {held["reason"] for held in report.quarantined} <= set(reasons)


def test_the_raw_file_is_kept_with_its_hash(seeded, clock):
    what = order("own_prices.csv", "csv")
    run(seeded, clock, what)
    (kept,) = {row["file_sha256"] for row in seeded.read_now(lambda c: service.list_imports(c, before=None, limit=9))}
    assert seeded.read_now(lambda connection: repository.read_import_file(connection, kept)) == what.content


def test_a_kill_in_mid_import_leaves_nothing_behind(seeded, clock, monkeypatch):
    parsed = parse_import(seeded.read_now(service.current_snapshot), order("own_prices.csv", "csv"), TODAY)
    before = {table: seeded.read_now(lambda c, t=table: repository.count_rows(c, t)) for table in tables.APPEND_ONLY}

    def die(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(importing.repository, "insert_import", die)
    with pytest.raises(KeyboardInterrupt):
        seeded.transact_now(
            lambda connection: service.commit_import(connection, parsed, "aws", now=clock.now(), actor="tester")
        )
    after = {table: seeded.read_now(lambda c, t=table: repository.count_rows(c, t)) for table in tables.APPEND_ONLY}
    assert after == before


def test_two_imports_at_once_give_two_revisions_and_one_price_each(seeded, clock):
    first = own(f"{HEAD}\n{P5.format('55.04', '2026-11-20')}\n")
    second = own(f"{HEAD}\n{P5.format('55.04', '2026-11-21')}\n")
    base = seeded.read_now(service.current_snapshot)
    # Both were read against the same revision; each commit plans again against what it finds.
    both = [parse_import(base, what, TODAY) for what in (first, second)]
    for parsed in both:
        seeded.transact_now(
            lambda connection, parsed=parsed: service.commit_import(
                connection, parsed, "aws", now=clock.now(), actor="tester"
            )
        )
    snapshot = seeded.read_now(service.current_snapshot)
    assert snapshot.number == 3
    rows = [row for rows in snapshot.prices.values() for row in rows if row.source.citation == "AWS price page"]
    assert [(row.valid_from, row.observed_on) for row in rows] == [(date(2026, 11, 20), date(2026, 11, 21))]


def test_the_difference_between_revisions_names_what_moved(seeded, clock):
    run(seeded, clock, own(f"{HEAD}\n{P5.format('55.04', '2026-11-01')}\n"))
    run(seeded, clock, own(f"{HEAD}\n{P5.format('50.00', '2026-11-20')}\n"))
    from app.catalog.changes import diff_snapshots

    older, newer = (seeded.read_now(lambda c, n=number: service.snapshot(c, n)) for number in (2, 3))
    changes = diff_snapshots(older, newer).prices
    assert [(change.before, change.after, change.valid_to) for change in changes] == [
        (Decimal("55.04"), Decimal("55.04"), date(2026, 11, 2)),
        (None, Decimal("50.00"), None),
    ]


def test_an_unread_price_never_takes_the_place_of_another_outcome(seeded, clock):
    text = f"{HEAD}\naws,p9.48xlarge,B300-SXM-288GB,8,node,us-east-1,on_demand,0.01,2026-11-20,AWS price page\n"
    run(seeded, clock, own(text))
    answer = price_of(seeded, providers=["aws"], instance_type="p9.48xlarge")
    assert answer.outcome is Outcome.QUARANTINED
    assert answer.amount is None
