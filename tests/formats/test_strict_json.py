"""Strict JSON: what is refused, where, and that nothing else is."""

import json
from math import inf
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.strict_json import (
    MAX_DEPTH,
    Document,
    StrictJSONError,
    Twice,
    parse_document,
    parse_object,
    show_path,
    type_name,
    unsound,
)

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=20
)
NEARLY_JSON = st.lists(
    st.sampled_from(
        [*'{}[]:,"\\ \n\t', '"a"', '"b"', "1", "-", ".5", "e9", "1e999", "null", "true", "NaN", "-Infinity"]
    ),
    max_size=24,
).map("".join)


def strictly(text: str) -> Any:
    """What strict JSON means, said with the standard reader: raises ValueError for all that is not."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    def no_constant(name: str) -> Any:
        raise ValueError(name)

    def integer(digits: str) -> float:
        return int(digits) if len(digits) < 4000 else float(digits)

    return json.loads(text, object_pairs_hook=unique, parse_constant=no_constant, parse_int=integer)


def alike(one: object, other: object) -> bool:
    """Equal as JSON: `1`, `1.0` and `True` are three things."""
    return json.dumps(one) == json.dumps(other)


# ------------------------------------------------------------------------------------------------------ any text at all


@settings(deadline=None)
@given(value=VALUES, indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans())
def test_a_document_is_read_as_the_standard_reader_reads_it(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert alike(parse_document(text).value, value)


@settings(deadline=None)
@given(value=st.dictionaries(st.text(), VALUES), ascii_only=st.booleans())
def test_an_object_is_read_as_the_standard_reader_reads_it(value: dict[str, Any], ascii_only: bool) -> None:
    assert alike(parse_object(json.dumps(value, ensure_ascii=ascii_only)), value)


@given(text=NEARLY_JSON | st.text())
@example("")
@example("1" * 5000)
@example("[1e999]")
@example('{"a": 1, "a": 1}')
@example("[NaN]")
@example("[" * 100_000)
def test_a_document_is_accepted_exactly_when_it_is_strict_json(text: str) -> None:
    assume("\\ud" not in text.lower())  # halves of a pair have a test of their own
    try:
        expected = strictly(text)
    except (ValueError, RecursionError):
        with pytest.raises(StrictJSONError):
            parse_document(text)
    else:
        assert alike(parse_document(text).value, expected)


@given(text=NEARLY_JSON | NEARLY_JSON.map(lambda inner: f'{{"a": {inner}}}') | st.text())
@example("1" * 5000)
@example('{"decision": "block", "decision": "approve"}')
@example('{"a": ' * 100_000)
def test_an_object_is_accepted_exactly_when_it_is_strict_json(text: str) -> None:
    assume("\\ud" not in text.lower())
    text = text.strip()  # as everything that a hook prints
    try:
        expected = strictly(text)
    except (ValueError, RecursionError):
        expected = None
    if isinstance(expected, dict):
        assert alike(parse_object(text), expected)
    else:
        with pytest.raises(StrictJSONError):
            parse_object(text)


@settings(deadline=None)
@given(value=VALUES, at=st.integers(min_value=0), extra=st.text(alphabet='{}[]:,"\\01eN ', max_size=2))
def test_a_slip_of_the_pen_that_is_no_json_is_refused_with_its_place(value: Any, at: int, extra: str) -> None:
    whole = json.dumps(value)
    place = at % (len(whole) + 1)
    text = whole[:place] + extra + whole[place + 1 :]
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(StrictJSONError) as refused:
            parse_document(text)
        assert refused.value.line == 1
        assert 1 <= refused.value.column <= len(text) + 1


# ------------------------------------------------------------------------------------------------- what is not accepted


@rows(
    ("text", "problem"),
    [
        ('{"a": 1, "b": 2, "a": 3}', 'duplicate key "a"'),
        ('{"x": {"a": 1, "a": 1}}', 'duplicate key "a"'),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": Infinity}', "Infinity is not JSON"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        ("[]", "a list, not an object"),
        ('"text"', "a string, not an object"),
        ("true", "true or false, not an object"),
        ("12", "a number, not an object"),
        ("1.5", "a number, not an object"),
        ("null", "null, not an object"),
        ("{'a': 1}", "Expecting property name enclosed in double quotes"),
        ("{} {}", "unexpected text after the end of the object"),
    ],
)
def test_an_object_that_is_not_strict_json_is_refused_with_the_reason(text: str, problem: str) -> None:
    with pytest.raises(StrictJSONError) as refused:
        parse_object(text)
    assert refused.value.problem == problem


def test_a_refusal_tells_line_and_column_where_they_are_known() -> None:
    with pytest.raises(StrictJSONError, match=r"^line 2, column 8: Expecting value$"):
        parse_object('{\n  "a": }')
    with pytest.raises(StrictJSONError, match=r"^NaN is not JSON$"):
        parse_object('{"a": NaN}')


def nested(levels: int, innermost: str = "") -> str:
    """An object with lists in it, so many levels deep."""
    return '{"a": ' + "[" * (levels - 1) + innermost + "]" * (levels - 1) + "}"


@pytest.mark.parametrize("parse", [parse_object, parse_document])
@pytest.mark.parametrize("innermost", ["", "1"], ids=["empty", "with a value"])
def test_64_levels_are_accepted_and_65_are_not(parse: Any, innermost: str) -> None:
    assert MAX_DEPTH == 64
    parse(nested(64, innermost))
    with pytest.raises(StrictJSONError, match="nested deeper than 64"):
        parse(nested(65, innermost))


def test_many_brackets_that_are_not_nested_are_accepted() -> None:
    assert parse_object(json.dumps({"a": [[]] * 100, "b": "[" * 100})) == {"a": [[]] * 100, "b": "[" * 100}


@pytest.mark.parametrize(
    ("escaped", "read"),
    [
        (r"\ud83d\ude00", "😀"),
        (r"\ud800", "\ufffd"),
        (r"\udc00 lone", "\ufffd lone"),
        (r"x\ud800y", "x\ufffdy"),
        (r"\ufeffkept", "\ufeffkept"),
    ],
)
def test_half_a_surrogate_pair_is_replaced_because_no_file_could_hold_it(escaped: str, read: str) -> None:
    text = f'{{"{escaped}": ["{escaped}", 1]}}'
    assert parse_object(text) == {read: [read, 1]}
    assert parse_document(text).value == {read: [read, 1]}
    json.dumps(parse_object(text), ensure_ascii=False).encode()


def test_keys_of_a_file_that_become_equal_by_that_replacement_are_refused() -> None:
    with pytest.raises(StrictJSONError, match="duplicate key"):
        parse_document(r'{"\ud800": 1, "\udc00": 2}')


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000], ids=["1e999", "-1e999", "5000 digits"])
def test_a_number_out_of_range_is_json_and_can_be_recognised(number: str) -> None:
    text = f'{{"a": [{{"b": {number}}}]}}'
    assert abs(parse_object(text)["a"][0]["b"]) == inf
    assert abs(parse_document(text).value["a"][0]["b"]) == inf
    assert unsound(parse_object(text)) == "a number that is out of range"


@pytest.mark.parametrize("value", [{}, {"a": [1, 1.5, "inf", None, True, {"b": []}]}, 1e308])
def test_other_values_are_in_range(value: object) -> None:
    assert unsound(value) == ""


# --------------------------------------------------------------------------------------------------------------- places


def test_each_value_of_a_document_has_its_line() -> None:
    document = parse_document('\ufeff{\n  "a": [\n    1,\n    {"b": 2}\n  ],\n\n  "c":\n    null\n}\n')
    assert document.value == {"a": [1, {"b": 2}], "c": None}
    assert document.lines == {(): 1, ("a",): 2, ("a", 0): 3, ("a", 1): 4, ("a", 1, "b"): 4, ("c",): 8}


def test_the_line_of_something_absent_is_that_of_the_nearest_value_around_it() -> None:
    document = parse_document('{\n  "a": [\n    {}\n  ]\n}')
    assert document.line(("a", 0, "matcher")) == 3
    assert document.line(("a", 7, "matcher", "x")) == 2
    assert document.line(("z",)) == 1
    assert document.line(()) == 1


def test_a_document_made_in_code_has_no_lines() -> None:
    assert Document({"a": 1}, {}).line(("a",)) is None


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("hooks", "PreToolUse", 0, "matcher"), "hooks.PreToolUse[0].matcher"),
        (("hooks",), "hooks"),
        ((0, "a"), "[0].a"),
        ((), "the top level"),
    ],
)
def test_a_path_is_shown_as_people_write_it(path: tuple[str | int, ...], shown: str) -> None:
    assert show_path(path) == shown


@rows(
    ("value", "name"),
    [
        ({}, "an object"),
        ([], "a list"),
        ("", "a string"),
        (True, "true or false"),
        (1, "a number"),
        (1.5, "a number"),
        (None, "null"),
        (object(), "object"),
    ],
)
def test_types_are_called_what_a_json_author_calls_them(value: object, name: str) -> None:
    assert type_name(value) == name


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": 1,}', "line 1, column 8"),
        ('{"a": [1,\n]}', "line 1, column 9"),
        ('{"a": 1 ,\n }', "line 1, column 9"),
        ('{\n"a": 1\n,}', "line 3, column 1"),
    ],
)
def test_a_trailing_comma_is_called_that_on_every_python(text: str, place: str) -> None:
    with pytest.raises(StrictJSONError, match=f"^{place}: trailing comma: remove it$"):
        parse_object(text)


@pytest.mark.parametrize("text", ["{,}", '{"a":,}', '{"a": "x,}" b}', '{"a": 1,, }', '{"a": 1,'])
def test_other_mistakes_with_commas_are_not_called_trailing(text: str) -> None:
    with pytest.raises(StrictJSONError) as refused:
        parse_object(text)
    assert "trailing" not in str(refused.value)


def test_duplicate_keys_can_be_kept_for_a_reader_who_knows_which_value_is_safe():
    found = parse_object('{"a": 1, "a": {"b": "\\ud800"}, "c": {"d": [], "d": 2, "d": 3}}', twice=True)
    assert found == {"a": Twice((1, {"b": "\ufffd"})), "c": {"d": Twice(([], 2, 3))}}
    assert isinstance(found["a"], Twice)
    assert unsound([{"x": found["c"]}]) == "a duplicate key"
    assert unsound([{"x": 1}, "y"]) == ""
    deep = '{"a": ' * 40 + "1" + "}" * 40
    assert parse_object(f'{{"a": {deep}, "a": {deep}}}', twice=True)
    with pytest.raises(StrictJSONError, match="nested deeper"):
        parse_object('{"x": 1, "x": ' + '{"a": ' * 70 + "1" + "}" * 71, twice=True)
    with pytest.raises(StrictJSONError, match="duplicate key"):
        parse_object('{"a": 1, "a": 2}')


def test_a_document_of_very_many_values_is_refused_and_its_size_costs_no_more_than_its_length() -> None:
    with pytest.raises(StrictJSONError, match="more than 50,000 values") as raised:
        parse_document("[\n" + ",\n".join("1" for _ in range(60_000)) + "]")
    assert raised.value.line == 50_001
    assert len(parse_document("[" + ",\n".join("1" for _ in range(40_000)) + "]").value) == 40_000
