"""Scripted replies in the format of Anthropic's Messages. Used by the recording model server."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from wave_agent.models.base import Usage
from wave_agent.models.scripted import Reply, pieces, signature

_ENDS = {"length": "max_tokens", "content_filter": "refusal"}
_NO_USAGE = Usage()


def events(reply: Reply) -> list[dict[str, Any]]:
    """The reply as the API streams it; without an end if it has an error."""
    sent: list[dict[str, Any]] = [{"type": "message_start", "message": _message(reply, [], None)}, {"type": "ping"}]
    for index, (start, deltas) in enumerate(_blocks(reply)):
        sent.append({"type": "content_block_start", "index": index, "content_block": start})
        sent += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        sent.append({"type": "content_block_stop", "index": index})
    if reply.error:
        return sent
    end = {"stop_reason": _reason(reply), "stop_sequence": None}
    used = (reply.usage or _NO_USAGE).output_tokens
    return [
        *sent,
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": used}},
        {"type": "message_stop"},
    ]


def whole(reply: Reply) -> dict[str, Any]:
    """The reply as a single body."""
    thoughts = [_thinking(reply.reasoning)] if reply.reasoning else []
    texts = [{"type": "text", "text": reply.text}] if reply.text else []
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in reply.tool_calls
    ]
    return _message(reply, [*thoughts, *texts, *calls], _reason(reply))


def _blocks(reply: Reply) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each block as it starts, and what is added to it."""
    if reply.reasoning:
        thoughts = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.reasoning)]
        signed = {"type": "signature_delta", "signature": signature(reply.reasoning)}
        yield {"type": "thinking", "thinking": "", "signature": ""}, [*thoughts, signed]
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(reply.text)]
    for call in reply.tool_calls:
        step = max(1, -(-len(call.arguments) // 4))
        parts = [call.arguments[at : at + step] for at in range(0, len(call.arguments), step)]
        start: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield start, [{"type": "input_json_delta", "partial_json": part} for part in ("", *parts)]


def _thinking(text: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": text, "signature": signature(text)}


def _reason(reply: Reply) -> str:
    return _ENDS[reply.cut] if reply.cut else "tool_use" if reply.tool_calls else "end_turn"


def _message(reply: Reply, content: Sequence[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    usage = reply.usage or _NO_USAGE
    return {
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [*content],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input_tokens - usage.cache_read_tokens - usage.cache_write_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens if reason else 1,
        },
    }
