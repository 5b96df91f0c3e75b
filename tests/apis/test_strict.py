"""The strict servers refuse what they should: otherwise what they accept would say nothing."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.apis.strict import StrictServer
from wave_agent.models.scripted import signature
from wave_agent.testing.model_server import RecordedRequest

MARK = {"type": "ephemeral"}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": signature("Hm.")}


def text(text: str = "hello") -> dict[str, Any]:
    return {"type": "text", "text": text}


MESSAGES: dict[str, Any] = {
    "model": "claude",
    "max_tokens": 100,
    "stream": True,
    "system": [text()],
    "messages": [
        {"role": "user", "content": [text()]},
        {"role": "assistant", "content": [THOUGHT, {"type": "tool_use", "id": "a", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}, text()]},
    ],
    "tools": [{"name": "Bash", "description": "b", "input_schema": {"type": "object"}}],
}
REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": signature("Hm."),
}
RESPONSES: dict[str, Any] = {
    "model": "gpt",
    "store": False,
    "stream": True,
    "instructions": "Be kind.",
    "include": ["reasoning.encrypted_content"],
    "input": [
        {"type": "message", "role": "user", "content": "hello"},
        REASONING,
        {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
    ],
    "tools": [{"type": "function", "name": "Bash", "parameters": {"type": "object"}, "strict": False}],
}
CHAT: dict[str, Any] = {
    "model": "gpt",
    "stream": True,
    "messages": [
        {"role": "user", "content": "hello"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x"},
    ],
}
GOOD = {"anthropic": MESSAGES, "openai-responses": RESPONSES, "openai-chat": CHAT}


def refusal(api: str, body: dict[str, Any]) -> str:
    headers = {"anthropic-version": "2023-06-01", "authorization": "Bearer k"}
    found = StrictServer([]).refusal(RecordedRequest("POST", "/", headers, body, 1, api))
    return "" if found is None else found.body["error"]["message"]


@pytest.mark.parametrize("api", GOOD)
def test_a_sound_request_is_accepted(api: str) -> None:
    assert refusal(api, GOOD[api]) == ""


Change = Callable[[dict[str, Any]], object]

WRONG: dict[str, tuple[str, Change, str]] = {
    "an unknown field": ("anthropic", lambda b: b.update(temperature=1), "Extra inputs"),
    "no max_tokens": ("anthropic", lambda b: b.pop("max_tokens"), "max_tokens: Field required"),
    "an unknown field inside": ("anthropic", lambda b: b["messages"][0]["content"][0].update(x=1), "Extra inputs"),
    "a call without a result": ("anthropic", lambda b: b["messages"][2]["content"].pop(0), "without `tool_result`"),
    "a result without a call": ("anthropic", lambda b: b["messages"][1]["content"].pop(1), "cannot be `thinking`"),
    "a result after text": ("anthropic", lambda b: b["messages"][2]["content"].reverse(), "must come first"),
    "an empty text": ("anthropic", lambda b: b["messages"][0]["content"].append(text(" ")), "non-whitespace"),
    "thinking without a signature": (
        "anthropic",
        lambda b: b["messages"][1]["content"][0].pop("signature"),
        ".messages.1",
    ),
    "thinking that was changed": (
        "anthropic",
        lambda b: b["messages"][1]["content"][0].update(thinking="Aha."),
        "Invalid `signature`",
    ),
    "thinking at the end": ("anthropic", lambda b: b["messages"][1]["content"].reverse(), "cannot be `thinking`"),
    "five marks": (
        "anthropic",
        lambda b: b["messages"][0].update(content=[{**text(), "cache_control": MARK} for _ in range(5)]),
        "maximum of 4",
    ),
    "two turns of the user": (
        "anthropic",
        lambda b: b["messages"].append({"role": "user", "content": [text()]}),
        "alternate",
    ),
    "a prefilled answer": (
        "anthropic",
        lambda b: b["messages"].append({"role": "assistant", "content": [text()]}),
        "prefill",
    ),
    "a first turn of the model": ("anthropic", lambda b: b["messages"].pop(0), "first message"),
    "a strange id": (
        "anthropic",
        lambda b: b["messages"][1]["content"][1].update(id="a:0"),
        "pattern",
    ),
    "an unknown field of a response": ("openai-responses", lambda b: b.update(messages=[]), "Extra inputs"),
    "an unknown field of an item": ("openai-responses", lambda b: b["input"][2].update(x=1), "Extra inputs"),
    "an output without a call": ("openai-responses", lambda b: b["input"].pop(2), "following item"),
    "a call without an output": ("openai-responses", lambda b: b["input"].pop(3), "No tool output found"),
    "reasoning that is not encrypted": (
        "openai-responses",
        lambda b: b["input"][1].pop("encrypted_content"),
        "not persisted",
    ),
    "reasoning that was changed": (
        "openai-responses",
        lambda b: b["input"][1].update(encrypted_content="other"),
        "could not be verified",
    ),
    "a long id": ("openai-responses", lambda b: b["input"][2].update(call_id="a" * 65), "too long"),
    "a tool message without a call": ("openai-chat", lambda b: b["messages"].pop(1), "must follow"),
    "a call without a tool message": ("openai-chat", lambda b: b["messages"].pop(2), "must be followed"),
    "an unknown field of a message": ("openai-chat", lambda b: b["messages"][1].update(parts=[]), "Extra inputs"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused(case: str) -> None:
    api, change, why = WRONG[case]
    body = deepcopy(GOOD[api])
    change(body)
    assert why in refusal(api, body)
