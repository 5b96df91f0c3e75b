"""Results as the agent gets them: plain JSON, bounded before it crosses the socket."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcp import types
from pydantic import BaseModel

from wave_agent.mcp.sdk.oversized import DROPPED
from wave_agent.mcp.values import McpResult

RESULT_LIMIT = 8 << 20
"""Bytes of one result."""


def plain(model: BaseModel) -> dict[str, Any]:
    """As the protocol has it."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def call_result(result: types.CallToolResult) -> McpResult:
    dropped = (result.meta or {}).get(DROPPED)
    return _bounded(
        map(plain, result.content),
        structured=result.structured_content,
        is_error=bool(result.is_error),
        cut=dropped if isinstance(dropped, int) else 0,
    )


def resource_result(result: types.ReadResourceResult) -> McpResult:
    return _bounded({"type": "resource", "resource": plain(one)} for one in result.contents)


def prompt_text(result: types.GetPromptResult) -> str:
    """The text of its messages, one after the other; what is not text is named."""
    texts = [_text(plain(message.content)) for message in result.messages]
    return "\n\n".join(texts)[:RESULT_LIMIT]


def _text(block: Mapping[str, Any]) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    resource: Mapping[str, Any] = block.get("resource") or {}
    if "text" in resource:
        return str(resource["text"])
    where = block.get("uri") or resource.get("uri")
    return f"[{block.get('type', 'unknown')}{f' {where}' if where else ''}]"


def _bounded(
    blocks: Iterable[dict[str, Any]], *, structured: Any = None, is_error: bool = False, cut: int = 0
) -> McpResult:
    left = RESULT_LIMIT
    content: list[dict[str, Any]] = []
    for block in blocks:
        size = _size(block)
        if size > left:
            shorter = _shorter(block, left)
            kept = _size(shorter) if shorter is not None else 0
            cut += size - kept
            content += [] if shorter is None else [shorter]
            left -= kept
        else:
            content.append(block)
            left -= size
    if structured is not None and (size := _size(structured)) > left:
        cut += size
        structured = None
    return McpResult(content=tuple(content), structured=structured, is_error=is_error, cut=cut)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode(errors="replace"))


def _shorter(block: dict[str, Any], limit: int) -> dict[str, Any] | None:
    """Only text can be shortened."""
    text = block.get("text")
    resource: dict[str, Any] = block.get("resource") or {}
    if block.get("type") == "text" and isinstance(text, str):
        return _fitting(text, limit, lambda shorter: {**block, "text": shorter})
    if isinstance(resource.get("text"), str):
        return _fitting(resource["text"], limit, lambda shorter: {**block, "resource": {**resource, "text": shorter}})
    return None


def _fitting(text: str, limit: int, block: Callable[[str], dict[str, Any]]) -> dict[str, Any] | None:
    """The block with as much of the text as fits. Escapes make it longer than it looks."""
    kept = limit
    while kept > 0:
        shorter = block(text.encode(errors="replace")[:kept].decode(errors="ignore"))
        if (size := _size(shorter)) <= limit:
            return shorter
        kept = min(kept - 1, kept * limit // size - 64)
    return None
