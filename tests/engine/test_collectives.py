"""All-to-all between domains: every copy on its own way, or each token once to a domain."""

import pytest

from app.engine.collectives import all_to_all_time

LINKS = {
    "scale_up_bytes_per_s": 450e9,
    "scale_out_bytes_per_s": 50e9,
    "scale_up_latency_s": 0.0,
    "scale_out_latency_s": 0.0,
}


def test_every_copy_crosses_on_its_own() -> None:
    # 32 members, 8 in a domain: 24 of 32 copies leave it
    assert all_to_all_time(1e9, 32.0, 8.0, **LINKS) == pytest.approx(1e9 * 24 / 32 / 50e9)


def test_a_token_crosses_once_for_each_domain_that_has_experts_of_it() -> None:
    # 8 copies over 4 domains reach 4 (1 - (3/4)^8) of them, three quarters of which are elsewhere
    reached = 4.0 * (1.0 - 0.75**8)
    expected = 1e9 / 8.0 * reached * 24 / 32 / 50e9
    assert all_to_all_time(1e9, 32.0, 8.0, **LINKS, copies=8.0) == pytest.approx(expected)


def test_one_copy_is_the_same_either_way_and_one_domain_never_crosses() -> None:
    assert all_to_all_time(1e9, 32.0, 8.0, **LINKS, copies=1.0) == pytest.approx(
        all_to_all_time(1e9, 32.0, 8.0, **LINKS)
    )
    assert all_to_all_time(1e9, 8.0, 8.0, **LINKS, copies=8.0) == pytest.approx(1e9 * 7 / 8 / 450e9)
