"""Connects to a server for one command, and lists its tools."""

import os
import sys
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import click

from wave_agent.cli.mcp.options import unknown_server
from wave_agent.mcp.cache import ListingCache
from wave_agent.mcp.values import McpError, McpHost, Server, ServerListing
from wave_agent.system.extras import install_extra
from wave_agent.text import one_line
from wave_agent.workshop.server_overview import WAITING, Overview, ServerRow, has_extra

PATIENCE = 30.0
"""Seconds to connect to a server that a person waits for."""


def row_of(found: Overview, name: str) -> ServerRow:
    """Raises a usage error that says which names there are."""
    for row in found.rows:
        if row.name == name:
            return row
    raise unknown_server(name, [row.name for row in found.rows])


def startable(found: Overview, name: str) -> Server:
    """The server, if it may be started. Raises `McpError`."""
    row = row_of(found, name)
    if row.server is None or row.state in WAITING:
        raise McpError(f"{name} is not started: {row.detail}.")
    return row.server


def new_host(found: Overview) -> McpHost:
    """The process that speaks the protocol, for one command; not started yet. Raises `McpError` without the extra."""
    if not has_extra():
        raise McpError(f"MCP servers need an extra: {install_extra('mcp')}")
    from wave_agent.mcp.host import SdkHost  # lazy: only for commands that connect

    root = found.project.directory
    return SdkHost(
        home=found.home,
        session_id=str(uuid4()),
        environment=os.environ,
        roots=[root],
        why_not=lambda name: found.configured.why_changed(name, found.project),
    )


@asynccontextmanager
async def open_host(found: Overview) -> AsyncGenerator[McpHost]:
    host = new_host(found)
    host.begin()
    try:
        yield host
    finally:
        await host.close()


async def connected(host: McpHost, server: Server, cache: ListingCache) -> ServerListing:
    """Raises `McpError`, and keeps it for `wave mcp list`. Says on a terminal what it waits for."""
    if sys.stderr.isatty():
        click.echo(f"Connecting to {server.name} …", err=True)
    try:
        return await host.connect(server, deadline=PATIENCE)
    except McpError as error:
        cache.note_failure(server, error)
        raise


def tool_lines(tools: Iterable[tuple[str, str]], *, verbose: bool = False, width: int = 100) -> Sequence[str]:
    """Name and description of each tool; the first sentence, unless all of it is wanted."""
    shown: list[str] = []
    for name, description in tools:
        if verbose:
            shown.append(f"    {one_line(name)}")
            shown += [f"        {one_line(line)}" for line in description.splitlines()]
        else:
            text = one_line(description, max(20, width - len(name) - 6))
            shown.append(f"    {one_line(name, 64)}  {text}".rstrip())
    return shown


def tools_of(listing: ServerListing) -> Mapping[str, str]:
    return {tool.name: tool.description for tool in listing.tools}
