"""What the model and hooks get of a server's result."""

import hashlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.strategies import values
from wave_agent.mcp.mentions import Typed
from wave_agent.mcp.results import NOTHING, hook_content, shown_content, tool_result
from wave_agent.mcp.values import McpResult

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6360000000020001e221bc330000"
    "000049454e44ae426082"
)


def text(*texts: str) -> tuple[dict[str, Any], ...]:
    return tuple({"type": "text", "text": one} for one in texts)


@pytest.mark.parametrize(
    ("content", "structured"),
    [
        (text('{"a": 1, "b": [true]}'), {"b": [True], "a": 1}),
        (text("hello"), {"result": "hello"}),
        (text("one", "two"), {"result": ["one", "two"]}),
        (text('{"a": 1}', '{"a": 2}'), {"items": [{"a": 1}, {"a": 2}]}),
        (text("[1, 2]"), {"result": [1, 2]}),
    ],
)
def test_structured_content_that_the_text_already_says_is_not_repeated(
    content: tuple[dict[str, Any], ...], structured: Any
) -> None:
    shown = shown_content(McpResult(content=content, structured=structured)).text
    assert shown == "\n".join(one["text"] for one in content)


@pytest.mark.parametrize(
    ("content", "structured"),
    [
        (text("Found 2 notes."), {"notes": ["a", "b"]}),
        (text("1"), {"result": True}),
        ((), {"result": "hello"}),
        (text("hello"), {"result": "hello", "more": 1}),
    ],
)
def test_structured_content_that_says_more_is_added(content: tuple[dict[str, Any], ...], structured: Any) -> None:
    shown = shown_content(McpResult(content=content, structured=structured)).text
    assert "Structured content:\n{" in shown


def test_images_reach_a_model_that_takes_them_and_are_named_for_others() -> None:
    data = b64encode(PNG).decode()
    result = McpResult(content=(*text("look"), {"type": "image", "data": data, "mimeType": "image/png"}))
    seen = tool_result(result, takes_images=True)
    assert (seen.content, [image.data for image in seen.images]) == ("look", [data])
    named = tool_result(result, takes_images=False)
    assert not named.images
    assert named.content == "look\n[image, image/png, 1 × 1: this model accepts no images]"


def test_everything_else_is_named() -> None:
    content: Any = (
        {"type": "audio", "data": b64encode(b"abc").decode(), "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "note://1", "text": "Buy milk."}},
        {"type": "resource", "resource": {"uri": "blob://2", "blob": b64encode(b"12345").decode(), "mimeType": "x/y"}},
        {"type": "resource_link", "uri": "file:///a.txt", "name": "a.txt"},
        {"type": "image", "data": "not base64", "mimeType": "image/png"},
        {"type": "hologram"},
    )
    assert shown_content(McpResult(content=content, cut=1000), takes_images=True).text.splitlines() == [
        "[audio, audio/wav, 3 bytes]",
        "[resource note://1]",
        "Buy milk.",
        "[resource blob://2: x/y, 5 bytes]",
        "[resource file:///a.txt: a.txt]",
        "[image, image/png, not valid base64: not a format that models accept]",
        "[content of type hologram]",
        "[1,000 bytes of this result were dropped: it was too large]",
    ]


def test_the_model_is_told_how_a_link_to_a_resource_is_followed() -> None:
    link = {"type": "resource_link", "uri": "note://1", "name": "one"}
    shown = tool_result(McpResult(content=(link,)), takes_images=False, server="notes").content
    assert shown == "[resource note://1: one; to read it, ask the user to write @notes:note://1]"
    assert list(Typed.mentions("Look at @notes:note://1, please.", ["notes"])) == [("notes", "note://1")]


def test_hooks_get_length_and_digest_instead_of_binary_data() -> None:
    digest = {"length": 3, "sha256": hashlib.sha256(b"abc").hexdigest()}
    data = b64encode(b"abc").decode()
    content: Any = (
        *text("hello"),
        {"type": "image", "data": data, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "blob": data}},
    )
    assert hook_content(content) == [
        {"type": "text", "text": "hello"},
        {"type": "image", "data": digest, "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "x:y", "blob": digest}},
    ]


def test_an_error_is_a_call_that_could_not_do_its_work_and_control_characters_are_gone() -> None:
    result = tool_result(McpResult(content=text("\x1b[31mno\x1b[0m"), is_error=True), takes_images=False)
    assert (result.content, result.success, result.ran) == ("no", False, False)
    assert tool_result(McpResult(), takes_images=False).content == NOTHING


blocks = st.lists(st.dictionaries(st.sampled_from(["type", "text", "data", "resource", "uri"]), values, max_size=4))


@given(blocks, values)
def test_any_content_can_be_shown(content: list[dict[str, Any]], structured: Any) -> None:
    tool_result(McpResult(content=tuple(content), structured=structured), takes_images=True)
