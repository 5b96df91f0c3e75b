"""The MCP servers that an editor passes with a session, in the form of `.mcp.json`."""

from collections.abc import Sequence
from typing import Any

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from wave_agent.errors import WaveError

EditorServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


class EditorServerError(WaveError):
    """A server of the editor cannot be used."""


def servers_from(given: Sequence[EditorServer] | None) -> dict[str, Any]:
    """Name → entry. They are the user's own, as the user configured them in the editor; managed lists still apply.
    Raises `EditorServerError`."""
    return {server.name: _entry(server) for server in given or ()}


def _entry(server: EditorServer) -> dict[str, Any]:
    match server:
        case McpServerStdio():
            env = {one.name: one.value for one in server.env}
            return {"command": server.command, "args": [*server.args], "env": env}
        case HttpMcpServer() | SseMcpServer():
            headers = {one.name: one.value for one in server.headers}
            return {"type": server.type, "url": server.url, "headers": headers}
        case _:
            raise EditorServerError(f"MCP server {server.name}: servers inside the editor are not supported.")
