"""MCP servers without processes: their tools are Python functions."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any

from msgspec.structs import replace

from wave_agent.mcp.values import (
    Elicit,
    McpError,
    McpResult,
    Progress,
    PromptDefinition,
    ResourceDefinition,
    Server,
    ServerListing,
    ToolDefinition,
)

ToolFunction = Callable[[Mapping[str, Any]], "McpResult | str | Awaitable[McpResult | str]"]
"""The arguments of a call → its result, or its text."""


class FakeMcpHost:
    """Implements `McpHost` for tests of hooks and agents, and records the calls.

        host = FakeMcpHost()
        host.add("notes", ToolDefinition(name="find", description="Finds a note."), lambda arguments: "Buy milk.")
        agent = await Agent.create(mcp_host=host, mcp_servers={"notes": {"command": "not started"}})

    The servers still have to be configured, as any server.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, Mapping[str, Any]]] = []
        """The server, the tool and the arguments of every call."""
        self.metas: list[Mapping[str, str]] = []
        """What went along with each as `_meta`."""
        self.connected: list[str] = []
        """The servers that were connected, in this order."""
        self.is_closed = False
        self.gates: dict[str, asyncio.Event] = {}
        """A server with a gate is connected once it is set."""
        self._listings: dict[str, ServerListing] = {}
        self._functions: dict[tuple[str, str], ToolFunction] = {}
        self._texts: dict[tuple[str, str], str] = {}
        self._changed: Callable[[str, ServerListing], None] | None = None

    # ----------------------------------------------------------------------------------------------------- for the test

    def add(self, server: str, tool: ToolDefinition, function: ToolFunction) -> None:
        """Adds a tool, or replaces the one of that name, without saying so to the session."""
        listing = self._listing(server)
        others = tuple(one for one in listing.tools if one.name != tool.name)
        self._listings[server] = replace(listing, tools=(*others, tool))
        self._functions[server, tool.name] = function

    def add_resource(self, server: str, resource: ResourceDefinition, text: str) -> None:
        listing = self._listing(server)
        self._listings[server] = replace(listing, resources=(*listing.resources, resource))
        self._texts[server, resource.uri] = text

    def add_prompt(self, server: str, prompt: PromptDefinition, template: str) -> None:
        """`template` is formatted with the arguments."""
        listing = self._listing(server)
        self._listings[server] = replace(listing, prompts=(*listing.prompts, prompt))
        self._texts[server, prompt.name] = template

    def instruct(self, server: str, instructions: str) -> None:
        self._listings[server] = replace(self._listing(server), instructions=instructions)

    def announce(self, server: str) -> None:
        """Tells the session that the server's list has changed."""
        if self._changed is not None:
            self._changed(server, self._listing(server))

    def _listing(self, server: str) -> ServerListing:
        return self._listings.get(server, ServerListing())

    # -------------------------------------------------------------------------------------------------- for the session

    def begin(self) -> None:
        pass

    async def connect(self, server: Server, *, deadline: float) -> ServerListing:
        if server.name in self.gates:
            async with asyncio.timeout(deadline):
                await self.gates[server.name].wait()
        if server.name not in self._listings:
            raise McpError(f'The MCP server "{server.name}" does not start: this host has no such server.')
        self.connected.append(server.name)
        return self._listings[server.name]

    async def call(
        self,
        server: Server,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        progress: Progress | None = None,
        elicit: Elicit | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> McpResult:
        self.calls.append((server.name, tool, arguments))
        self.metas.append(meta or {})
        found = self._functions[server.name, tool](arguments)
        answer = await found if isawaitable(found) else found
        if isinstance(answer, McpResult):
            return answer
        return McpResult(content=({"type": "text", "text": answer},))

    async def read_resource(self, server: Server, uri: str) -> McpResult:
        if (server.name, uri) not in self._texts:
            raise McpError(f'The MCP server "{server.name}" has no resource {uri}.')
        return McpResult(content=({"type": "text", "text": self._texts[server.name, uri]},))

    async def get_prompt(self, server: Server, name: str, arguments: Mapping[str, str]) -> str:
        return self._texts[server.name, name].format_map(dict(arguments))

    async def login(self, server: Server, *, show_url: Callable[[str], None]) -> None:
        show_url("https://login.example")

    def listen(self, changed: Callable[[str, ServerListing], None]) -> None:
        self._changed = changed

    async def close(self) -> None:
        self.is_closed = True
