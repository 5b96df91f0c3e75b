"""Scripted replies in the chat format, as real servers send them. Used by the recording model server."""

from collections.abc import Sequence
from typing import Any

from wave_agent.models.base import ToolCall, Usage
from wave_agent.models.scripted import Reply, pieces


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of a streamed answer: `delta(content="Hel")`, `delta("stop")`, `delta(tool_calls=[...])`."""
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "delta": fields, "finish_reason": finish}],
    }


def _calls(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _finish(reply: Reply) -> str:
    return reply.cut or ("tool_calls" if reply.tool_calls else "stop")


def _usage(usage: Usage) -> dict[str, Any]:
    total = usage.input_tokens + usage.output_tokens
    told = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total}
    return {**told, "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens}}


def chunks(reply: Reply) -> list[dict[str, Any]]:
    """Chunks as OpenAI's servers stream them: the role first, calls in fragments, usage in a chunk without choices."""
    sent = [delta(role="assistant", content="")]
    sent += [delta(reasoning_content=piece) for piece in pieces(reply.reasoning)]
    sent += [delta(content=piece) for piece in pieces(reply.text)]
    for index, call in enumerate(_calls(reply.tool_calls)):
        arguments: str = call["function"]["arguments"]
        opening = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        step = max(1, -(-len(arguments) // 4))
        fragments = [arguments[at : at + step] for at in range(0, len(arguments), step)]
        sent.append(delta(tool_calls=[opening]))
        sent += [delta(tool_calls=[{"index": index, "function": {"arguments": part}}]) for part in fragments]
    sent += [] if reply.error else [delta(_finish(reply))]
    return sent if reply.usage is None else [*sent, {**delta(), "choices": [], "usage": _usage(reply.usage)}]


def whole(reply: Reply) -> dict[str, Any]:
    """The reply as a single body."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = _calls(reply.tool_calls)
    choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
    body: dict[str, Any] = {**delta(), "object": "chat.completion", "choices": [choice]}
    return body if reply.usage is None else {**body, "usage": _usage(reply.usage)}
