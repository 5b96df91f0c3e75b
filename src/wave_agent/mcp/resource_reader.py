"""A tool of our own for each server that has resources: the model lists them, and follows links in results.

It has a name like the server's own tools, so the same rules and hooks hold for it. What it says is ours, and needs no
review.
"""

from collections.abc import Iterator
from typing import Any

from wave_agent.mcp.definitions import LONGEST_TOOL_NAME, OfferedTool, plain_name, tool_names
from wave_agent.mcp.values import McpResult, ResourceDefinition, ServerListing, ToolDefinition
from wave_agent.text import one_line

NAME = "read_resource"
_DESCRIPTION = (
    "Reads a resource of the MCP server {}, such as one that a result of its tools links to. Without a URI, lists them."
)
_MOST = 200
_LONGEST = 300
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"uri": {"type": "string", "description": "As it is listed, or as a result has it."}},
    "additionalProperties": False,
}


def resource_reader(server: str, listing: ServerListing) -> OfferedTool | None:
    """None if the server has no resources, or a tool whose name would be the same."""
    plain = plain_name(server, NAME)
    if not listing.resources or any(
        plain_name(server, one.name).casefold() == plain.casefold() for one in listing.tools
    ):
        return None
    name = plain if len(plain) <= LONGEST_TOOL_NAME else tool_names(server, [NAME])[NAME]
    text = _DESCRIPTION.format(server)
    definition = ToolDefinition(name=NAME, description=text, input_schema=_SCHEMA)
    return OfferedTool(name=name, plain=plain, definition=definition, description=text, input_schema=_SCHEMA)


def listed_resources(listing: ServerListing) -> McpResult:
    """What it answers without a URI."""
    return McpResult(content=({"type": "text", "text": "\n".join(_lines(listing.resources))},))


def _lines(resources: tuple[ResourceDefinition, ...]) -> Iterator[str]:
    for one in resources[:_MOST]:
        about = ", ".join(filter(None, (one.name, one.mime_type, one.description)))
        fill_in = " (fill in what is in braces)" if one.is_template else ""
        yield one_line(f"{one.uri}{fill_in}{f': {about}' if about else ''}", _LONGEST)
    if len(resources) > _MOST:
        yield f"… and {len(resources) - _MOST:,} more"
