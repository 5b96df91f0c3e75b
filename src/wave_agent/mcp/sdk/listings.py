"""What a server offers, read page by page within bounds."""

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio
from mcp import Client, MCPError, types

from wave_agent.mcp.sdk.failures import is_closed
from wave_agent.mcp.sdk.raw_results import LISTED_LIMIT, UNKNOWN
from wave_agent.mcp.sdk.results import plain
from wave_agent.mcp.values import (
    McpError,
    PromptArgument,
    PromptDefinition,
    ResourceDefinition,
    ServerListing,
    ToolDefinition,
)

BYTES_LIMIT = 4 << 20
_PAGES_LIMIT = 100
_PATIENCE = 10.0
"""Seconds for a list that a server can do without."""
_INSTRUCTIONS_LIMIT = 1 << 16

Page = Callable[[str | None], Awaitable[tuple[Sequence[Any], str | None]]]


async def listing_of(client: Client, name: str) -> ServerListing:
    """Raises `McpError` if there are too many tools; of the rest, what is too much is left out."""
    can = client.server_capabilities
    tools: list[ToolDefinition] = []
    resources: list[ResourceDefinition] = []
    prompts: list[PromptDefinition] = []

    async def list_tools() -> None:
        found = await _pages(lambda cursor: _tools(client, cursor), LISTED_LIMIT + 1)
        size = sum(len(json.dumps(plain(tool)).encode()) for tool in found)
        if len(found) > LISTED_LIMIT or size > BYTES_LIMIT:
            many = f"more than {LISTED_LIMIT:,} tools" if len(found) > LISTED_LIMIT else f"{size:,} bytes of tools"
            raise McpError(
                f"The MCP server {name!r} lists too much: {many}. At most {LISTED_LIMIT:,} tools and "
                f"{BYTES_LIMIT >> 20} MB are accepted"
            )
        tools.extend(map(_tool, found))

    async def list_resources() -> None:
        with _tolerated(), anyio.move_on_after(_PATIENCE):
            found = await _pages(lambda cursor: _resources(client, cursor), LISTED_LIMIT)
            resources.extend(_resource(one) for one in found[:LISTED_LIMIT])

    async def list_templates() -> None:
        with _tolerated(), anyio.move_on_after(_PATIENCE):
            found = await _pages(lambda cursor: _templates(client, cursor), LISTED_LIMIT)
            resources.extend(_template(one) for one in found[:LISTED_LIMIT])

    async def list_prompts() -> None:
        with _tolerated(), anyio.move_on_after(_PATIENCE):
            found = await _pages(lambda cursor: _prompts(client, cursor), LISTED_LIMIT)
            prompts.extend(map(_prompt, found[:LISTED_LIMIT]))

    async with anyio.create_task_group() as tasks:
        if can.tools is not None:
            tasks.start_soon(list_tools)
        if can.resources is not None:
            tasks.start_soon(list_resources)
            tasks.start_soon(list_templates)
        if can.prompts is not None:
            tasks.start_soon(list_prompts)
    about = client.server_info
    return ServerListing(
        tools=tuple(tools),
        resources=tuple(sorted(resources, key=lambda one: (one.is_template, one.uri))),
        prompts=tuple(prompts),
        instructions=(client.instructions or "")[:_INSTRUCTIONS_LIMIT],
        server=f"{about.name} {about.version}" if about is not None else "",
        protocol=client.protocol_version,
    )


class _tolerated:  # noqa: N801 - reads like a function
    """A server that cannot list what it says it has still has its tools."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, MCPError | ValueError) and not is_closed(error)


async def _pages(page: Page, limit: int) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_PAGES_LIMIT):
        items, cursor = await page(cursor)
        found += items
        if not cursor or len(found) >= limit:
            break
    return found


async def _tools(client: Client, cursor: str | None) -> tuple[Sequence[types.Tool], str | None]:
    result = await client.list_tools(cursor=cursor)
    return result.tools, result.next_cursor


async def _resources(client: Client, cursor: str | None) -> tuple[Sequence[types.Resource], str | None]:
    result = await client.list_resources(cursor=cursor)
    return result.resources, result.next_cursor


async def _templates(client: Client, cursor: str | None) -> tuple[Sequence[types.ResourceTemplate], str | None]:
    result = await client.list_resource_templates(cursor=cursor)
    return result.resource_templates, result.next_cursor


async def _prompts(client: Client, cursor: str | None) -> tuple[Sequence[types.Prompt], str | None]:
    result = await client.list_prompts(cursor=cursor)
    return result.prompts, result.next_cursor


def _tool(tool: types.Tool) -> ToolDefinition:
    raw = plain(tool)
    meta = dict(raw.get("_meta", {}))
    unknown = meta.pop(UNKNOWN, {})
    return ToolDefinition(
        name=tool.name,
        title=tool.title or "",
        description=tool.description or "",
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=raw.get("annotations", {}),
        meta=meta,
        other={**{name: raw[name] for name in ("icons", "execution") if name in raw}, **_under(unknown)},
    )


def _under(unknown: Any) -> dict[str, Any]:
    """Fields that the protocol does not have."""
    return {"unknown": unknown} if unknown else {}


def _resource(one: types.Resource) -> ResourceDefinition:
    return ResourceDefinition(
        uri=str(one.uri), name=one.name, description=one.description or "", mime_type=one.mime_type or ""
    )


def _template(one: types.ResourceTemplate) -> ResourceDefinition:
    return ResourceDefinition(
        uri=one.uri_template,
        name=one.name,
        description=one.description or "",
        mime_type=one.mime_type or "",
        is_template=True,
    )


def _prompt(one: types.Prompt) -> PromptDefinition:
    return PromptDefinition(
        name=one.name,
        title=one.title or "",
        description=one.description or "",
        arguments=tuple(
            PromptArgument(name=each.name, description=each.description or "", is_required=bool(each.required))
            for each in one.arguments or ()
        ),
    )
