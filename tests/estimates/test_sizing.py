"""Sizes of clusters to try: powers of two, whole servers, at any size a request can ask for."""

import pytest

from app.estimates.sizing import rounded_up


@pytest.mark.parametrize(
    ("accelerators", "per_node", "expected"),
    [(1, 8, 1), (5, 8, 8), (9, 8, 16), (17, 8, 32), (5, 6, 6), (7, 6, 12), (2**60 + 1, 8, 2**61), (2**80, 8, 2**80)],
)
def test_sizes_go_up_by_powers_of_two(accelerators: int, per_node: int, expected: int) -> None:
    assert rounded_up(accelerators, per_node) == expected
