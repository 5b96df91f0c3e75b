"""A server that speaks another API to the client and the chat format to the test, so one session runs on all APIs."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.apis.strict import StrictServer
from wave_agent.models.base import CutShort, Reasoning, Text, ToolCall, Usage
from wave_agent.models.chat_stream import AnswerReader
from wave_agent.testing.model_server import Events, RecordedRequest, Reply, ServerAnswer, ServerScript, Status

Message = dict[str, Any]


class ChatViewServer(StrictServer):
    """Refuses what the API would refuse. Records every request as the chat format would have it."""

    def __init__(self, replies: Iterable[ServerScript], *, tls: Any = None, elsewhere: Any = None) -> None:
        super().__init__(map(_translated, replies), tls=tls, elsewhere=elsewhere)

    def refusal(self, request: RecordedRequest) -> Status | None:
        refused = super().refusal(request)
        request.body = {**_VIEWS[request.api](request.body), "model": request.body["model"], "stream": True}
        return refused


def _translated(script: ServerScript) -> ServerScript:
    if callable(script):
        function: Callable[[RecordedRequest], ServerAnswer] = script
        return lambda request: _answer(function(request))
    return _answer(script)


def _answer(answer: ServerAnswer) -> ServerAnswer:
    """A stream of chunks as the reply that they make up."""
    if not isinstance(answer, Events):
        return answer
    reader = AnswerReader()
    deltas = [
        *reader.read_all(json.dumps(event) for event in answer.events if isinstance(event, Mapping)),
        *reader.end(),
    ]
    return Reply(
        "".join(one.text for one in deltas if isinstance(one, Text)),
        [one for one in deltas if isinstance(one, ToolCall)],
        "".join(one.text for one in deltas if isinstance(one, Reasoning)),
        usage=next((one for one in deltas if isinstance(one, Usage)), None),
        cut=next((one.reason for one in deltas if isinstance(one, CutShort)), None),
    )


def _of_messages(body: Mapping[str, Any]) -> Message:
    messages: list[Message] = [{"role": "system", "content": block["text"]} for block in body.get("system", [])]
    for turn in body["messages"]:
        messages += _user(turn["content"]) if turn["role"] == "user" else [_assistant(turn["content"])]
    return {"messages": messages, **_tools(body.get("tools", []), "input_schema")}


def _user(blocks: list[Message]) -> Iterator[Message]:
    """A text before an image belongs to it; every other text was a message of its own."""
    pictured: list[Message] = []
    for at, block in enumerate(blocks):
        is_label = at + 1 < len(blocks) and blocks[at + 1]["type"] == "image"
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block.get("content", "")}
        elif block["type"] == "image":
            url = f"data:{block['source']['media_type']};base64,{block['source']['data']}"
            pictured.append({"type": "image_url", "image_url": {"url": url}})
        elif is_label:
            pictured.append({"type": "text", "text": block["text"]})
        else:
            if pictured:
                yield {"role": "user", "content": pictured}
                pictured = []
            yield {"role": "user", "content": block["text"]}
    if pictured:
        yield {"role": "user", "content": pictured}


def _assistant(blocks: list[Message]) -> Message:
    found: Message = {"role": "assistant", "content": "\n".join(one["text"] for one in blocks if one["type"] == "text")}
    if calls := [
        _call(one["id"], one["name"], json.dumps(one["input"])) for one in blocks if one["type"] == "tool_use"
    ]:
        found["tool_calls"] = calls
    return found


def _call(name: str, function: str, arguments: str) -> Message:
    return {"id": name, "type": "function", "function": {"name": function, "arguments": arguments}}


def _of_responses(body: Mapping[str, Any]) -> Message:
    messages: list[Message] = [{"role": "system", "content": body["instructions"]}] if "instructions" in body else []
    for item in body["input"]:
        match item["type"]:
            case "function_call_output":
                messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
            case "function_call":
                if messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                call = _call(item["call_id"], item["name"], item["arguments"])
                messages[-1].setdefault("tool_calls", []).append(call)
            case "message":
                content = item["content"]
                parts = content if isinstance(content, str) else [_part(part) for part in content]
                messages.append({"role": item["role"], "content": parts})
            case _:
                pass
    return {"messages": messages, **_tools(body.get("tools", []), "parameters")}


def _part(part: Message) -> Message:
    if part["type"] == "input_text":
        return {"type": "text", "text": part["text"]}
    return {"type": "image_url", "image_url": {"url": part["image_url"]}}


def _tools(tools: list[Message], schema: str) -> Message:
    described = [{"name": one["name"], "description": one["description"], "parameters": one[schema]} for one in tools]
    return {"tools": [{"type": "function", "function": one} for one in described]} if tools else {}


_VIEWS = {"anthropic": _of_messages, "openai-responses": _of_responses, "openai-chat": dict}
