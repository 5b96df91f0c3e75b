"""Scripted replies in the format of OpenAI's Responses. Used by the recording model server."""

from collections.abc import Iterator, Sequence
from typing import Any

from wave_agent.models.base import ToolCall, Usage
from wave_agent.models.scripted import Reply, pieces, signature

_CUTS = {"length": "max_output_tokens", "content_filter": "content_filter"}


def events(reply: Reply) -> list[dict[str, Any]]:
    """The reply as the API streams it; without an end if it has an error."""
    sent = [*_events(reply)]
    return [{**event, "sequence_number": number} for number, event in enumerate(sent)]


def whole(reply: Reply) -> dict[str, Any]:
    """The reply as a single body."""
    return _response(reply, [item for item, _ in _items(reply)], "incomplete" if reply.cut else "completed")


def _events(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(reply, [], "in_progress")}
    yield {"type": "response.in_progress", "response": _response(reply, [], "in_progress")}
    for index, (item, deltas) in enumerate(_items(reply)):
        place = {"output_index": index, "item_id": item["id"]}
        yield {"type": "response.output_item.added", "output_index": index, "item": _begun(item)}
        for delta in deltas:
            yield {**place, **delta}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    if not reply.error:
        end = "incomplete" if reply.cut else "completed"
        items = [item for item, _ in _items(reply)]
        yield {"type": f"response.{end}", "response": _response(reply, items, end)}


def _items(reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each item as it ends, and the events between its beginning and its end."""
    if reply.reasoning:
        yield _reasoning(reply.reasoning)
    if reply.text:
        yield _text(reply.text, "incomplete" if reply.cut else "completed")
    for call in reply.tool_calls:
        yield _call(call)


def _reasoning(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    part = {"type": "summary_text", "text": text}
    at = {"summary_index": 0}
    item = {"type": "reasoning", "id": "rs_scripted", "summary": [part], "encrypted_content": signature(text)}
    named = "response.reasoning_summary"
    return item, [
        {"type": f"{named}_part.added", **at, "part": {**part, "text": ""}},
        *({"type": f"{named}_text.delta", **at, "delta": piece} for piece in pieces(text)),
        {"type": f"{named}_text.done", **at, "text": text},
        {"type": f"{named}_part.done", **at, "part": part},
    ]


def _text(text: str, status: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    at = {"content_index": 0}
    item: dict[str, Any] = {
        "type": "message",
        "id": "msg_scripted",
        "role": "assistant",
        "status": status,
        "content": [part],
    }
    return item, [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []} for piece in pieces(text)),
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _call(call: ToolCall) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    step = max(1, -(-len(call.arguments) // 4))
    parts = [call.arguments[at : at + step] for at in range(0, len(call.arguments), step)]
    named = "response.function_call_arguments"
    item = {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }
    return item, [
        *({"type": f"{named}.delta", "delta": part} for part in parts),
        {"type": f"{named}.done", "name": call.name, "arguments": call.arguments},
    ]


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """The item as it begins: empty."""
    empty: dict[str, Any] = {
        "summary": [],
        "content": [],
        "arguments": "",
        "status": "in_progress",
        "encrypted_content": "",
    }
    return {key: empty.get(key, value) for key, value in item.items()}


def _response(reply: Reply, output: Sequence[dict[str, Any]], status: str) -> dict[str, Any]:
    usage = reply.usage or Usage()
    return {
        "id": "resp_scripted",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": status,
        "error": None,
        "incomplete_details": {"reason": _CUTS[reply.cut]} if reply.cut and status == "incomplete" else None,
        "instructions": None,
        "metadata": {},
        "output": [*output],
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": None if status == "in_progress" else _usage(usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
