"""Results before the SDK reads them: completed where it would refuse them, and kept where it would drop something."""

from collections.abc import Mapping
from typing import Any, cast

from mcp import Client, types

UNKNOWN = "wave-agent/unknown"
"""In a tool's `_meta`: the fields that the SDK does not know, and would drop. They are part of what is pinned."""

_BLOCKS = ("text", "image", "audio", "resource", "resource_link")
_LONGEST_KIND = 50
LISTED_LIMIT = 2000
"""Tools of a server, and as many of anything else that it lists. The SDK gets one more, so that it can be told."""
BLOCKS_LIMIT = 2000
_LISTS = ("tools", "resources", "resourceTemplates", "prompts")


def read_raw_results(client: Client) -> None:
    """To be called once, after the client has connected."""
    dispatcher: Any = client.session._dispatcher  # pyright: ignore[reportPrivateUsage]
    send = dispatcher.send_raw_request
    # In the newer protocol, a result that does not say what it is counts as complete.
    missing = {} if client.session.discover_result is None else {"resultType": "complete"}

    async def send_raw_request(method: str, *arguments: Any, **options: Any) -> dict[str, Any]:
        result = {**missing, **await send(method, *arguments, **options)}
        _shorten(result)
        tools: Any = result.get("tools")
        if method == "tools/list" and isinstance(tools, list):
            result["tools"] = [_with_unknown(one) for one in cast("list[Any]", tools)]
        content: Any = result.get("content")
        if method == "tools/call" and isinstance(content, list):
            result["content"] = [_known_block(one) for one in cast("list[Any]", content)]
        return result

    dispatcher.send_raw_request = send_raw_request


def _shorten(result: dict[str, Any]) -> None:
    """The SDK takes its time for each item, and no other server is heard meanwhile."""
    for name in _LISTS:
        if isinstance(result.get(name), list):
            result[name] = result[name][: LISTED_LIMIT + 1]
    for name in ("content", "contents", "messages"):
        given: Any = result.get(name)
        blocks = cast("list[Any]", given) if isinstance(given, list) else []
        if len(blocks) > BLOCKS_LIMIT:
            result[name] = blocks[:BLOCKS_LIMIT]
            if name == "content":
                note = f"[{len(blocks) - BLOCKS_LIMIT:,} more pieces of this result were dropped]"
                result[name].append({"type": "text", "text": note})


def _known_block(block: Any) -> Any:
    """One block of a kind that the SDK does not know must not cost the others."""
    fields = cast("Mapping[str, Any]", block) if isinstance(block, Mapping) else None
    kind = None if fields is None else fields.get("type")
    if kind in _BLOCKS:
        return fields
    name = kind[:_LONGEST_KIND] if isinstance(kind, str) else "unknown"
    return {"type": "text", "text": f"[{name}: a kind of content that is not supported]"}


def _with_unknown(tool: Any) -> Any:
    if not isinstance(tool, Mapping):
        return tool
    given = cast("Mapping[str, Any]", tool)
    unknown = _unknown_in(given, types.Tool)
    if found := _unknown_in(given.get("annotations"), types.ToolAnnotations):
        unknown["annotations"] = found
    if found := _unknown_in(given.get("execution"), types.ToolExecution):
        unknown["execution"] = found
    icons = given.get("icons")
    if isinstance(icons, list) and any(_unknown_in(one, types.Icon) for one in cast("list[Any]", icons)):
        unknown["icons"] = icons
    meta = given.get("_meta")
    if not unknown or not isinstance(meta, Mapping | None):
        return given
    return {**given, "_meta": {**cast("Mapping[str, Any]", meta or {}), UNKNOWN: unknown}}


def _unknown_in(value: Any, model: Any) -> dict[str, Any]:
    known = {field.alias or name for name, field in model.model_fields.items()}
    if not isinstance(value, Mapping):
        return {}
    return {name: one for name, one in cast("Mapping[str, Any]", value).items() if name not in known}
