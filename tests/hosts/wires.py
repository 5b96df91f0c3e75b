"""The four ways in which hosts talk to a model: what a scripted reply looks like in each. Pure."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

DONE = "Done."


class ToolUse(msgspec.Struct, frozen=True):
    """A call as the model makes it: the host's name of the tool, and its arguments."""

    name: str
    arguments: Mapping[str, Any]
    freeform: str = ""
    """The input of a tool that takes text instead of arguments."""


class Sent(msgspec.Struct, frozen=True):
    """The body of an HTTP response."""

    kind: str
    data: bytes


Turn = Sequence[ToolUse]
"""What the model answers: calls; none: a text that ends the turn."""


class Wire(msgspec.Struct, frozen=True):
    """One API."""

    reply: Callable[[Mapping[str, Any], str, Turn, int], Sent]
    """The response to a request with this body at this path. The number tells the replies apart."""
    path: str
    """What the path of a request to the model contains."""
    tools: Callable[[Mapping[str, Any]], frozenset[str]]
    """The tools that a request offers."""


def heard(body: Mapping[str, Any]) -> str:
    """What the model was told in a request, as one text, without the descriptions of tools."""
    return json.dumps({key: value for key, value in body.items() if key != "tools"}, ensure_ascii=False)


def _json(value: Any) -> Sent:
    return Sent("application/json", json.dumps(value).encode())


def _events(events: Iterable[Mapping[str, Any]], *, named: bool = False, end: str = "") -> Sent:
    text = "".join((f"event: {one['type']}\n" if named else "") + f"data: {json.dumps(one)}\n\n" for one in events)
    return Sent("text/event-stream", (text + end).encode())


# --------------------------------------------------------------------------------------------------------- Anthropic


def _messages(body: Mapping[str, Any], _: str, turn: Turn, number: int) -> Sent:
    blocks = [
        {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": use.name, "input": dict(use.arguments)}
        for at, use in enumerate(turn)
    ] or [{"type": "text", "text": DONE}]
    usage = {"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    message = {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": blocks,
        "stop_reason": "tool_use" if turn else "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }
    if not body.get("stream"):
        return _json(message)
    events: list[Mapping[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(blocks):
        is_use = block["type"] == "tool_use"
        start = {**block, "input": {}} if is_use else {"type": "text", "text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            if is_use
            else {"type": "text_delta", "text": DONE}
        )
        events += [
            {"type": "content_block_start", "index": index, "content_block": start},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [{"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return _events(events, named=True)


# ------------------------------------------------------------------------------------------------------------ OpenAI

_USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def _chat(body: Mapping[str, Any], _: str, turn: Turn, number: int) -> Sent:
    calls = [
        {
            "index": at,
            "id": f"call_{number}_{at}",
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(dict(use.arguments))},
        }
        for at, use in enumerate(turn)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls} if calls else _text_message()
    reason = "tool_calls" if calls else "stop"
    base = {"id": f"chatcmpl-{number}", "created": 1, "model": "scripted"}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return _json({**base, "object": "chat.completion", "choices": [choice], "usage": _USAGE})
    base["object"] = "chat.completion.chunk"
    chunks = [
        {**base, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": _USAGE},
    ]
    return _events(chunks, end="data: [DONE]\n\n")


def _text_message() -> dict[str, Any]:
    return {"role": "assistant", "content": DONE}


def _responses(_: Mapping[str, Any], __: str, turn: Turn, number: int) -> Sent:
    items: list[Mapping[str, Any]] = []
    for at, use in enumerate(turn):
        ids = {"id": f"item_{number}_{at}", "call_id": f"call_{number}_{at}", "name": use.name}
        if use.freeform:
            items.append({"type": "custom_tool_call", **ids, "input": use.freeform})
        else:
            items.append({"type": "function_call", **ids, "arguments": json.dumps(dict(use.arguments))})
    if not items:
        content = [{"type": "output_text", "text": DONE}]
        items = [{"type": "message", "role": "assistant", "id": f"item_{number}", "content": content}]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    details = {"input_tokens_details": None, "output_tokens_details": None}
    events: list[Mapping[str, Any]] = [
        {"type": "response.created", "response": {"id": f"resp_{number}"}},
        *({"type": "response.output_item.done", "item": item} for item in items),
        {"type": "response.completed", "response": {"id": f"resp_{number}", "usage": {**usage, **details}}},
    ]
    return _events(events, named=True)


# ------------------------------------------------------------------------------------------------------------ Google


def _generate(_: Mapping[str, Any], path: str, turn: Turn, number: int) -> Sent:
    parts = [{"functionCall": {"name": use.name, "args": dict(use.arguments)}} for use in turn] or [{"text": DONE}]
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    found = {"candidates": [candidate], "usageMetadata": usage, "responseId": f"r{number}"}
    return _events([found]) if "streamGenerateContent" in path else _json(found)


def _named(body: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(tool.get("name") or tool.get("type")) for tool in body.get("tools") or ())


def _functions(body: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(str(tool["function"]["name"]) for tool in body.get("tools") or ())


def _declared(body: Mapping[str, Any]) -> frozenset[str]:
    tools = body.get("tools") or ()
    return frozenset(str(one["name"]) for tool in tools for one in tool.get("functionDeclarations") or ())


ANTHROPIC = Wire(_messages, "/v1/messages", _named)
CHAT = Wire(_chat, "/chat/completions", _functions)
RESPONSES = Wire(_responses, "/responses", _named)
GOOGLE = Wire(_generate, "enerateContent", _declared)
