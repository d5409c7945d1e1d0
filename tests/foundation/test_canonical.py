"""Canonical JSON is RFC 8785 to the byte, whoever of the two libraries writes it."""

import math

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from app.foundation.canonical import canonical_bytes, canonical_sha256

LARGEST = 2**53 - 1
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-LARGEST, LARGEST)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner) | st.dictionaries(st.text("abz~09_é"), inner),
    max_leaves=30,
)


@given(VALUES)
@example({"€": 1, "\r": 2, "דּ": 3, "1": 4, "😀": 5, "\x80": 6, "ö": 7})  # RFC 8785, 3.2.3
@example([333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001])  # RFC 8785, 3.2.2
@example([-0.0, 1e15, 1e16, 1e20, 1e21, 1e-4, 1e-5, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 9007199254740991.0])
@example('€$\x0f\nA\'\x42"\\\\"/\x7f\x1f\b\t\f\r')
def test_bytes_are_those_of_the_reference(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(st.floats(min_value=1e-9, max_value=1e23))
def test_every_size_of_number_is_written_as_the_reference_does(number):
    assert canonical_bytes([number, -number, round(number)][:2]) == rfc8785.dumps([number, -number])


@pytest.mark.parametrize("value", [math.nan, math.inf, 2**53, -(2**53), 2**70, {"a": [2**60]}])
def test_what_json_numbers_cannot_hold_is_refused(value):
    with pytest.raises(ValueError):
        canonical_bytes(value)


@pytest.mark.parametrize("value", [object(), {1: "a"}, b"bytes", {"a": {1, 2}}])
def test_what_json_has_no_form_for_is_refused(value):
    with pytest.raises(Exception, match=r"(?i)unsupported|type|key"):
        canonical_bytes(value)


def test_order_of_members_does_not_matter():
    assert canonical_sha256({"b": 1, "a": 2.0}) == canonical_sha256({"a": 2, "b": 1.0})
