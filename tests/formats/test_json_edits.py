"""Edits of JSON text: the value is there, everything else is as it was, byte for byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.json_edits import append, put, put_at, remove, replace_span
from wave_agent.formats.strict_json import StrictJSONError, parse_document

HOOK = {"hooks": [{"command": "x"}]}
PATH = ("hooks", "Stop")


@pytest.mark.parametrize("text", ["", "  \n", "\ufeff"])
def test_an_empty_text_becomes_a_document(text: str) -> None:
    made = append(text, PATH, 1)
    assert made == '{\n  "hooks": {\n    "Stop": [\n      1\n    ]\n  }\n}\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "hooks": {\n    "Stop": [\n      1\n    ]\n  }\n}'),
        ('{"a": 1}', '{"a": 1, "hooks": {"Stop": [1]}}'),
        ('{"hooks": {"Stop": [0]}}', '{"hooks": {"Stop": [0, 1]}}'),
        ('{\n\t"a":1\n}\n', '{\n\t"a":1,\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t1\n\t\t]\n\t}\n}\n'),
        (
            '{\n    "hooks": {\n        "Stop": []\n    }\n}',
            '{\n    "hooks": {\n        "Stop": [\n            1\n        ]\n    }\n}',
        ),
        ('{\r\n  "hooks": {\r\n    "Stop": [\r\n      0\r\n    ]\r\n  }\r\n}',
         '{\r\n  "hooks": {\r\n    "Stop": [\r\n      0,\r\n      1\r\n    ]\r\n  }\r\n}'),
        ('\ufeff{\n  "hooks": {\n    "Stop": [\n      0\n    ]\n  }\n}',
         '\ufeff{\n  "hooks": {\n    "Stop": [\n      0,\n      1\n    ]\n  }\n}'),
    ],
)  # fmt: skip
def test_a_value_is_laid_out_like_its_neighbours(before: str, after: str) -> None:
    assert append(before, PATH, 1) == after


def test_nothing_else_moves() -> None:
    settings = """{
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
    assert append(settings, ("permissions", "allow"), "Glob") == settings.replace('"Read"]', '"Read", "Glob"]')
    shown = json.dumps({"a": ["ä"]}, ensure_ascii=False, indent=4).replace("\n", "\n" + " " * 12)
    before = '"make test"}]}'
    assert append(settings, PATH, {"a": ["ä"]}) == settings.replace(before, f"{before},\n{' ' * 12}{shown}")


@pytest.mark.parametrize("text", ['{"hooks": []}', '{"hooks": {"Stop": {}}}', "[]", '{"hooks": null}'])
def test_something_else_in_the_way_is_told(text: str) -> None:
    with pytest.raises(TypeError):
        append(text, PATH, 1)


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(StrictJSONError):
        append('{"hooks": {,}}', PATH, 1)


scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=8
)
hooks = st.dictionaries(st.sampled_from(["Stop", "PreToolUse"]), st.lists(values, max_size=3))
documents = st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), values, max_size=3)


