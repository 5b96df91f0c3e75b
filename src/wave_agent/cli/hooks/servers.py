"""The MCP servers that `mcp_tool` hooks ask in a trial: started with the first question, as a session would."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from wave_agent.agent.foundation import Foundation
from wave_agent.errors import WaveError
from wave_agent.hooks.definitions import Layer
from wave_agent.system.processes import no_ledger
from wave_agent.text import strip_controls

if TYPE_CHECKING:
    from wave_agent.hooks.runners.mcp_tool import ServerAnswer
    from wave_agent.mcp.session import McpSession

_Found = TypeVar("_Found")


class HookServers:
    """Consent and pins apply as in a session: a server that may not start there does not start here."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation
        self._session: McpSession | None = None
        self._why_none = ""

    async def ask(
        self, server: str, tool: str, arguments: Mapping[str, Any], layer: Layer, _trace: str = ""
    ) -> "ServerAnswer":
        """Raises a `WaveError` if the server cannot be asked."""
        if self._session is None and not self._why_none:
            self._open()
        if self._session is None:
            raise WaveError(f'the MCP server "{server}" cannot be asked: {self._why_none}')
        return await self._session.ask_for_hook(server, tool, arguments, layer)

    def _open(self) -> None:
        from wave_agent.agent.mcp_servers import open_servers  # lazy: few hooks ask a server

        notices: list[str] = []
        self._session = open_servers(
            self._foundation,
            session_id=str(uuid.uuid4()),
            fixed={},
            ledger=no_ledger,
            sandbox=None,
            notices=notices,
            notify=_show,
        )
        if self._session is None:
            self._why_none = " ".join(notices) or "no MCP server is configured"
        else:
            for notice in notices:
                _show(notice)

    def run(self, work: Callable[[], Awaitable[_Found]]) -> _Found:
        """Does the work in a new event loop, then ends the servers."""

        async def attended() -> _Found:
            try:
                return await work()
            finally:
                if self._session is not None:
                    await self._session.close()

        return asyncio.run(attended())


def _show(notice: str) -> None:
    click.echo(strip_controls(f"note: {notice}"), err=True)
