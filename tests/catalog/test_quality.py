"""The data-quality suite: clean on what ships, and every check fires on the mistake it is named after."""

from dataclasses import replace

import pytest

from app.catalog.quality import audit
from tests.catalog.builders import make_row


def test_the_shipped_catalog_is_clean(shipped):
    assert audit(shipped) == ()


def with_accelerator(shipped, name, **changes):
    entry = shipped.accelerators[name]
    return replace(shipped, accelerators={**shipped.accelerators, name: replace(entry, **changes)})


def peaks(shipped, name, **changes):
    spec = shipped.accelerators[name].spec
    return replace(spec, dense_peaks=replace(spec.dense_peaks, **changes))


def codes(snapshot):
    return {finding.code for finding in audit(snapshot)}


def test_a_sparse_fp8_figure_beside_a_dense_bf16_is_found(shipped):
    wrong = with_accelerator(shipped, "h100-sxm5-80", spec=peaks(shipped, "h100-sxm5-80", fp8=3958e12))
    assert codes(wrong) == {"sparse_as_dense"}


def test_a_whole_sparse_column_is_found_by_the_generation_before(shipped):
    wrong = with_accelerator(shipped, "h100-sxm5-80", spec=peaks(shipped, "h100-sxm5-80", bf16=1979e12, fp8=3958e12))
    assert "generation_jump" in codes(wrong)


@pytest.mark.parametrize("size", [180e9, 192e9, 180 * 2**30])
def test_b200_memory_is_what_the_device_reports_never_a_label(shipped, size):
    spec = replace(shipped.accelerators["b200-sxm-180"].spec, memory_bytes=size)
    assert codes(with_accelerator(shipped, "b200-sxm-180", spec=spec)) == {"memory_from_label"}


def test_decimal_megabytes_in_the_column_of_mib_are_found(shipped):
    wrong = with_accelerator(shipped, "h100-sxm5-80", memory_mib_reported=85899)
    assert "gb_or_gib" in codes(wrong)


def test_a10g_is_not_a10(shipped):
    wrong = replace(shipped, accelerator_aliases={**shipped.accelerator_aliases, "a10g-24gb": "a10"})
    assert codes(wrong) == {"a10_is_not_a10g"}


def test_a_superchip_of_four_and_a_component_on_offer_are_found(shipped):
    offers = list(shipped.offers.values())
    superchip = next(offer for offer in offers if offer.sold_unit == "superchip")
    component = next(offer for offer in offers if offer.scope == "component")
    changed = {
        superchip.id: replace(superchip, accelerator_count=4),
        component.id: replace(component, excluded_reason=None),
    }
    assert codes(replace(shipped, offers={**shipped.offers, **changed})) == {"sold_unit", "component_as_bundle"}


def test_a_yuan_price_in_dollars_and_an_overlap_are_found(shipped):
    offer = next(offer for offer in shipped.offers.values() if offer.provider == "alibaba")
    rows = (
        make_row("297.476", "2024-12-31", offer_id=offer.id, currency="USD", id="a"),
        make_row("250", "2025-06-01", offer_id=offer.id, currency="CNY", id="b"),
    )
    assert codes(replace(shipped, prices={**shipped.prices, offer.id: rows})) == {"currency", "valid_range_overlap"}
