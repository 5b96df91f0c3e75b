"""The scripted model's replies, in each API."""

import json
from typing import Any
from urllib.request import Request, urlopen

from tests.hosts.model import serving
from tests.hosts.wires import ANTHROPIC, CHAT, DONE, GOOGLE, RESPONSES, Sent, ToolUse, heard
from tests.rows import rows

CALL = [ToolUse("shell", {"command": "ls"})]


def events(sent: Sent) -> list[Any]:
    assert sent.kind == "text/event-stream"
    lines = [line.removeprefix("data: ") for line in sent.data.decode().splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_a_call_over_messages() -> None:
    found = events(ANTHROPIC.reply({"stream": True}, "/v1/messages", CALL, 1))
    assert (found[0]["type"], found[-1]["type"]) == ("message_start", "message_stop")
    start = next(one for one in found if one["type"] == "content_block_start")
    delta = next(one for one in found if one["type"] == "content_block_delta")
    assert (start["content_block"]["name"], json.loads(delta["delta"]["partial_json"])) == ("shell", {"command": "ls"})
    assert found[-2]["delta"]["stop_reason"] == "tool_use"
    whole = json.loads(ANTHROPIC.reply({}, "/v1/messages", [], 2).data)
    assert (whole["content"], whole["stop_reason"]) == ([{"type": "text", "text": DONE}], "end_turn")


def test_a_call_over_chat_completions() -> None:
    first, last = events(CHAT.reply({"stream": True}, "/v1/chat/completions", CALL, 1))
    (call,) = first["choices"][0]["delta"]["tool_calls"]
    assert call["function"] == {"name": "shell", "arguments": '{"command": "ls"}'}
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    whole = json.loads(CHAT.reply({}, "/v1/chat/completions", [], 2).data)
    assert whole["choices"][0]["message"]["content"] == DONE


def test_a_call_over_responses() -> None:
    turn = [*CALL, ToolUse("apply_patch", {}, "*** Begin Patch")]
    _, call, patch, end = events(RESPONSES.reply({}, "/v1/responses", turn, 1))
    assert (call["item"]["type"], call["item"]["arguments"]) == ("function_call", '{"command": "ls"}')
    assert (patch["item"]["type"], patch["item"]["input"]) == ("custom_tool_call", "*** Begin Patch")
    assert end["type"] == "response.completed"
    _, text, _ = events(RESPONSES.reply({}, "/v1/responses", [], 2))
    assert text["item"]["content"][0]["text"] == DONE


def test_a_call_over_generate_content() -> None:
    (found,) = events(GOOGLE.reply({}, "/v1beta/models/m:streamGenerateContent", CALL, 1))
    (part,) = found["candidates"][0]["content"]["parts"]
    assert part == {"functionCall": {"name": "shell", "args": {"command": "ls"}}}
    whole = json.loads(GOOGLE.reply({}, "/v1beta/models/m:generateContent", [], 2).data)
    assert whole["candidates"][0]["content"]["parts"] == [{"text": DONE}]


OFFERS = [
    (ANTHROPIC, [{"name": "Bash"}]),
    (CHAT, [{"type": "function", "function": {"name": "Bash"}}]),
    (RESPONSES, [{"type": "function", "name": "Bash"}]),
    (GOOGLE, [{"functionDeclarations": [{"name": "Bash"}]}]),
]


@rows("wire, tools", OFFERS)
def test_tools_on_offer_are_read(wire: Any, tools: Any) -> None:
    assert wire.tools({"tools": tools}) == {"Bash"}
    assert wire.tools({}) == frozenset()


def test_what_the_model_was_told_has_no_descriptions_of_tools() -> None:
    assert heard({"messages": ["é"], "tools": ["x"]}) == '{"messages": ["é"]}'


def test_the_server_follows_the_script_and_then_says_that_it_is_done() -> None:
    offers = {"tools": [{"function": {"name": "bash"}}]}

    def ask(url: str, body: Any) -> Any:
        request = Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), method="POST")
        with urlopen(request, timeout=10) as response:
            return json.loads(response.read())["choices"][0]["message"]

    with serving(CHAT, [lambda offered, _: [ToolUse(next(iter(offered)), {"n": 1})]]) as model:
        assert ask(model.url, {"messages": []})["content"] == DONE, "a request without tools is the host's own"
        assert ask(model.url, {**offers, "messages": ["a"]})["tool_calls"][0]["function"]["name"] == "bash"
        assert ask(model.url, {**offers, "messages": ["b"]})["content"] == DONE
    assert model.requests == ['{"messages": ["a"]}', '{"messages": ["b"]}']
    assert len(model.waits) == 1
