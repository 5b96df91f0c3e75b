"""Additions to a JSON text: what was there stays as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wave_agent.splicing import add_items, add_members

SETTINGS = """{
    "permissions": {"allow": ["Bash(ls:*)",   "Read"]},
    "hooks": {
        "Stop": [
            {"hooks": [{"command": "make test"}]}
        ],
        "PreToolUse": []
    },
    "model": "x"
}
"""


def test_an_item_goes_to_the_end_of_its_list_and_nothing_else_moves() -> None:
    changed = add_items(SETTINGS, ("hooks", "Stop"), [{"hooks": ["b"]}])
    assert changed == SETTINGS.replace(
        '{"hooks": [{"command": "make test"}]}\n',
        '{"hooks": [{"command": "make test"}]},\n            {\n                "hooks": [\n'
        '                    "b"\n                ]\n            }\n',
    )


def test_an_empty_list_opens() -> None:
    changed = add_items(SETTINGS, ("hooks", "PreToolUse"), ["a"])
    assert '"PreToolUse": [\n            "a"\n        ]\n' in changed


def test_a_list_within_a_line_grows_downwards() -> None:
    changed = add_items(SETTINGS, ("permissions", "allow"), ["Glob"])
    assert '["Bash(ls:*)",   "Read",\n        "Glob"\n    ]},' in changed


def test_a_member_is_added_to_an_object() -> None:
    changed = add_members(SETTINGS, (), {"env": {"A": "ä"}})
    assert changed.endswith('"model": "x",\n    "env": {\n        "A": "ä"\n    }\n}\n')
    assert add_members("{}\n", (), {"a": 1}) == '{\n  "a": 1\n}\n'


def test_a_text_of_one_line_stays_one() -> None:
    assert add_members('{"a": [1]}', (), {"b": {"c": 2}}) == '{"a": [1], "b": {"c": 2}}'


def test_line_ends_stay_what_they_are() -> None:
    changed = add_members('{\r\n\t"a": 1\r\n}\r\n', (), {"b": [2]})
    assert changed == '{\r\n\t"a": 1,\r\n\t"b": [\r\n\t\t2\r\n\t]\r\n}\r\n'


def test_a_place_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        add_items("{}", ("a",), [1])


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abcde"), values), st.lists(values, min_size=1), st.sampled_from([None, 1, 4]))
def test_what_is_read_back_is_what_was_there_and_what_was_added(
    before: dict[str, Any], items: list[Any], indent: int | None
) -> None:
    text = json.dumps({**before, "list": [0]}, indent=indent)
    assert json.loads(add_items(text, ("list",), items)) == {**before, "list": [0, *items]}
    assert json.loads(add_members(text, (), {"new": items})) == {**before, "list": [0], "new": items}
