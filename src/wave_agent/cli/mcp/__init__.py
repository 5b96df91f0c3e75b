"""`wave mcp`: commands to configure, try out and trust MCP servers."""

import click

from wave_agent.cli.main import CommandSource, LazyGroup

COMMANDS = {
    "add": CommandSource("wave_agent.cli.mcp.add:add", "Add a server to your settings or to the project"),
    "get": CommandSource("wave_agent.cli.mcp.get:get", "Show one server"),
    "list": CommandSource("wave_agent.cli.mcp.list_servers:list_servers", "List the servers and their state"),
    "login": CommandSource("wave_agent.cli.mcp.login:login", "Log in to a remote server with your browser"),
    "remove": CommandSource("wave_agent.cli.mcp.remove:remove", "Remove a server"),
    "test": CommandSource("wave_agent.cli.mcp.test:test", "Connect to a server and list or call its tools"),
    "trust": CommandSource("wave_agent.cli.mcp.trust:trust", "Review a project's servers and changed tools"),
}


@click.group(cls=LazyGroup, sources=COMMANDS)
def mcp() -> None:
    """Configure, test and trust MCP servers

    Servers are read from mcpServers in your settings and from .mcp.json. Their tools are named mcp__SERVER__TOOL, and
    hooks and rules hold for them as for any other tool.

    \b
    wave mcp add time uvx mcp-server-time                       a program, for all your projects
    wave mcp add docs --transport http https://example.com/mcp  a remote server
    wave mcp list                                               what is configured, and what it needs
    wave mcp test time get_current_time '{"timezone": "UTC"}'   call a tool by hand
    wave mcp trust                                              review what this project would start
    """
