"""What hooks are given: text that every JSON reader and every shell can read, whatever a tool, model or user put in."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rows import rows
from wave_agent.formats.readable import encode_readable, readable, readable_text, why_unreadable
from wave_agent.formats.strict_json import MAX_DEPTH
from wave_agent.hooks.definitions import Layer
from wave_agent.hooks.events import HookEvent
from wave_agent.hooks.manager import HookManager, SessionFacts
from wave_agent.settings.hook_entries import load_hooks, parse_settings
from wave_agent.testing import FakeHookRunner

CHARACTERS = st.one_of(st.characters(exclude_categories=()), st.sampled_from("\0\ud800\udbff\udc00\udfff\udcff\\\"'u0"))
TEXTS = st.text(CHARACTERS, max_size=8)
VALUES = st.recursive(
    st.one_of(TEXTS, st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from([10**4000, -(10**310)])),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
PAYLOADS = st.dictionaries(TEXTS, VALUES, max_size=5)


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)


def nested(depth: int) -> Any:
    value: Any = "end"
    for _ in range(depth):
        value = [value]
    return value


def strictly_read(encoded: bytes) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    value = json.loads(encoded.decode("utf-8"), parse_constant=refuse)
    for text in texts_in(value):
        text.encode()
        assert "\0" not in text
    return value


@given(PAYLOADS)
def test_every_payload_is_strict_json_and_plain_text(payload: dict[str, Any]) -> None:
    assert strictly_read(encode_readable(payload)) == json.loads(json.dumps(readable(payload)))


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
@settings(max_examples=30, deadline=None)
@given(PAYLOADS)
def test_jq_reads_every_payload(payload: dict[str, Any]) -> None:
    done = subprocess.run(["jq", "-e", "type"], input=encode_readable(payload), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b'"object"\n'), done.stderr


@settings(deadline=None)
@given(PAYLOADS, TEXTS)
async def test_all_that_a_hook_is_started_with_can_be_read(facts: dict[str, Any], odd: str) -> None:
    """stdin, arguments and environment: whatever the event, the session and the surroundings hold."""
    runner = FakeHookRunner({})
    source = parse_settings('{"hooks": {"PostToolUse": ["./hook.sh"]}}', Layer.PROJECT, "settings.json")
    manager = HookManager(
        load_hooks([source]).hooks,
        runner=runner,
        session=SessionFacts(session_id=odd, transcript_path=odd, project_dir="/p", home="/h", start=odd),
        environment={"ODD": odd},
        settings_env={"OURS": odd},
    )
    await manager.run(
        HookEvent.POST_TOOL_USE,
        {"tool_name": f"T{odd}", "tool_input": facts, "tool_use_id": odd, "tool_response": {"content": odd, **facts}},
    )
    (job,) = runner.jobs
    strictly_read(job.stdin)
    for text in (*job.arguments, *job.env, *job.env.values()):
        text.encode()
        assert "\0" not in text


@given(VALUES)
def test_what_a_call_may_hold_is_given_as_it_is(value: Any) -> None:
    if why_unreadable(value) is None:
        assert readable(value) == value
        assert strictly_read(encode_readable({"tool_input": value})) == {"tool_input": value}


@pytest.mark.parametrize(
    ("text", "read"),
    [("plain é 😀", "plain é 😀"), ("\ud83d\ude00", "😀"), ("a\ud800", "a\ufffd"), ("\udcff\0", "\ufffd\ufffd")],
)
def test_only_what_is_no_text_is_replaced(text: str, read: str) -> None:
    assert readable_text(text) == read


@rows(
    ("value", "why"),
    [
        ({"a": ["x", {"b": "y\0"}]}, '"a[1].b" contains a NUL character (U+0000) at character 2'),
        ({"a": {"\udc00": 1}}, 'a key of "a" contains half of a surrogate pair (U+DC00)'),
        ({"\0": 1}, "a key of it contains a NUL character (U+0000)"),
        ("\0", "it contains a NUL character (U+0000) at character 1"),
        ({"n": [1, float("inf")]}, '"n[1]" is a number out of range'),
        ({"n": 10**300}, '"n" is a number out of range'),
        ({"k" * 500: {"a": "\0"}}, f'"{"k" * 120}…" contains a NUL character (U+0000) at character 1'),
        (nested(MAX_DEPTH + 1), '"[0][0][0]" is nested deeper than 64 levels'),
    ],
)
def test_the_model_is_told_where_it_is(value: Any, why: str) -> None:
    assert why_unreadable(value) == why


@pytest.mark.parametrize("value", [{}, {"a": [1, 2.5, True, None, "é", 2**63]}, nested(MAX_DEPTH)])
def test_ordinary_input_is_readable(value: Any) -> None:
    assert why_unreadable(value) is None


def test_what_is_nested_too_deeply_is_cut_off_there() -> None:
    assert strictly_read(encode_readable({"a": nested(60)})) == {"a": nested(60)}
    assert b"[nested deeper than 64]" in encode_readable({"a": nested(500)})
    assert b"[nested deeper than 64]" in encode_readable({"a": nested(5000)})
    many = {"a": "{[" * 1000}
    assert strictly_read(encode_readable(many)) == many


def test_what_json_lacks_becomes_what_it_has() -> None:
    class Strange:
        pass

    odd = {1: (2, 3), "s": {4}, "d": date(2026, 1, 2), "x": Strange(), "p": Path, "b": b"\0", "nul": "\0"}
    found = strictly_read(encode_readable({"a": odd}))["a"]
    assert found["1"] == [2, 3]
    assert found["s"] == [4]
    assert found["d"] == "2026-01-02"
    assert (found["x"], found["p"]) == ("[Strange]", "[type]")
    assert found["nul"] == "\ufffd"


def test_half_a_pair_is_replaced_and_the_rest_stays() -> None:
    assert encode_readable({"a": "x\ud800", "b": "é"}) == '{"a":"x\ufffd","b":"é"}'.encode()