@given(documents, st.none() | hooks, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_whatever_the_document_it_is_the_same_with_one_value_more(
    document: dict[str, Any], events: dict[str, Any] | None, indent: Any, escaped: bool
) -> None:
    whole = document if events is None else {**document, "hooks": events}
    text = json.dumps(whole, indent=indent, ensure_ascii=escaped)
    made = append(text, PATH, HOOK)
    wanted = {**document, "hooks": {**(events or {}), "Stop": [*(events or {}).get("Stop", []), HOOK]}}
    assert json.loads(made) == wanted
    rest = iter(made)
    kept = [character for character in text if not character.isspace()]
    assert all(character in rest for character in kept), "what was there is there, in its order"


@given(documents)
def test_a_span_is_where_the_value_stands(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2)
    found = parse_document(text)
    for key, value in document.items():
        start, end = found.spans[key,]
        assert json.loads(text[start:end]) == value
        assert json.loads(replace_span(text, (start, end), "7")) == {**document, key: 7}


REMOVED = [
    ('{"a": [1, 2, 3]}', ("a", 0), '{"a": [2, 3]}'),
    ('{"a": [1, 2, 3]}', ("a", 2), '{"a": [1, 2]}'),
    ('{"a": [ 1 ]}', ("a", 0), '{"a": []}'),
    ('{\n  "a": 1,\n  "b": 2\n}\n', ("a",), '{\n  "b": 2\n}\n'),
    ('{\n  "a": 1,\n  "b": 2\n}\n', ("b",), '{\n  "a": 1\n}\n'),
    ('\ufeff{"a": {"x": 1}, "b": 2}', ("a",), '\ufeff{"b": 2}'),
]


@rows("text, path, left", REMOVED, ids=lambda one: ascii(one)[:30])
def test_a_value_is_removed_with_its_comma_and_nothing_else(text: str, path: tuple[str | int, ...], left: str) -> None:
    assert remove(text, path) == left


def test_what_was_appended_can_be_removed_again() -> None:
    text = '{\n    "a": [\n        {"x": 1}\n    ]\n}\n'
    assert remove(append(text, ("a",), {"y": [2]}), ("a", 1)) == text
    assert remove(append(text, ("b",), 1), ("b",)) == text
    with pytest.raises(KeyError):
        remove(text, ("c",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "model": "x"\n}\n'),
        ("{}", '{\n  "model": "x"\n}'),
        ('{"model": "y", "a": 1}', '{"model": "x", "a": 1}'),
        ('{"a": 1}', '{"a": 1, "model": "x"}'),
        ('{\r\n\t"model" :\t"yy",\r\n\t"a":1\r\n}\r\n', '{\r\n\t"model" :\t"x",\r\n\t"a":1\r\n}\r\n'),
        ('\ufeff{\n  "a": {"model": "z"}\n}', '\ufeff{\n  "a": {"model": "z"},\n  "model": "x"\n}'),
    ],
)
def test_a_key_is_set_in_its_place_or_at_the_end(before: str, after: str) -> None:
    assert put(before, "model", "x") == after


def test_a_key_cannot_be_set_in_a_list() -> None:
    with pytest.raises(TypeError, match="the top level"):
        put("[]", "model", "x")


@given(
    settings=st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=4),
    key=st.text(max_size=5),
    indent=st.sampled_from([None, 2, "\t"]),
)
def test_setting_a_key_changes_only_that_key(settings: dict[str, Any], key: str, indent: Any) -> None:
    text = json.dumps(settings, indent=indent)
    assert json.loads(put(text, key, "new")) == {**settings, key: "new"}


@rows(
    ("before", "after"),
    [
        ("", '{\n  "a": {\n    "b": {\n      "x": 1\n    }\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": {\n      "x": 1\n    }\n  }\n}'),
        ('{"a": {}, "z": 0}', '{"a": {\n  "b": {\n    "x": 1\n  }\n}, "z": 0}'),
        ('{"a": {"b": 0}, "z": 0}', '{"a": {"b": {"x": 1}}, "z": 0}'),
        ('{\n\t"a": {\n\t\t"b": [ 0 ],\n\t\t"c": [ 0 ]\n\t}\n}',
         '{\n\t"a": {\n\t\t"b": {\n\t\t\t"x": 1\n\t\t},\n\t\t"c": [ 0 ]\n\t}\n}'),
        ('\ufeff{\r\n  "a": {\r\n    "c": 0\r\n  }\r\n}',
         '\ufeff{\r\n  "a": {\r\n    "c": 0,\r\n    "b": {\r\n      "x": 1\r\n    }\r\n  }\r\n}'),
    ],
)  # fmt: skip
def test_a_value_deep_inside_is_set_and_replaced(before: str, after: str) -> None:
    assert put_at(before, ("a", "b"), {"x": 1}) == after


@rows(("text", "says"), [('{"a": []}', "a has"), ("[]", "the top level has")])
def test_a_value_is_not_put_into_something_that_is_no_object(text: str, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        put_at(text, ("a", "b"), 1)
