from typing import Any

import pytest

from app.quotes.mergepatch import changed_pointers, merge_patch


# The examples of RFC 7396, Appendix A.
@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_rfc_7396_examples(target: Any, patch: Any, result: Any) -> None:
    assert merge_patch(target, patch) == result


def test_changed_places() -> None:
    before = {"a": {"b/c": [1, 2]}, "same": 1, "gone": 1}
    after = {"a": {"b/c": [1, 3]}, "same": 1, "new": 2}
    assert changed_pointers(before, after) == ["/a/b~1c/1", "/gone", "/new"]


def test_types_count_as_changes_and_the_list_is_bounded() -> None:
    assert changed_pointers({"a": 1}, {"a": True}) == ["/a"]
    assert len(changed_pointers({str(i): 0 for i in range(100)}, {}, limit=7)) == 7
