"""Servers at a URL: streamable HTTP and SSE, with the headers and the login that the entry asks for."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import msgspec
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from wave_agent.mcp.sdk.bodies import bound
from wave_agent.mcp.sdk.launching import Launcher
from wave_agent.mcp.sdk.oversized import LINE_LIMIT
from wave_agent.mcp.values import McpError, Server, ServerTransport

_HELPER_TIMEOUT = 10.0
_HELPER_LIMIT = 1 << 16
_TIMEOUT = 30.0
"""Seconds to connect, and to send a request."""


class HttpStatus:
    """What the SDK does not say: the status of the last answer, and whether a server wants a login. Also keeps the
    bodies of its answers bounded."""

    def __init__(self, url: str) -> None:
        self._url = httpx2.URL(url)
        self.needs_login = False
        self.last: int | None = None

    def require_login(self) -> None:
        """The stored login is not enough."""
        self.needs_login = True

    async def note(self, response: httpx2.Response) -> None:
        if response.request.url == self._url:
            self.last = response.status_code
        if response.status_code == 401:
            self.needs_login = True
        elif response.is_success and response.request.url == self._url:
            # Other errors say nothing: after a 401, the SDK tries the older protocol too.
            self.needs_login = False
        bound(response, is_answer=response.request.url == self._url)


@asynccontextmanager
async def remote_transport(
    server: Server, headers: Mapping[str, str], auth: httpx2.Auth | None, status: HttpStatus, *, patience: float
) -> AsyncGenerator[Any]:
    """`patience` is the longest that a server may say nothing."""
    limits = httpx2.Timeout(_TIMEOUT, read=patience)

    def client(*_: Any, **__: Any) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={"accept-encoding": "identity", **headers},
            auth=auth,
            timeout=limits,
            event_hooks={"response": [status.note]},
        )

    if server.entry.transport == ServerTransport.SSE:
        async with sse_client(server.entry.url, httpx_client_factory=client) as streams:
            yield streams
        return
    async with (
        client() as http,
        streamable_http_client(server.entry.url, http_client=http, max_sse_event_size=LINE_LIMIT) as streams,
    ):
        yield streams


async def headers_of(server: Server, launcher: Launcher) -> dict[str, str]:
    """The entry's headers, and those that its helper prints. Raises `McpError`."""
    helper = server.entry.headers_helper
    if not helper:
        return dict(server.entry.headers)
    process = await launcher.start(("/bin/sh", "-c", helper), server)
    output = b""
    try:
        with anyio.move_on_after(_HELPER_TIMEOUT) as scope:
            await process.stdin.aclose()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(process.keep_stderr)
                try:
                    while len(output) < _HELPER_LIMIT:
                        output += await process.stdout.receive()
                except anyio.EndOfStream:
                    pass
                await process.wait(_HELPER_TIMEOUT)
                tasks.cancel_scope.cancel()
        status = process.status
    finally:
        with anyio.CancelScope(shield=True):
            await process.end()
    what = f"headersHelper of the MCP server {server.name!r}"
    if scope.cancelled_caught:
        raise McpError(f"The {what} took longer than {_HELPER_TIMEOUT:g} s")
    if status != 0:
        raise McpError(f"The {what} failed (exit code {status}): {process.tail.text()}")
    try:
        more = msgspec.json.decode(output, type=dict[str, str])
    except msgspec.DecodeError:
        raise McpError(f"The {what} must print a JSON object with a string for each header") from None
    return {**server.entry.headers, **more}
