"""The settings about MCP servers (`layers.MCP_KEYS`) explained, for the schema and the documentation."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class McpKey(Struct, frozen=True):
    """One setting about MCP servers."""

    meaning: str
    layers: str
    """What several layers make of it."""
    schema: Mapping[str, Any]


_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
_TEXT_VALUES: Mapping[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
ENTRY_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"enum": ["stdio", "http", "streamable-http", "sse"]},
        "command": {"type": "string"},
        "args": _TEXTS,
        "env": _TEXT_VALUES,
        "url": {"type": "string"},
        "headers": _TEXT_VALUES,
        "headersHelper": {"type": "string"},
        "oauth": {
            "type": "object",
            "properties": {
                "clientId": {"type": "string"},
                "clientSecret": {"type": "string"},
                "callbackPort": {"type": "integer", "minimum": 1, "maximum": 65535},
                "scopes": {"type": ["string", "array"], "items": {"type": "string"}},
                "authServerMetadataUrl": {"type": "string"},
            },
        },
        "timeout": {"type": "number", "minimum": 1000},
        "alwaysLoad": {"type": "boolean"},
        "disabled": {"type": "boolean"},
    },
}
"""Of one server."""
LIST_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"serverName": {"type": "string"}, "serverCommand": _TEXTS, "serverUrl": {"type": "string"}},
        "minProperties": 1,
        "maxProperties": 1,
        "additionalProperties": False,
    },
}

MCP_SETTINGS: Mapping[str, McpKey] = {
    "mcpServers": McpKey(
        "MCP servers, by name, in the form of `.mcp.json`", "combined; see mcp.md",
        {"type": "object", "additionalProperties": ENTRY_SCHEMA},
    ),
    "allowedMcpServers": McpKey(
        "the only MCP servers that may run, each by `serverName`, `serverCommand` or `serverUrl`",
        "each list holds; a project's only for its own servers", LIST_SCHEMA,
    ),
    "deniedMcpServers": McpKey(
        "MCP servers that may not run, in the same form", "combined; a project's only for its own servers", LIST_SCHEMA,
    ),
    "allowManagedMcpServersOnly": McpKey(
        "only `allowedMcpServers` in managed settings counts; without one, only managed servers run", "managed only",
        {"type": "boolean"},
    ),
    "enabledMcpjsonServers": McpKey("has no effect: use `wave mcp trust`", "–", _TEXTS),
    "disabledMcpjsonServers": McpKey("servers in `.mcp.json` that do not run", "combined", _TEXTS),
    "enableAllProjectMcpServers": McpKey("has no effect: use `wave mcp trust`", "–", {"type": "boolean"}),
}  # fmt: skip
