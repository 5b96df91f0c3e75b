"""Calls of small models: the shapes in `repair_corpus.json`, and what holds for any text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.models.repair import calls_in_text, is_call_attempt, repair_arguments

CORPUS = json.loads(Path(__file__).with_name("repair_corpus.json").read_text(encoding="utf-8"))
REQUIRED = {"Bash": ["command"], "Read": ["file_path"], "Write": ["file_path", "content"], "Todo": []}


def cases(kind: str) -> list[Any]:
    return [pytest.param(case, id=re.sub(r"\W+", "-", case["name"])) for case in CORPUS[kind]]


@rows("case", cases("arguments"))
def test_arguments_are_read_as_they_are_meant_or_not_at_all(case: dict[str, Any]) -> None:
    read = repair_arguments(case["text"])
    assert json.dumps(read, ensure_ascii=False) == json.dumps(case["arguments"], ensure_ascii=False)


@rows("case", cases("calls"))
def test_an_answer_makes_the_calls_that_it_clearly_makes(case: dict[str, Any]) -> None:
    prose, calls = calls_in_text(case["text"], REQUIRED, REQUIRED, seen=case.get("seen_texts", ()))
    assert (prose, [list(call) for call in calls]) == (case["prose"], case["calls"])


def test_the_corpus_has_shapes_that_are_calls_and_shapes_that_are_not() -> None:
    calls = [bool(case["calls"]) for case in CORPUS["calls"]]
    arguments = [case["arguments"] is not None for case in CORPUS["arguments"]]
    assert calls.count(True) >= 45
    assert calls.count(False) >= 30
    assert arguments.count(True) >= 25
    assert arguments.count(False) >= 20
    assert all(case["seen"] for kind in CORPUS.values() for case in kind)


@rows("case", [case for case in cases("calls") if case.values[0]["calls"]])
def test_no_call_of_the_corpus_survives_as_a_quotation(case: dict[str, Any]) -> None:
    text = case["text"]
    unclosed = f"The file contains this:\n~~~\n{text}\n"
    for quoted in (f"{unclosed}~~~", f"{unclosed}~~~\nThat is all.", f"<document>\n{text}\n</document>"):
        assert calls_in_text(quoted, REQUIRED, REQUIRED) == (quoted, [])
    assert calls_in_text(text, REQUIRED, REQUIRED, seen=[f"before\n{text}\nafter"]) == (text, [])


NO_ATTEMPT = re.compile(
    r"example|prose|contains|printed|repeated|quotation|code|backticks|reasoning|warning|intention|doctest"
)
ATTEMPT = re.compile(r"too many|cut off$|names in the tag|tools? (is|that is) not known|invented|without JSON")


@rows("case", [case for case in cases("calls") if not case.values[0]["calls"]])
def test_an_answer_that_meant_to_call_is_told_from_one_that_speaks_of_calls(case: dict[str, Any]) -> None:
    if "seen_texts" in case or case["name"] in {"JSON in front of prose", "a file's text that is cut off"}:
        return
    if NO_ATTEMPT.search(case["name"]) and "mark of reasoning" not in case["name"]:
        assert not is_call_attempt(case["text"], REQUIRED)
    if ATTEMPT.search(case["name"]):
        assert is_call_attempt(case["text"], REQUIRED)


@rows(
    ("text", "cut", "attempt"),
    [
        ('{"name": "Bash", "arguments": {"command": "ls" "timeout": 3}}', False, True),
        ('```json\n{"name": "Bash", "arguments": {"command": ls}}\n```', False, True),
        ('{"name": "Bash", "arguments": {}}', False, False),
        ('{"name": "Bash", "arguments": {}}', True, True),
        ('{"name": "Bash", "version": 5', False, False),
        ('{"name": "Shell", "arguments": {', False, False),
        ('Listing now.\n<tool_call>{"name": "Bash", "argum', True, True),
        ('Listing now.\n<tool_call>{"name": "Bash", "argum', False, False),
        ("Action: none is needed", False, False),
        ("<function=Bash>\n<parameter=command>ls", False, True),
        ("", False, False),
        ("<think>Hm.</think>", False, False),
        ("{" * 100_000 + '"Bash" "arguments"', False, False),
        ('{"name": "Bash", "arguments": ' + "[" * 100_000, False, True),
    ],
)
def test_what_looks_like_a_call(text: str, cut: bool, attempt: bool) -> None:
    assert is_call_attempt(text, REQUIRED, cut=cut) is attempt


PIECES = [piece for case in CORPUS["calls"] for piece in re.findall(r"\w+|\s+|[^\w\s]+", case["text"])]
MODEL_TEXT = st.text() | st.lists(st.sampled_from(sorted(set(PIECES))), max_size=40).map("".join)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
JSON_OBJECTS = st.dictionaries(st.text(), JSON_VALUES, max_size=5)


@given(text=MODEL_TEXT)
@example("{" * 100_000)
@example('{"a":' * 100_000)
@example("[" * 100_000 + "Bash")
@example("<tool_call>" * 5_000 + "Bash")
@example("<a>" * 5_000 + "Bash")
@example('{"a": ' + "9" * 5_000 + ",}")
@example('{"a": "\\ud800",}')
@example("```")
@example("``````")
@example("Bash(")
def test_no_text_raises(text: str) -> None:
    is_call_attempt(text, REQUIRED)
    read = repair_arguments(text)
    assert read is None or isinstance(read, dict)
    prose, calls = calls_in_text(text, REQUIRED, REQUIRED)
    assert prose in text
    assert prose == text or calls
    assert all(name in REQUIRED for name, _ in calls)


@given(value=JSON_OBJECTS, ascii_only=st.booleans(), indent=st.none() | st.just(2))
def test_a_valid_object_is_returned_unchanged(value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert repair_arguments(text) == value
    assert repair_arguments(json.dumps(text)) == value
    assert json.dumps(repair_arguments(text)) == json.dumps(value)


@given(value=JSON_OBJECTS)
def test_an_object_in_a_fence_or_in_pythons_form_means_the_same(value: dict[str, Any]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert repair_arguments(f"```json\n{text}\n```") == value
    assert repair_arguments(f"{text[:-1]}{',' if value else ''}}}") == value


@given(value=JSON_OBJECTS, cut=st.integers(min_value=1, max_value=60))
def test_what_is_read_from_a_text_that_is_cut_off_was_in_it(value: dict[str, Any], cut: int) -> None:
    read = repair_arguments(json.dumps(value)[:-cut])
    assert read is None or set(read) <= set(value)
    for key, part in (read or {}).items():
        assert isinstance(part, dict | list) or part == value[key]


@given(case=st.sampled_from(CORPUS["calls"]), noise=MODEL_TEXT)
def test_there_is_no_call_where_no_known_tool_is_named(case: dict[str, Any], noise: str) -> None:
    text = case["text"] + noise
    assert calls_in_text(text, ["Unnamed", "bash"], {}) == (text, [])
    assert calls_in_text(text, [], {}) == (text, [])


@given(arguments=JSON_OBJECTS, prose=st.sampled_from(["", "I'll do it.\n", "<think>hm</think>\n"]))
def test_arguments_arrive_in_a_marked_call_as_they_were_written(arguments: dict[str, Any], prose: str) -> None:
    written = json.dumps({"name": "Todo", "arguments": arguments})
    if "</tool_call>" not in written and not {"type", "properties"} <= set(arguments):
        assert calls_in_text(f"{prose}<tool_call>{written}</tool_call>", REQUIRED, REQUIRED)[1] == [("Todo", arguments)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("end", ["", "\n<tool_call>x"])
@pytest.mark.parametrize(
    "piece", ["<tool_call>", '"', "\\", "{", "[TOOL_CALLS]", "Action: Bash\n", "<a", "a", "/*", "`", "```json\n", " "]
)
def test_long_texts_are_read_in_time(piece: str, end: str) -> None:
    text = "Bash <" + piece * (200_000 // len(piece)) + end
    repair_arguments(text)
    repair_arguments("{" + text)
    assert calls_in_text(text, REQUIRED, REQUIRED) == (text, [])
