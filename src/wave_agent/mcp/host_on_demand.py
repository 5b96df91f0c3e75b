"""A host that is loaded when it is first needed: a session often ends without a call to any server."""

from collections.abc import Callable, Mapping
from typing import Any

from wave_agent.mcp.values import Elicit, McpHost, McpResult, Progress, Server, ServerListing


class HostOnDemand:
    """Implements `McpHost` with the one that `make` returns."""

    def __init__(self, make: Callable[[], McpHost]) -> None:
        self._make = make
        self._made: McpHost | None = None
        self._listeners: list[Callable[[str, ServerListing], None]] = []

    @property
    def _host(self) -> McpHost:
        if self._made is None:
            self._made = self._make()
            for changed in self._listeners:
                self._made.listen(changed)
        return self._made

    def begin(self) -> None:
        self._host.begin()

    async def connect(self, server: Server, *, deadline: float) -> ServerListing:
        return await self._host.connect(server, deadline=deadline)

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
        more: dict[str, Any] = {"meta": meta} if meta else {}
        return await self._host.call(server, tool, arguments, progress=progress, elicit=elicit, **more)

    async def read_resource(self, server: Server, uri: str) -> McpResult:
        return await self._host.read_resource(server, uri)

    async def get_prompt(self, server: Server, name: str, arguments: Mapping[str, str]) -> str:
        return await self._host.get_prompt(server, name, arguments)

    async def login(self, server: Server, *, show_url: Callable[[str], None]) -> None:
        await self._host.login(server, show_url=show_url)

    def listen(self, changed: Callable[[str, ServerListing], None]) -> None:
        self._listeners.append(changed)
        if self._made is not None:
            self._made.listen(changed)

    async def close(self) -> None:
        if self._made is not None:
            await self._made.close()
